package advice

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxAge is for how long a document counts: the leader writes one each hour.
const maxAge = 24 * time.Hour

// Book holds the recommendations for all namespaces. It is immutable; nil recommends nothing.
type Book struct {
	Written time.Time
	// Texts are the indexes of the texts that it was read from, which Decode took, in no order.
	Texts      []int
	namespaces map[string]Namespace
}

// Namespace holds the recommendations for the containers of one namespace.
type Namespace map[Container]*Recommendation

// Sorted returns the recommendations by name.
func (n Namespace) Sorted() (all []Recommendation) {
	for _, r := range n {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Recommendation) int { return a.Compare(b.Container) })
	return all
}

// newBook makes a Book of all parts that were written together.
func newBook(parts map[int]*part) (*Book, error) {
	b := &Book{namespaces: map[string]Namespace{}}
	n := 0
	for _, p := range parts {
		if p.Parts != len(parts) {
			return nil, errors.New("some of the ConfigMaps that were written together are missing")
		}
		b.Written, b.Texts = p.Written, append(b.Texts, p.text)
		if n += len(p.Items); n > maxContainers {
			return nil, fmt.Errorf("more than %d recommendations", maxContainers)
		}
		for _, text := range p.Items {
			if err := b.add(text); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

func (b *Book) add(text []byte) error {
	var i item
	if err := json.Unmarshal(text, &i); err != nil {
		return fmt.Errorf("a recommendation that cannot be read: %w", err)
	}
	r := i.recommendation()
	if err := r.check(); err != nil {
		return fmt.Errorf("a recommendation that cannot be: %w", err)
	}
	ns := b.namespaces[r.Namespace]
	if ns == nil {
		ns = Namespace{}
		b.namespaces[r.Namespace] = ns
	}
	ns[r.Container] = &r
	return nil
}

// Of returns the recommendations for a namespace.
func (b *Book) Of(namespace string) Namespace {
	if b == nil {
		return nil
	}
	return b.namespaces[namespace]
}

// Current reports whether the Book counts at a time.
func (b *Book) Current(now time.Time) bool { return b != nil && now.Before(b.Written.Add(maxAge)) }

// All calls yield with each recommendation, in no order.
func (b *Book) All(yield func(*Recommendation) bool) {
	if b == nil {
		return
	}
	for _, ns := range b.namespaces {
		for _, r := range ns {
			if !yield(r) {
				return
			}
		}
	}
}

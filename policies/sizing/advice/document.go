package advice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
)

// NamePrefix begins the names of the ConfigMaps; a number from 0 follows. Each has Label, and the entry Key.
const (
	NamePrefix = "gpuslice-advice-"
	Label      = api.Domain + "/advice"
	Key        = "advice.json"
)

// Bounds on the document.
const (
	maxContainers = 10_000
	MaxParts      = 8
	maxText       = 900 << 10 // of a part, in bytes
)

// version is that of the format.
const version = 1

// errNewer is the error of what a newer build wrote.
var errNewer = errors.New("a newer version of gpuslice wrote it")

// part is the text of one ConfigMap.
type part struct {
	Version   int                 `json:"v"`
	Written   time.Time           `json:"written"`
	Parts     int                 `json:"parts"`     // that were written together
	Part      int                 `json:"part"`      // of these, from 0
	Coverages [len(Coverages)]int `json:"coverages"` // of sizesMiB, in percent
	Items     []json.RawMessage   `json:"items"`

	text int // the index of its text, for Decode
}

// item is a Recommendation as it is written.
type item struct {
	Container
	Sizes   [len(Coverages)]int64 `json:"sizesMiB"`
	Verdict sizing.Verdict        `json:"verdict"`
	Since   time.Time             `json:"since,omitzero"`
	Hours   float64               `json:"hours"`
	Slice   int64                 `json:"sliceMiB,omitempty"`
}

// Encode returns the texts of the ConfigMaps, in their order, and how many recommendations are left out: those that cannot be, and
// beyond maxContainers the last ones of the namespaces that have most.
func Encode(written time.Time, all []Recommendation) (texts []string, leftOut int, err error) {
	chosen := choose(all)
	parts := [][]json.RawMessage{nil}
	const head = 200 // bytes beside the items, generously
	size := head
	for i := range chosen {
		text, err := json.Marshal(chosen[i].item())
		if err != nil {
			return nil, 0, fmt.Errorf("encode recommendation: %w", err)
		}
		if size += len(text) + len(",\n"); size > maxText {
			parts, size = append(parts, nil), head+len(text)+len(",\n")
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], text)
	}
	for i, items := range parts {
		text, err := json.Marshal(part{Version: version, Written: written.UTC().Truncate(time.Second),
			Parts: len(parts), Part: i, Coverages: Coverages, Items: items})
		if err != nil {
			return nil, 0, fmt.Errorf("encode recommendations: %w", err)
		}
		texts = append(texts, string(bytes.ReplaceAll(text, []byte(`},{"namespace"`), []byte("},\n{\"namespace\""))))
	}
	return texts, len(all) - len(chosen), nil
}

// choose returns the recommendations that are written, by namespace: no namespace has a further one before each other has as many.
func choose(all []Recommendation) []Recommendation {
	sound := slices.DeleteFunc(slices.Clone(all), func(r Recommendation) bool { return r.check() != nil })
	byName := func(a, b Recommendation) int { return a.Compare(b.Container) }
	slices.SortStableFunc(sound, byName)
	sound = slices.CompactFunc(sound, func(a, b Recommendation) bool { return byName(a, b) == 0 })
	if len(sound) <= maxContainers {
		return sound
	}
	InTurn(sound, func(r Recommendation) Container { return r.Container })
	sound = sound[:maxContainers]
	slices.SortFunc(sound, byName)
	return sound
}

func (r *Recommendation) item() item {
	out := item{Container: r.Container, Verdict: r.Verdict, Hours: float64(int64(r.Hours)), Slice: int64(r.Slice)}
	if !r.Since.IsZero() {
		out.Since = r.Since.UTC().Truncate(time.Second)
	}
	for i, size := range r.Sizes {
		out.Sizes[i] = int64(size)
	}
	return out
}

func (i *item) recommendation() Recommendation {
	out := Recommendation{Container: i.Container, Verdict: i.Verdict, Since: i.Since, Hours: i.Hours, Slice: api.MiB(i.Slice)}
	for n, size := range i.Sizes {
		out.Sizes[n] = api.MiB(size)
	}
	return out
}

// Decode reads the texts of the ConfigMaps, in any order. Of several that were written at different times it takes the latest that
// are complete. Without these the error names what could not be read and what is missing; nil and no error: there are no texts.
func Decode(texts []string) (*Book, error) {
	if len(texts) > 2*MaxParts {
		return nil, fmt.Errorf("read recommendations: %d ConfigMaps, at most %d", len(texts), 2*MaxParts)
	}
	byTime := map[int64]map[int]*part{}
	var failed error
	for i, text := range texts {
		p, err := decodePart(text)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		p.text = i
		at := p.Written.Unix()
		if byTime[at] == nil {
			byTime[at] = map[int]*part{}
		}
		byTime[at][p.Part] = p
	}
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(byTime))) {
		book, err := newBook(byTime[at])
		if err == nil {
			return book, nil
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return nil, fmt.Errorf("read recommendations: %w", failed)
	}
	return nil, nil
}

// decodePart reads the text of one ConfigMap, its items not yet.
func decodePart(text string) (*part, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("a text of %d bytes, at most %d", len(text), maxText)
	}
	var p part
	err := json.Unmarshal([]byte(text), &p)
	switch {
	case p.Version > version: // of which other fields may have other types: its version comes first
		return nil, errNewer
	case err != nil:
		return nil, fmt.Errorf("not a document of recommendations: %w", err)
	case p.Version != version:
		return nil, fmt.Errorf("version %d of the document, this build reads %d", p.Version, version)
	case p.Parts < 1 || p.Parts > MaxParts || p.Part < 0 || p.Part >= p.Parts:
		return nil, fmt.Errorf("part %d of %d, at most %d", p.Part, p.Parts, MaxParts)
	case p.Coverages != Coverages:
		return nil, fmt.Errorf("sizes at %v%%, this build reads %v%%", p.Coverages, Coverages)
	case len(p.Items) > maxContainers:
		return nil, fmt.Errorf("%d recommendations, at most %d", len(p.Items), maxContainers)
	}
	return &p, nil
}

package podcache

import (
	"slices"
	"strings"
	"unique"
)

// Templates are the names of claim templates, sorted, each once. Pods that name the same share them. The zero value: none.
type Templates struct{ joined unique.Handle[string] }

// separator is in no name of a template.
const separator = " "

// TemplatesOf returns the Templates of that list, which it sorts.
func TemplatesOf(names []string) Templates {
	if len(names) == 0 {
		return Templates{}
	}
	slices.Sort(names)
	return Templates{unique.Make(strings.Join(slices.Compact(names), separator))}
}

// List returns the names.
func (t Templates) List() []string {
	if t == (Templates{}) {
		return nil
	}
	return strings.Split(t.joined.Value(), separator)
}

func (t Templates) size() int {
	if t == (Templates{}) {
		return 0
	}
	return len(t.joined.Value())
}

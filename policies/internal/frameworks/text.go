package frameworks

import (
	"maps"
	"slices"
	"strings"
)

func keys[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// maxQuoted bounds a user's text in a sentence.
const maxQuoted = 40

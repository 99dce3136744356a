package frameworks

import (
	"maps"
	"slices"
	"strings"
)

func keys[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// shorten bounds a user's text before it goes into a sentence.
func shorten(text string) string {
	const limit = 40
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}

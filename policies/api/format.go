package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

func FormatInt(n int64) string { return strconv.FormatInt(n, 10) }

// FormatFraction prints num/den floored at six decimals, without an exponent: what frameworks parse. It returns "" where
// the value would not lie in (0, 1).
func FormatFraction(num, den int64) string {
	if num <= 0 || den <= 0 || num >= den {
		return ""
	}
	micros := num * Micro / den
	if micros == 0 {
		return ""
	}
	text := strconv.FormatInt(micros, 10)
	return "0." + "000000"[len(text):] + text
}

func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func JoinNames[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

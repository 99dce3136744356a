package message

import "strings"

// maxSlips is how many letters a mistyped word may have wrong, and a short one only one.
const maxSlips = 2

// Nearest is the one of words that word is most likely meant to be; "": none is near.
func Nearest(word string, words []string) (nearest string) {
	least := min(maxSlips, len(word)/3) + 1
	for _, w := range words {
		if slips := distance(strings.ToLower(word), strings.ToLower(w)); slips < least {
			least, nearest = slips, w
		}
	}
	return nearest
}

// distance is how many letters have to be added, removed, replaced or swapped with the next to make b of a (optimal string alignment).
func distance(a, b string) int {
	var earlier []int // the row before the last, for swaps
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(replaced, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], earlier[j-1]+1)
			}
		}
		earlier, row = row, next
	}
	return row[len(b)]
}

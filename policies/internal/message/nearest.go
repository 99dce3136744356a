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

// distance is how many letters have to be added, removed or replaced to make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

package quantity

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// AllCheap reports whether no string and no number of a valid JSON text is a quantity that Cheap does not match and a parser
// takes, wherever it stands. It is for the text of nearly every pod, and takes a fraction of the time of looking at quantities alone.
func AllCheap(text []byte) bool {
	for len(text) > 0 {
		n := 1
		switch first := text[0]; {
		case first == '"':
			for n < len(text) && text[n] != '"' {
				if text[n] == '\\' {
					n++
				}
				n++
			}
			n = min(n, len(text))
			if mayBeCostly(text[1:n]) {
				return false
			}
			n++ // the quote at its end
		case first == '-' || first >= '0' && first <= '9':
			for n < len(text) && bytes.IndexByte([]byte("0123456789+-.eE"), text[n]) >= 0 {
				n++
			}
			if mayBeCostly(text[:n]) {
				return false
			}
		}
		text = text[min(n, len(text)):]
	}
	return true
}

// mayBeCostly reports whether a text has only the characters of quantities, and more digits or a larger exponent than
// Cheap allows.
func mayBeCostly(text []byte) bool {
	exponent := 0
	for i, c := range text {
		switch {
		case c == 'e', c == 'E':
			exponent = max(exponent, len(text)-i)
		case c >= '0' && c <= '9', c == '+', c == '-', c == '.', c == ' ', c > '~':
		// most strings end here: of letters, a quantity begins with an exponent alone
		case i == 0 || bytes.IndexByte([]byte("numkMGTPKi"), c) < 0:
			return false
		}
	}
	return len(text) > 2*MaxText || exponent > len("e99")
}

// Cheap is the text of a quantity that every parser reads at once: a plain number with a suffix, or a small
// exponent.
var Cheap = regexp.MustCompile(`^[+-]?[0-9]*\.?[0-9]*([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?$`)

// Text is the quantity as written; the server writes strings, people write numbers too.
func Text(q any) string {
	switch v := q.(type) {
	case string:
		return strings.TrimSpace(v)
	case int64, float64:
		return fmt.Sprint(v)
	}
	return ""
}

package quantity

import (
	"fmt"
	"regexp"
	"strings"
)

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

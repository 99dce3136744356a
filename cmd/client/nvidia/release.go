package nvidia

import (
	"strconv"
	"strings"
)

// Release is a version of three numbers; the rest of a tag, such as "-ubi8", is left out.
type Release [3]int

// ParseRelease reads a version or the tag of an image; false where it is none.
func ParseRelease(text string) (Release, bool) {
	text, _, _ = strings.Cut(text, "@")
	text = strings.TrimPrefix(text[strings.LastIndex(text, ":")+1:], "v")
	text, _, _ = strings.Cut(text, "-")
	var r Release
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > len(r) {
		return r, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return r, false
		}
		r[i] = n
	}
	return r, true
}

// Before reports whether r is older than other.
func (r Release) Before(other Release) bool {
	for i := range r {
		if r[i] != other[i] {
			return r[i] < other[i]
		}
	}
	return false
}

// Package shorten bounds texts that others wrote, so that a hostile one cannot fill a message, a log or an Event.
package shorten

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const end = "..."

// Text returns text as it is, or its first bytes and "..." where it has more than most. It keeps characters whole.
func Text(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + end
}

// Line returns text as one line for a header, an Event or a terminal: printable characters in valid UTF-8, and at most that many
// bytes with the "..." of a text that is cut.
func Line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError { // a right-to-left override is no control character
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
	if len(text) <= most {
		return text
	}
	return Text(text, most-len(end))
}

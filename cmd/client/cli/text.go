package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/gpuslice/gpuslice/policies/api"
)

// OneLine replaces what is not printed with spaces: text that others wrote neither breaks a table, nor moves the cursor, nor turns a
// line around.
func OneLine(text string) string { return blank(text, "") }

// blank replaces characters that are not printed, but those to keep, with spaces.
func blank(text, keep string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && !strings.ContainsRune(keep, r) {
			return ' '
		}
		return r
	}, text)
}

// WithoutEscapes is a stream for messages, which may quote text that others wrote: lines and tabs stay, escapes of terminals do not.
func WithoutEscapes(to io.Writer) io.Writer { return messages{to} }

type messages struct{ to io.Writer }

func (m messages) Write(text []byte) (int, error) {
	if _, err := io.WriteString(m.to, blank(string(text), "\n\t")); err != nil {
		return 0, fmt.Errorf("print a message: %w", err)
	}
	return len(text), nil
}

// AndMore is the end of a list of which n entries are not shown.
func AndMore(n int) string { return fmt.Sprintf("and %d more", n) }

// Join joins names of any kind.
func Join[T ~string](names []T) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ", ")
}

// First joins the first names, and ends with the number of the others.
func First(shown int, names []string) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:shown], ", ") + " " + AndMore(len(names)-shown)
}

// Count is n for a table, "" for none.
func Count(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Percent is n per cent for a table, "" for none.
func Percent(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + "%"
}

// Amount is m for a table, "" for none.
func Amount(m api.MiB) string {
	if m == 0 {
		return ""
	}
	return m.Human()
}

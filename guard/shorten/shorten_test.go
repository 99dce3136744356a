package shorten

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "longe..."},
		{"ääää", 5, "ää..."},
		{"a\nb", 5, "a\nb"},
	} {
		if got := Text(c.text, c.most); got != c.want {
			t.Errorf("%q in %d bytes: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" a line\n":              "a line",
		"two\r\nlines":           "two  lines",
		"\x1b[31mred":            " [31mred",
		"right\u202eto left":     "right to left",
		"\xffinvalid":            " invalid",
		strings.Repeat("ä", 10):  strings.Repeat("ä", 10),
		strings.Repeat("ä", 11):  strings.Repeat("ä", 8) + "...",
		"exactly twenty bytes":   "exactly twenty bytes",
		"twenty-one bytes of it": "twenty-one bytes ...",
	} {
		if got := Line(text, 20); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzLine finds texts that break a line, a header or a terminal.
func FuzzLine(f *testing.F) {
	f.Add("plain", 10)
	f.Add(strings.Repeat("ä", 200), 7)
	f.Add("\xff\xfe\x00", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 4 || most > 1<<16 {
			t.Skip("callers ask for no such bound")
		}
		if got := Line(text, most); len(got) > most || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00\x1b") {
			t.Errorf("%q", got)
		}
	})
}

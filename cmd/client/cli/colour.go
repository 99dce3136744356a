package cli

import "strings"

// Colour is an escape sequence of terminals; "" is no colour.
type Colour string

// The colours.
const (
	Bold   Colour = "\x1b[1m"
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Cyan   Colour = "\x1b[36m"

	reset = "\x1b[0m"
)

// Painter gives text a colour, or leaves it plain.
type Painter func(c Colour, text string) string

// Plain leaves text as it is.
func Plain(_ Colour, text string) string { return text }

// Painter paints if Out is a terminal whose user did not turn colours off (no-color.org).
func (s Streams) Painter() Painter {
	if s.Getenv("NO_COLOR") != "" || !s.Escapes() {
		return Plain
	}
	return paint
}

// Escapes reports whether Out is a terminal that acts on escape sequences.
func (s Streams) Escapes() bool { return s.Getenv("TERM") != "dumb" && Terminal(s.Out) }

func paint(c Colour, text string) string {
	if c == "" {
		return text
	}
	return string(c) + text + reset
}

// PaintDiff paints the lines of a unified diff.
func PaintDiff(diff string, paint Painter) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		text, ended := strings.CutSuffix(line, "\n")
		b.WriteString(paint(colourOf(line), text))
		if ended {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func colourOf(line string) Colour {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return Bold
	case line[0] == '-':
		return Red
	case line[0] == '+':
		return Green
	case line[0] == '@':
		return Cyan
	}
	return ""
}

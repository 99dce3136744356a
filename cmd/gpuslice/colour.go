package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Escape sequences of the lines of a diff, and of levels.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

// colourful says that out is a terminal whose user did not turn colours off (no-color.org).
func colourful(out io.Writer, getenv func(string) string) bool {
	if getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	return terminal(out)
}

// terminal says that a stream is one.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func plain(diff string) string { return diff }

// coloured paints the lines of a unified diff.
func coloured(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		colour := colourOf(line)
		if colour == "" {
			b.WriteString(line)
			continue
		}
		b.WriteString(colour + strings.TrimSuffix(line, "\n") + reset + "\n")
	}
	return b.String()
}

func colourOf(line string) string {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return bold
	case line[0] == '-':
		return red
	case line[0] == '+':
		return green
	case line[0] == '@':
		return cyan
	}
	return ""
}

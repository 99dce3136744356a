package review

import (
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/guard/shorten"
)

// The API server cuts a warning at 256 bytes and all of them at 4 KiB; kubectl prints each on its own line.
const (
	MaxWarning  = 240
	MaxMessage  = 2048
	maxWarnings = 10
)

// Warnings bounds the warnings in number and length. A long one becomes several lines, since the remedy is at its end.
func Warnings(texts []string) []string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, fold(shorten.Line(text, MaxMessage), MaxWarning)...)
	}
	if len(lines) <= maxWarnings {
		return lines
	}
	rest := len(lines) - maxWarnings + 1
	return append(lines[:maxWarnings-1:maxWarnings-1], "and "+strconv.Itoa(rest)+" more lines")
}

// fold breaks text at spaces into lines of at most that many bytes; a word that is longer is cut.
func fold(text string, most int) []string {
	var lines []string
	for len(text) > most {
		cut := strings.LastIndexByte(text[:most+1], ' ')
		if cut <= 0 {
			return append(lines, shorten.Line(text, most))
		}
		lines = append(lines, text[:cut])
		text = text[cut+1:]
	}
	return append(lines, text)
}

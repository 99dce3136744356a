package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// TestDocumentsOnTerminal: text of tenants neither moves the cursor nor hides anything of a document that is printed on a
// terminal; a program that reads it gets all of the text.
func TestDocumentsOnTerminal(t *testing.T) {
	terminal, screen := commandline.Pseudoterminal(t)
	const text = "a\u009b2J\x1b[2Jb"
	answer := cli.Answer{Document: map[string]string{"pod": text}, Names: []string{text}}
	for format, piped := range map[string]string{"json": `a\u009b2J\u001b[2Jb`,
		"yaml": `a\x9B2J\e[2Jb`, "jsonpath={.pod}": text, "name": text} {
		output := cli.Output{Format: format}
		if err := output.Print(terminal, answer); err != nil {
			t.Fatal(err)
		}
		if got := commandline.Shown(t, screen); strings.ContainsAny(got, "\u009b\x1b") || !strings.Contains(got, "2J") {
			t.Errorf("-o %s shows %q", format, got)
		}
		var pipe bytes.Buffer
		if err := output.Print(&pipe, answer); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(pipe.String(), piped) {
			t.Errorf("-o %s prints %q", format, pipe.String())
		}
	}
}

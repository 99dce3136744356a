package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/test/commandline"
	"github.com/gpuslice/gpuslice/test/markdown"
)

// TestReadme runs the command line of the project's README, which prints the change that the README begins with.
func TestReadme(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown, command string
	for _, b := range (markdown.Page{Path: "README.md", Text: string(text)}).Blocks() {
		if b.Info == "diff" {
			shown = b.Text
		}
		for line := range strings.Lines(b.Text) {
			if rest, ok := strings.CutPrefix(line, "bin/gpuslice render "); ok {
				command = rest
			}
		}
	}
	var out bytes.Buffer
	if code := program.Run(t.Context(), append([]string{"gpuslice", "render"}, strings.Fields(command)...),
		commandline.StreamsTo(&out, &bytes.Buffer{})); code != 0 {
		t.Fatalf("render %s: exit %d\n%s", command, code, out.String())
	}
	for _, side := range []string{"-", "+"} {
		want, got := sideOf(t, shown, side), sideOf(t, out.String(), side)
		if len(want) < 2 || !shows(want, got) {
			t.Errorf("README.md shows\n%s\nand its command prints\n%s", shown, out.String())
		}
	}
}

// sideOf is one side of a diff, "-" or "+", which shows the whole of an object.
func sideOf(t *testing.T, diff, side string) (object map[string]any) {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(diff) {
		header := strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++")
		if !header && (strings.HasPrefix(line, side) || strings.HasPrefix(line, " ")) {
			text.WriteString(line[1:])
		}
	}
	if err := yaml.Unmarshal([]byte(text.String()), &object); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	return object
}

// shows reports whether a shortened value stands for the other one: "..." is all that is left out.
func shows(short, full any) bool {
	switch short := short.(type) {
	case map[string]any:
		full, _ := full.(map[string]any)
		for key, value := range short {
			if there, ok := full[key]; key != "..." && (!ok || !shows(value, there)) {
				return false
			}
		}
		return true
	case []any:
		full, _ := full.([]any)
		for _, e := range short {
			if !slices.ContainsFunc(full, func(there any) bool { return shows(e, there) }) {
				return false
			}
		}
		return true
	}
	text, beginning := strings.CutSuffix(fmt.Sprint(short), "...")
	return fmt.Sprint(full) == text || beginning && strings.HasPrefix(fmt.Sprint(full), text)
}

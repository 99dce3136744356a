package deploy_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/gpuslice/gpuslice/test/markdown"
)

// pages are all Markdown files of the project.
func pages(t *testing.T) []markdown.Page {
	t.Helper()
	all, err := markdown.Pages(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// commandLine is a line that a reader would run.
var commandLine = regexp.MustCompile(`(?m)^(\$ )?(sudo )?(bin/)?(kubectl|helm|gpuslice (verify|doctor|explain|bypass|quota|uninstall)|make|go|gcloud|eksctl|az|oras|docker)( |$)`)

// TestPageCommands holds pages to marking their commands, so that they run (see test/chart), or say why not.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	run, not := 0, 0
	for _, p := range pages(t) {
		for _, b := range p.Blocks() {
			commands, reason := b.Commands()
			switch {
			case b.Info == "":
				t.Errorf("%s: the fence has no language: sh for commands, text for what is printed", b.Where())
			case commands != "":
				run++
			case len(reason) > 5:
				not++
			case commandLine.MatchString(b.Text):
				t.Errorf("%s: commands in a fence of %q: write sh, or \"sh not run: REASON\"", b.Where(), b.Info)
			}
		}
	}
	if run == 0 || not == 0 {
		t.Errorf("%d blocks run, %d do not: this test does not see them", run, not)
	}
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

const referenceHead = `# gpuslice, the command line

Everything below is what the program says of itself (%s). As ` + "`kubectl-gpuslice`" + ` in the PATH the same program is a kubectl
plugin: ` + "`kubectl gpuslice ...`" + `. Completion for a shell: ` + "`source <(gpuslice completion bash)`" + `, likewise zsh, fish and
powershell; namespaces and pods are completed from the cluster.

`

// TestTheReferenceIsWhatTheProgramSays holds README.md against the commands' own help.
func TestTheReferenceIsWhatTheProgramSays(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, referenceHead, "`go test ./cmd/gpuslice -update` writes it")
	root := newRootCommand("gpuslice", streams{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, getenv: noEnvironment})
	reference(&b, root)
	if *update {
		if err := os.WriteFile("README.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("(-README.md +program, go test ./cmd/gpuslice -update writes it):\n%s", diff)
	}
}

// reference writes a command and those below it.
func reference(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.IsAvailableCommand() && cmd.HasParent() {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", cmd.CommandPath())
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(b, "```\n%s\n```\n\n", strings.TrimSpace(text))
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintf(b, "```\n%s\n```\n\n", cmd.UseLine())
	}
	if flags := cmd.NonInheritedFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(b, "```\n%s```\n\n", flags.FlagUsages())
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "```\n%s\n```\n\n", cmd.Example)
	}
	for _, sub := range cmd.Commands() {
		reference(b, sub)
	}
}

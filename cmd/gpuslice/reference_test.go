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

const indexHead = `# gpuslice, the command line

` + "`--help`" + ` of a command describes its flags and its JSON; ` + "`gpuslice --help`" + ` lists the exit codes. Installed in the PATH
as ` + "`kubectl-gpuslice`" + ` it is a kubectl plugin, ` + "`kubectl gpuslice`" + `. Completion for a shell: ` + "`source <(gpuslice completion bash)`" + `,
likewise zsh, fish and powershell.

`

const indexTail = `
Generated from the commands: ` + "`go test ./cmd/gpuslice -update`" + ` rewrites this page.
`

// TestIndex holds README.md against the commands.
func TestIndex(t *testing.T) {
	var b strings.Builder
	b.WriteString(indexHead)
	index(t, &b, newRootCommand("gpuslice", streamsTo(&bytes.Buffer{}, &bytes.Buffer{})))
	b.WriteString(indexTail)
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
		t.Errorf("(-README.md +program, go test ./cmd/gpuslice -update rewrites it):\n%s", diff)
	}
}

// index writes a line for each command below cmd that does something itself.
func index(t *testing.T, b *strings.Builder, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.HasSubCommands() {
			index(t, b, c)
			continue
		}
		if c.Short == "" || firstExample(c) == "" {
			t.Errorf("%s has no short help or no example", c.CommandPath())
		}
		fmt.Fprintf(b, "- `%s`: %s\n", firstExample(c), c.Short)
	}
}

// firstExample is the first example of a command without its comment.
func firstExample(c *cobra.Command) string {
	for line := range strings.Lines(c.Example) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

package commandline

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
)

// page lists the commands.
const page = "../../cmd/gpuslice/README.md"

const indexHead = `# gpuslice, the command line

` + "`--help`" + ` of a command describes its flags and its JSON; ` + "`gpuslice --help`" + ` lists the exit codes. Installed in the PATH
as ` + "`kubectl-gpuslice`" + ` it is a kubectl plugin, ` + "`kubectl gpuslice`" + `. Completion for a shell: ` + "`source <(gpuslice completion bash)`" + `,
likewise zsh, fish and powershell.

`

const indexTail = `
Generated from the commands: ` + "`go test ./test/commandline -update`" + ` rewrites this page.
`

var update = flag.Bool("update", false, "rewrite the page of the commands")

// TestIndex holds the page against the commands.
func TestIndex(t *testing.T) {
	var b strings.Builder
	b.WriteString(indexHead)
	index(t, &b, program.New("gpuslice", StreamsTo(&bytes.Buffer{}, &bytes.Buffer{})))
	b.WriteString(indexTail)
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("(-README.md +program, go test ./test/commandline -update rewrites it):\n%s", diff)
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

package commandline

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
)

// TestCommands: a command that is added is to be listed above.
func TestCommands(t *testing.T) {
	var names []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		names = append(names, c.Name())
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(program.New("gpuslice", StreamsTo(&bytes.Buffer{}, &bytes.Buffer{})))
	if got := strings.Join(names, " "); got != "gpuslice audit bypass doctor estimate explain list page plan policy init lint show test pools quota recommend render report resign snapshot top translate uninstall verify" {
		t.Errorf("commands: %s", got)
	}
}

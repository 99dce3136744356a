package fleet_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// TestTopWatchOnTerminal: a round takes the place of the one before only on a terminal that can clear its screen.
func TestTopWatchOnTerminal(t *testing.T) {
	commandline.Serve(t, commandline.World{Folders: []string{"../testdata/live"}, Nodes: "../testdata/cluster/nodes.yaml"})
	for kind, clears := range map[string]bool{"xterm": true, "dumb": false} {
		t.Run(kind, func(t *testing.T) {
			terminal, screen := commandline.Pseudoterminal(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := make(chan int)
			go func() {
				s := commandline.StreamsTo(&bytes.Buffer{}, &bytes.Buffer{})
				s.Out = terminal
				getenv := s.Getenv
				s.Getenv = func(name string) string {
					if name == "TERM" {
						return kind
					}
					return getenv(name)
				}
				ended <- program.Run(ctx, []string{"gpuslice", "top", "-n", "team-notebooks", "-w"}, s)
			}()
			if got := commandline.Shown(t, screen); strings.Contains(got, "\x1b[H\x1b[J") != clears {
				t.Errorf("shown: %q", got)
			}
			interrupt()
			<-ended
		})
	}
}

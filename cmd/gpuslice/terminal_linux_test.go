package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// pseudoterminal returns a terminal, and the screen where what is printed on it can be read.
func pseudoterminal(t *testing.T) (terminal, screen *os.File) {
	t.Helper()
	open := func(path string) *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Skipf("needs a pseudoterminal: %v", err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	screen = open("/dev/ptmx")
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal = open(fmt.Sprint("/dev/pts/", number))
	if _, err := term.MakeRaw(int(terminal.Fd())); err != nil { // prints what is written
		t.Fatal(err)
	}
	return terminal, screen
}

// shown is what a screen shows next.
func shown(t *testing.T, screen *os.File) string {
	t.Helper()
	text := make([]byte, 4096)
	n, err := screen.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[:n])
}

// TestTopWatchOnTerminal: a round takes the place of the one before only on a terminal that can clear its screen.
func TestTopWatchOnTerminal(t *testing.T) {
	serve(t, liveWorld{folders: []string{"testdata/live"}, nodes: "testdata/cluster/nodes.yaml"})
	for kind, clears := range map[string]bool{"xterm": true, "dumb": false} {
		t.Run(kind, func(t *testing.T) {
			terminal, screen := pseudoterminal(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := make(chan int)
			go func() {
				s := streamsTo(&bytes.Buffer{}, &bytes.Buffer{})
				s.Out = terminal
				getenv := s.Getenv
				s.Getenv = func(name string) string {
					if name == "TERM" {
						return kind
					}
					return getenv(name)
				}
				ended <- run(ctx, []string{"gpuslice", "top", "-n", "team-notebooks", "-w"}, s)
			}()
			if got := shown(t, screen); strings.Contains(got, "\x1b[H\x1b[J") != clears {
				t.Errorf("shown: %q", got)
			}
			interrupt()
			<-ended
		})
	}
}

// TestDocumentsOnTerminal: text of tenants neither moves the cursor nor hides anything of a document that is printed on a
// terminal; a program that reads it gets all of the text.
func TestDocumentsOnTerminal(t *testing.T) {
	terminal, screen := pseudoterminal(t)
	const text = "a\u009b2J\x1b[2Jb"
	answer := cli.Answer{Document: map[string]string{"pod": text}, Names: []string{text}}
	for format, piped := range map[string]string{"json": `a\u009b2J\u001b[2Jb`,
		"yaml": `a\x9B2J\e[2Jb`, "jsonpath={.pod}": text, "name": text} {
		output := cli.Output{Format: format}
		if err := output.Print(terminal, answer); err != nil {
			t.Fatal(err)
		}
		if got := shown(t, screen); strings.ContainsAny(got, "\u009b\x1b") || !strings.Contains(got, "2J") {
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

package cli

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Streams are the process's surroundings, so that tests can bring their own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Now      func() time.Time
	Version  string // of this program
}

// Terminal reports whether a stream is a terminal.
func Terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

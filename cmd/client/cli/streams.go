// Package cli has the common parts of all commands: streams, exit codes, flags, tables, colours and the frame of -o
// json.
package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
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

// Confirm prompts at the terminal before objects are changed; done is the verb of the change, such as "removed".
func (s Streams) Confirm(question, done string) error {
	if !Terminal(s.In) {
		return fmt.Errorf("standard input is no terminal: confirm with --yes, or see what would be %s with --dry-run", done)
	}
	fmt.Fprint(s.Err, question+" [y/N] ")
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return fmt.Errorf("nothing was %s", done)
	}
	return nil
}

package cli

import (
	"errors"
	"fmt"

	"github.com/gpuslice/gpuslice/cmd/client/problem"
)

// Exit codes, the same for every command. ExitHelp describes them for users.
const (
	ExitDone     = 0
	ExitInternal = 1
	ExitNoAnswer = 2
	ExitDenied   = 3
	ExitWarned   = 4
)

// ExitHelp is the part of the root command's help that describes the exit codes.
const ExitHelp = `Exit codes, the same for every command:
  0  success: nothing is denied and no problem was found
  1  internal error: a bug in gpuslice
  2  no answer: bad usage, unreadable input, or a cluster that cannot be reached, read or changed
  3  at least one object is or would be denied, or at least one problem was found
  4  no problem, but at least one warning ("policy lint", "doctor" and "verify" look for warnings)
If several apply to one run, the first of 1, 2, 3 and 4 counts.`

// ErrInternal is problem.ErrInternal.
var ErrInternal = problem.ErrInternal

// ExitError makes a command exit with a code after everything was already printed.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Tally gathers the results of many objects into one exit code.
type Tally struct{ Internal, NoAnswer, Denied, Warned bool }

// Failed counts an object that could not be answered.
func (t *Tally) Failed(err error) {
	if errors.Is(err, ErrInternal) {
		t.Internal = true
		return
	}
	t.NoAnswer = true
}

// Exit returns nil for success, else the ExitError to return from a command.
func (t Tally) Exit() error {
	switch {
	case t.Internal:
		return ExitError(ExitInternal)
	case t.NoAnswer:
		return ExitError(ExitNoAnswer)
	case t.Denied:
		return ExitError(ExitDenied)
	case t.Warned:
		return ExitError(ExitWarned)
	}
	return nil
}

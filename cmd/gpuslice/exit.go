package main

import (
	"errors"
	"fmt"
)

// Exit codes. Where several apply, the first in this order counts: internal, input, refused.
const (
	exitDone     = 0 // everything was rewritten or left alone; a linted policy has no problem
	exitInternal = 1 // a bug of gpuslice
	exitInput    = 2 // bad usage, or input or a cluster that cannot be read
	exitRefused  = 3 // at least one object is refused; at least one problem was found
	exitWarned   = 4 // doctor and verify: no problem, but at least one warning
)

// errInternal marks what no input should be able to cause.
var errInternal = errors.New("internal error, please report it together with the document")

// exitError ends the command with a code after everything was already said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// tally gathers what happened to many objects into one exit code.
type tally struct{ internal, input, refused bool }

func (t *tally) failed(err error) {
	if errors.Is(err, errInternal) {
		t.internal = true
		return
	}
	t.input = true
}

// exit is nil where all went well, else the exitError to return from a command.
func (t *tally) exit() error {
	switch {
	case t.internal:
		return exitError(exitInternal)
	case t.input:
		return exitError(exitInput)
	case t.refused:
		return exitError(exitRefused)
	}
	return nil
}

package oncard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/prove/cuda"
)

// State is what became of a sentence.
type State string

// The states. A sentence that was not tried, or of which nothing follows, is NotRun.
const (
	Holds  State = "holds"
	Fails  State = "fails"
	NotRun State = "not run"
)

// check is one measurement of a row. Its detail has figures, or the reason why it was not run.
type check struct {
	subject string
	state   State
	detail  string
}

// state is the state of a row: it fails with any of its checks.
func state(checks []check) State {
	found := NotRun
	for _, c := range checks {
		if c.state == Fails {
			return Fails
		}
		if c.state == Holds {
			found = Holds
		}
	}
	return found
}

// verdict is a check whose sentence is true or not, with figures.
func verdict(subject string, holds bool, figures string, args ...any) check {
	c := check{subject, Fails, fmt.Sprintf(figures, args...)}
	if holds {
		c.state = Holds
	}
	return c
}

func notRun(subject, reason string, args ...any) check {
	return check{subject, NotRun, fmt.Sprintf(reason, args...)}
}

// broken is a check that an error stopped: nothing follows from it.
func broken(subject string, err error) check {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return notRun(subject, "stopped: the row's time was up")
	case errors.Is(err, cuda.ErrMissing):
		return notRun(subject, "%v", err)
	}
	return notRun(subject, "%s", oneLine(err.Error()))
}

// details are a row's checks in a line.
func details(checks []check) string {
	var all []string
	for _, c := range checks {
		all = append(all, fmt.Sprintf("%s: %s (%s)", c.subject, c.state, cmp.Or(c.detail, "-")))
	}
	return strings.Join(all, "; ")
}

// oneLine fits a text into a cell of a table.
func oneLine(text string) string {
	const most = 400
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "/")
	return text[:min(len(text), most)]
}

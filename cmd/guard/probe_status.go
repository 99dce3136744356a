package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/proc"
	"github.com/gpuslice/gpuslice/guard/shorten"
)

// probe names the probe that runs the status command.
type probe string

const (
	statusProbe    probe = "status"
	startupProbe   probe = "startup"
	livenessProbe  probe = "liveness"
	readinessProbe probe = "readiness"
)

const (
	// stuckAfter is how long the loop may go without a sample: some twice the
	// longest interval, a hung read and the pause between two writes together.
	stuckAfter = 25 * time.Second
	// maxEventMessage is the limit of one Event, less the text that the kubelet
	// writes before it.
	maxEventMessage = 900
	maxPending      = 16
)

// cannotEnforce begins the guard's messages while it cannot enforce the slice.
const cannotEnforce = "gpuslice cannot enforce this pod's slice: "

// answer is the answer to a probe.
type answer struct {
	OK   bool
	Text string
}

// probeStatus is the common state of the guard and its probes. Times are by
// the kernel's clock since boot, which all processes of the node read alike.
type probeStatus struct {
	SampledAt    time.Duration `json:"sampledAt,omitempty"` // zero: not yet
	NotEnforcing string        `json:"notEnforcing,omitempty"`
	StuckFrom    time.Duration `json:"stuckFrom,omitempty"` // when the termination in progress should be over; zero: there is none
	Pending      []string      `json:"pending,omitempty"`   // messages that no probe has returned yet
	Dropped      int           `json:"dropped,omitempty"`
	Returned     bool          `json:"returned,omitempty"` // the last liveness probe returned a message
	Undelivered  []string      `json:"undelivered,omitempty"`
}

// enqueue adds messages for the next liveness probe.
func (s *probeStatus) enqueue(messages ...string) {
	s.Pending = append(s.Pending, messages...)
	if over := len(s.Pending) - maxPending; over > 0 {
		s.Pending, s.Dropped = s.Pending[over:], s.Dropped+over
	}
}

// answer answers a probe.
func (s *probeStatus) answer(p probe, now time.Duration) answer {
	if s.SampledAt == 0 {
		return answer{false, "the guard has not sampled the devices yet"}
	}
	if late := now - s.SampledAt; late > stuckAfter {
		return answer{false, fmt.Sprintf("the guard has not sampled the devices for %s", guard.FormatDuration(late))}
	}
	if s.StuckFrom != 0 && now > s.StuckFrom {
		return answer{false, "a termination has been in progress for too long"}
	}
	switch p {
	case livenessProbe:
		return s.liveness()
	case readinessProbe, statusProbe:
		if s.NotEnforcing != "" {
			return answer{false, cannotEnforce + s.NotEnforcing}
		}
	}
	return answer{true, "ok"}
}

// liveness returns the pending messages as a failure. It never fails two probes
// in a row: the kubelet records an Event for each failure, and restarts the guard
// after three.
func (s *probeStatus) liveness() answer {
	if len(s.Pending) == 0 || s.Returned {
		s.Returned = false
		return answer{true, "ok"}
	}
	text := s.join(s.Pending)
	s.Pending, s.Dropped, s.Returned = nil, 0, true
	return answer{false, text}
}

// unreported returns messages that may not have arrived, including messages that a
// probe has returned.
func (s *probeStatus) unreported() string {
	returned := slices.DeleteFunc(slices.Clone(s.Undelivered), func(m string) bool { return slices.Contains(s.Pending, m) })
	return s.join(append(returned, s.Pending...))
}

func (s *probeStatus) join(messages []string) string {
	text := strings.Join(messages, "; ")
	if s.Dropped > 0 {
		text = fmt.Sprintf("(%d older messages are in the guard's log) %s", s.Dropped, text)
	}
	return shorten.Text(text, maxEventMessage)
}

// status prints the running guard's answer to this probe: the kubelet records the
// output of a probe that fails as an Event.
func status(_ context.Context, o options, p process) int {
	f, err := openStatusFile(o.terminationMessagePath)
	if err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	defer f.close()
	var a answer
	if err := f.awaitUpdate(func(s *probeStatus) { a = s.answer(o.probe, proc.SinceBoot()) }); err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	fmt.Fprintln(p.out, a.Text)
	if !a.OK {
		return exitFailed
	}
	return exitOK
}

package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// probe is what the status command is asked as.
type probe string

const (
	statusProbe    probe = "status"
	startupProbe   probe = "startup"
	livenessProbe  probe = "liveness"
	readinessProbe probe = "readiness"
)

const (
	// stuckAfter is how long the loop may go without a sample: some ten times what
	// the slowest sample and the longest interval take together.
	stuckAfter = 60 * time.Second
	// maxEventMessage is what one Event holds, less what the kubelet writes before
	// it.
	maxEventMessage = 900
)

// answer is what a probe gets.
type answer struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// probeStatus is what the loop keeps for probes. The zero value is a guard that
// has not sampled yet. It is safe for concurrent use.
type probeStatus struct {
	mu           sync.Mutex
	sampledAt    time.Time
	notEnforcing string
	pending      []string // messages that no probe has returned yet
	dropped      int
	returned     bool // the last liveness probe returned a message
}

// observe notes that the loop goes on.
func (s *probeStatus) observe(now time.Time, notEnforcing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampledAt, s.notEnforcing = now, notEnforcing
}

// enqueue adds a message for the next liveness probe.
func (s *probeStatus) enqueue(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const maxPending = 16
	s.pending = append(s.pending, message)
	if len(s.pending) > maxPending {
		s.pending, s.dropped = s.pending[1:], s.dropped+1
	}
}

// answer answers a probe.
func (s *probeStatus) answer(p probe, now time.Time) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sampledAt.IsZero() {
		return answer{false, "the guard has not sampled the devices yet"}
	}
	if late := now.Sub(s.sampledAt); late > stuckAfter {
		return answer{false, fmt.Sprintf("the guard has not sampled the devices for %s", guard.FormatDuration(late))}
	}
	switch p {
	case livenessProbe:
		return s.liveness()
	case readinessProbe, statusProbe:
		if s.notEnforcing != "" {
			return answer{false, "gpuslice cannot enforce this pod's slice: " + s.notEnforcing}
		}
	}
	return answer{true, "ok"}
}

// liveness returns the pending messages as a failure. It never fails two probes
// in a row: the kubelet records an Event for each failure, and restarts the guard
// after three.
func (s *probeStatus) liveness() answer {
	if len(s.pending) == 0 || s.returned {
		s.returned = false
		return answer{true, "ok"}
	}
	text := s.message()
	s.pending, s.dropped, s.returned = nil, 0, true
	return answer{false, text}
}

// unreported returns what no probe has returned, for the guard's own termination
// message; empty: nothing. When the last container of a pod has terminated, the
// kubelet probes no more.
func (s *probeStatus) unreported() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.message()
}

// message returns all pending messages in one text.
func (s *probeStatus) message() string {
	text := strings.Join(s.pending, "; ")
	if s.dropped > 0 {
		text = fmt.Sprintf("(%d older messages are in the guard's log) %s", s.dropped, text)
	}
	return truncate(text, maxEventMessage)
}

// truncate cuts a text at so many bytes.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

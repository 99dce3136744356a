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
	probeStatus    probe = "status"
	probeStartup   probe = "startup"
	probeLiveness  probe = "liveness"
	probeReadiness probe = "readiness"
)

const (
	// stuckAfter is how long the loop may go without a look: some ten times what
	// the slowest look and the longest interval take together.
	stuckAfter = 60 * time.Second
	// longestMessage is what one Event holds, less what the kubelet writes before
	// it.
	longestMessage = 900
)

// answer is what a probe gets.
type answer struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// board is where the loop leaves what probes ask for. The zero value is a guard
// that has not looked yet. It is safe for concurrent use.
type board struct {
	mu      sync.Mutex
	looked  time.Time
	blind   string
	due     []string // sentences that no probe has carried yet
	dropped int
	carried bool // the last liveness probe carried a message
}

// saw notes that the loop goes on.
func (b *board) saw(now time.Time, blind string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked, b.blind = now, blind
}

// post leaves a sentence for the next liveness probe.
func (b *board) post(sentence string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const most = 16
	b.due = append(b.due, sentence)
	if len(b.due) > most {
		b.due, b.dropped = b.due[1:], b.dropped+1
	}
}

// answer answers a probe.
//
// A message fails one liveness probe, and never two in a row: the kubelet writes
// an Event for each failure, and starts the guard again after three.
func (b *board) answer(p probe, now time.Time) answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looked.IsZero() {
		return answer{false, "the guard has not looked at the devices yet"}
	}
	if late := now.Sub(b.looked); late > stuckAfter {
		return answer{false, fmt.Sprintf("the guard has not looked at the devices for %s", guard.Span(late))}
	}
	switch p {
	case probeLiveness:
		return b.carry()
	case probeReadiness, probeStatus:
		if b.blind != "" {
			return answer{false, "gpuslice cannot hold this pod to its slice: " + b.blind}
		}
	}
	return answer{true, "guarding"}
}

// carry hands out the messages that are due.
func (b *board) carry() answer {
	if len(b.due) == 0 || b.carried {
		b.carried = false
		return answer{true, "guarding"}
	}
	text := b.message()
	b.due, b.dropped, b.carried = nil, 0, true
	return answer{false, text}
}

// left returns what no probe has carried, for the guard's last words; empty:
// nothing. When the last container of a pod has ended, the kubelet probes no more.
func (b *board) left() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.message()
}

// message is what is due, in one text.
func (b *board) message() string {
	text := strings.Join(b.due, "; ")
	if b.dropped > 0 {
		text = fmt.Sprintf("(%d older messages are in the guard's log) %s", b.dropped, text)
	}
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "") + "..."
	}
	return text
}

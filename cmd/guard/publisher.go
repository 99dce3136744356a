package main

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// publishPeriod is how often the guard writes that it lives while nothing else
// changes.
const publishPeriod = 5 * time.Second

// publisher writes the answers to probes into the status file. It is safe for
// concurrent use, and never waits for a probe.
type publisher struct {
	file       *statusFile   // nil: it could not be opened, and probes fail
	longest    time.Duration // that a termination may take
	log        *slog.Logger
	mu         sync.Mutex
	status     probeStatus // the guard's own; its messages are not in the file yet
	written    time.Duration
	failed     bool
	beganWith  *guard.Order
	deliveries deliveries
	overdue    bool
}

// observe notes that the loop goes on, and its present step.
func (p *publisher) observe(s guard.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.status
	p.status.SampledAt, p.status.NotEnforcing = proc.SinceBoot(), s.NotEnforcing()
	switch {
	case s.InProgress == nil:
		p.status.StuckFrom = 0
	case p.status.StuckFrom == 0 || s.InProgress != p.beganWith:
		p.status.StuckFrom = p.status.SampledAt + p.longest
	}
	p.beganWith = s.InProgress
	if p.deliveries.isToRepeat(p.status.NotEnforcing, p.status.SampledAt) {
		p.status.enqueue(cannotEnforce + p.status.NotEnforcing)
	}
	p.overdue = isQuiet(s) && p.deliveries.overdue(p.status.SampledAt)
	changed := p.status.NotEnforcing != before.NotEnforcing || p.status.StuckFrom != before.StuckFrom || len(p.status.Pending) > 0
	if changed || p.status.SampledAt-p.written >= publishPeriod {
		p.publish()
	}
}

// enqueue adds a message for the next liveness probe.
func (p *publisher) enqueue(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.enqueue(message)
	p.publish()
}

// enqueueTermination adds a message that has to arrive at the API server.
func (p *publisher) enqueueTermination(message string) {
	p.mu.Lock()
	p.deliveries.add(message, proc.SinceBoot())
	p.mu.Unlock()
	p.enqueue(message)
}

// isOverdue reports whether the guard should end, so that its termination message
// brings the messages that probes did not.
func (p *publisher) isOverdue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.overdue
}

// publish writes the file, or leaves it to the next sample where a probe has it.
func (p *publisher) publish() {
	if p.file == nil {
		return
	}
	err := p.file.update(func(inFile *probeStatus) {
		own := p.status
		inFile.SampledAt, inFile.NotEnforcing, inFile.StuckFrom, inFile.Undelivered = own.SampledAt, own.NotEnforcing, own.StuckFrom, p.deliveries.messages()
		inFile.Dropped += own.Dropped
		inFile.enqueue(own.Pending...)
	})
	switch {
	case err == nil:
		p.status.Pending, p.status.Dropped, p.written, p.failed = nil, 0, p.status.SampledAt, false
	case !errors.Is(err, errLocked) && !p.failed:
		p.failed = true
		p.log.Error("probes get no answer", "error", err)
	}
}

// unreported returns messages that may not have arrived, for the guard's own
// termination message; empty: none. When the last container of a pod has
// terminated, the kubelet probes no more.
func (p *publisher) unreported() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.status
	left.Undelivered = p.deliveries.messages()
	if p.file != nil {
		_ = p.file.awaitUpdate(func(inFile *probeStatus) {
			inFile.Dropped += p.status.Dropped
			inFile.enqueue(p.status.Pending...)
			inFile.Undelivered = p.deliveries.messages()
			left = *inFile
		})
	}
	return left.unreported()
}

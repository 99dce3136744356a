package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// A kubelet drops the Events of a pod after 25, whatever they are about, so that
// the answer of a probe may never arrive. The termination message of a container
// always does: a guard that learns of no arrival exits once, and the kubelet
// starts it again.

const (
	// arrivalTimeout is twice the time of two liveness probes: the second returns
	// messages that came while the first failed.
	arrivalTimeout = 2 * time.Minute
	// deliveryPause is between two exits: a kubelet starts a container again at once
	// where it did so last more than 10 minutes ago.
	deliveryPause = 15 * time.Minute
	// repeatPeriod is between two messages that the slice is not enforced. A kubelet
	// that drops a pod's Events lets one through in five minutes, whichever comes
	// first.
	repeatPeriod = arrivalTimeout
	maxRepeats   = 60
	// maxUndelivered is the room of a termination message beside the status.
	maxUndelivered = 4
)

// deliveries are the terminations whose messages have not arrived at the API
// server yet. It is not safe for concurrent use.
type deliveries struct {
	path        string        // of the pod's observation, which the kubelet projects; no file: arrivals are not known
	notBefore   time.Duration // since boot: when the guard may end
	undelivered []delivery    // oldest first
	repeatAt    time.Duration // since boot: when to say again that the slice is not enforced; zero: it is
	repeats     int
}

type delivery struct {
	message string
	dueAt   time.Duration // since boot
}

// add adds a message that is to arrive.
func (d *deliveries) add(message string, now time.Duration) {
	d.undelivered = append(d.undelivered, delivery{message, now + arrivalTimeout})
	d.undelivered = d.undelivered[max(0, len(d.undelivered)-maxUndelivered):]
}

// messages returns the messages that have not arrived.
func (d *deliveries) messages() (out []string) {
	for _, u := range d.undelivered {
		out = append(out, u.message)
	}
	return out
}

// overdue reports whether the guard should end for the messages to arrive.
func (d *deliveries) overdue(now time.Duration) bool {
	isDue := func(u delivery) bool { return now >= u.dueAt }
	if now < d.notBefore || !slices.ContainsFunc(d.undelivered, isDue) {
		return false
	}
	o, err := readObservation(d.path)
	if err != nil {
		d.notBefore = now + deliveryPause
		return false
	}
	d.undelivered = slices.DeleteFunc(d.undelivered, func(u delivery) bool { return o.has(u.message) })
	return slices.ContainsFunc(d.undelivered, isDue)
}

// isToRepeat reports whether the guard should say again that it cannot enforce the
// slice, for a reason that it gave once: "" while it can.
func (d *deliveries) isToRepeat(reason string, now time.Duration) bool {
	switch {
	case reason == "":
		d.repeatAt, d.repeats = 0, 0
		return false
	case d.repeatAt == 0:
		d.repeatAt = now + repeatPeriod
		return false
	case now < d.repeatAt || d.repeats >= maxRepeats:
		return false
	}
	d.repeatAt = now + repeatPeriod
	o, err := readObservation(d.path)
	if err != nil || slices.ContainsFunc(o.Notices, func(n notice) bool { return n.Kind == "not-enforcing" }) {
		return false
	}
	d.repeats++
	return true
}

// observation is the part of the pod's observation that the guard reads.
type observation struct {
	Notices      []notice
	Terminations []struct{ Text string }
}

type notice struct{ Kind string }

// readObservation reads the file at that path. One that is no observation is empty.
func readObservation(path string) (o observation, err error) {
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &o) != nil {
		return observation{}, err
	}
	return o, nil
}

// has reports whether the observation has the message of a termination, or its
// beginning.
func (o observation) has(message string) bool {
	return slices.ContainsFunc(o.Terminations, func(t struct{ Text string }) bool {
		beginning := strings.TrimSuffix(t.Text, "...")
		return beginning != "" && strings.HasPrefix(message, beginning)
	})
}

// isQuiet reports whether nothing is left undone when the guard exits: no
// container is over its limit.
func isQuiet(s guard.State) bool {
	return s.InProgress == nil && !slices.ContainsFunc(s.Usages, func(u guard.Usage) bool { return !u.OverSince.IsZero() })
}

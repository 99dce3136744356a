package idle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// Period is how often the devices' activity is read. The driver remembers for
// longer.
const Period = 10 * time.Second

// longestGap is how far apart two readings may be: beyond it the driver may have
// forgotten activity.
const longestGap = 3 * Period

// Reading is the devices' activity since the last reading, and their lists.
type Reading struct {
	At         time.Time
	Sample     node.Sample
	Activities []guard.Activity      // of the devices that report it
	Promised   func(uid string) bool // the pod was promised a slice
}

// Pod is a pod that was promised slices, with its last seen use.
type Pod struct {
	node.Pod
	Usages []guard.Usage
}

// State is the state that Step carries from one reading to the next of one pod. The
// zero value is a pod that was never read. Step never changes its
// argument.
type State struct {
	readAt time.Time
	clocks map[string]clock // by container
}

// Step takes in a reading. It returns the next state, and the slices whose owners
// are to be notified.
func Step(s State, p Pod, r Reading) (State, []Notice) {
	next := State{r.At, map[string]clock{}}
	known := !s.readAt.IsZero() && r.At.Sub(s.readAt) <= longestGap
	var notices []Notice
	for _, container := range p.Limits.Containers {
		before, uses := s.clocks[container.Name], r.usesOf(p.Pod, container.Name)
		if !known || !r.isQuiet(p, container.Name) {
			next.clocks[container.Name] = clock{uses: uses}
			continue
		}
		still := !grew(before.uses, uses) && !r.mayHaveRun(p.Pod, container.Name)
		after, notify := before.advance(interval{s.readAt, r.At, still}, p.Limits)
		after.uses = uses
		next.clocks[container.Name] = after
		if notify {
			notices = append(notices, Notice{p.Pod, container, r.At.Sub(after.idleSince)})
		}
	}
	return next, notices
}

// Due returns the containers whose processes are to be terminated, by name.
func (s State) Due() (due []guard.Idle) {
	for _, name := range slices.Sorted(maps.Keys(s.clocks)) {
		if c := s.clocks[name]; c.terminate {
			due = append(due, guard.Idle{Container: name, Since: c.quietSince, For: s.readAt.Sub(c.quietSince)})
		}
	}
	return due
}

// Idle returns for how long nothing has run, by the names of the containers in
// which nothing does.
func (s State) Idle() map[string]time.Duration {
	idle := map[string]time.Duration{}
	for name, c := range s.clocks {
		if !c.idleSince.IsZero() {
			idle[name] = s.readAt.Sub(c.idleSince)
		}
	}
	return idle
}

// Notice is about a slice in which nothing has run for as long as its policy
// allows without one.
type Notice struct {
	Pod       node.Pod
	Container limits.Container
	For       time.Duration
}

// Message returns the text for the pod's owner.
func (n Notice) Message() string {
	held := guard.FormatBytes(n.Container.SliceBytes)
	if n.Container.GPUs > 1 {
		held += fmt.Sprintf(" on each of %d GPUs", n.Container.GPUs)
	}
	text := fmt.Sprintf("nothing of %s ran on a GPU for %s, and its slice holds %s: delete the pod if nobody needs it",
		n.Container.Name, guard.FormatPeriod(n.For), held)
	if l := n.Pod.Limits; l.IdleTerminate > 0 && !l.DryRun {
		text += fmt.Sprintf("; what it holds of a GPU is terminated after %s of this (policy idle.terminate)",
			guard.FormatPeriod(l.IdleTerminate))
	}
	return text
}

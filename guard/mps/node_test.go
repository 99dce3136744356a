package mps

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

func TestNodeTerminate(t *testing.T) {
	t.Parallel()
	const one = "1024 900 4026531836 ./train\n2048 900 4026530000 ./neighbor\n"
	const two = one + "1025 900 4026531999 ./train\n"
	order := guard.Order{Kind: guard.TerminateProcess, Container: "trainer", MPS: true, Process: guard.Process{PID: 1024, MPS: true}}
	container := order
	container.Kind = guard.TerminateContainer
	plain := order
	plain.MPS = false
	for name, tc := range map[string]struct {
		clients  string
		order    guard.Order
		fallback limits.MPSTermination
		spoil    string
		want     guard.Result
		before   string
		reason   string
	}{
		"one client of several": {two, order, limits.MPSTerminationObserve, "",
			guard.Terminated, "ps\nterminate_client 900 1024\n", ""},
		"a client on two devices is one": {one + "1024 900 4026531836 ./train\n", order, limits.MPSTerminationObserve, "",
			guard.Terminated, "ps\nterminate_client 900 1024\n", ""},
		"a container of two clients": {two, container, limits.MPSTerminationObserve, "", guard.Terminated,
			"ps\nterminate_client 900 1024\nterminate_client 900 1025\n", ""},
		"one that evaded the daemon": {"2048 900 4026530000 ./neighbor\n", order,
			limits.MPSTerminationObserve, "", guard.Terminated, "ps\n", ""},
		"a daemon without clients": {"", order, limits.MPSTerminationObserve, "", guard.Terminated, "ps\n", ""},
		"a daemon with PIDs of its own": {"1024 7 4026531836 ./train\n", order, limits.MPSTerminationObserve,
			"", guard.Skipped, "", "no MPS server of the node"},
		"a daemon that leaves clients out": {one, order, limits.MPSTerminationObserve, "mute", guard.Skipped, "", "answered nothing"},
		"a dead daemon": {one, order, limits.MPSTerminationObserve, "dead",
			guard.Skipped, "", "Cannot find MPS control daemon"},
		"a daemon that does not answer":      {one, order, limits.MPSTerminationObserve, "slow", guard.Skipped, "", "no answer within"},
		"a dead daemon, where policy signal": {one, order, limits.MPSTerminationSignal, "dead", guard.Terminated, "", ""},
		"a process under no daemon":          {one, plain, limits.MPSTerminationObserve, "", guard.Terminated, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control := daemon(t, tc.clients)
			control.Limit = 2 * time.Second
			if tc.spoil != "" {
				put(t, control.PipeDirectory, tc.spoil, "")
				control.Limit = 200 * time.Millisecond
			}
			next := &signals{control: control, t: t}
			h := &NodeTerminator{Daemons: []Daemon{control}, Fallback: tc.fallback, Next: next,
				IsServer: func(pid int) bool { return pid == 900 },
				Named: func(o guard.Order) []int {
					if o.Kind == guard.TerminateContainer {
						return []int{1024, 1025, 1026}
					}
					return []int{o.Process.PID}
				}}
			target, _ := h.Acquire(t.Context(), tc.order)
			out := target.Terminate(t.Context())
			checkTermination(t, next, out, tc.want, tc.reason, tc.before)
		})
	}
}

func TestNodeTerminateOfTwoDaemons(t *testing.T) {
	t.Parallel()
	theirs, ours, dead := daemon(t, "2048 900 4026530000 ./neighbor\n"), daemon(t, "1024 901 4026531836 ./train\n"), daemon(t, "")
	put(t, dead.PipeDirectory, "dead", "")
	order := guard.Order{Kind: guard.TerminateProcess, MPS: true, Process: guard.Process{PID: 1024}}
	terminate := func(daemons ...Daemon) guard.Outcome {
		h := &NodeTerminator{Daemons: daemons, Next: &signals{control: ours, t: t}, IsServer: func(int) bool { return true },
			Named: func(o guard.Order) []int { return []int{o.Process.PID} }}
		target, _ := h.Acquire(t.Context(), order)
		return target.Terminate(t.Context())
	}
	if out := terminate(theirs, ours, dead); out.Result != guard.Skipped || strings.Contains(sent(t, ours), "terminate_client") {
		t.Errorf("beside a dead daemon: %+v, sent %q", out, sent(t, ours))
	}
	if out := terminate(theirs, ours); out.Result != guard.Terminated || !strings.Contains(sent(t, ours), "terminate_client 901 1024") {
		t.Errorf("of the second daemon: %+v, sent %q", out, sent(t, ours))
	}
	if out := terminate(); out.Result != guard.Skipped || !strings.Contains(out.Reason, "no MPS daemon") {
		t.Errorf("without a daemon: %+v", out)
	}
	if strings.Contains(sent(t, theirs), "terminate_client") {
		t.Error("a neighbor's client was terminated")
	}
}

package idle

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// anyReading is a reading of a node on which anything may run. gap is the time since the one before.
func anyReading(r *rand.Rand, at time.Time) (reading Reading, gap time.Duration) {
	gap = []time.Duration{Period, Period, Period, Period, longestGap, longestGap + time.Second}[r.IntN(6)]
	d := node.Device{Device: guard.Device{ID: "gpu0"}}
	a := guard.Activity{Device: "gpu0", Complete: r.IntN(30) > 0, Ran: map[int]bool{}, Sampled: map[int]bool{}}
	for pid := range 3 {
		member := cgroup.Member{PodUID: "u-1", ContainerID: []string{"id-a", "id-b", "id-other"}[pid]}
		d.Processes = append(d.Processes, node.Process{Process: guard.Process{PID: pid, UsedBytes: 1, MPS: r.IntN(60) == 0}, Member: member})
		a.Ran[pid], a.Sampled[pid] = r.IntN(40) == 0, r.IntN(40) == 0
	}
	if r.IntN(50) == 0 {
		d.Fault = "it is lost"
	}
	reading = Reading{At: at.Add(gap), Sample: node.Sample{Devices: []node.Device{d}},
		Activities: []guard.Activity{a}, Promised: func(string) bool { return true }}
	if r.IntN(50) == 0 {
		reading.Activities = nil
	}
	return reading, gap
}

func anyPod() Pod {
	p := Pod{Pod: node.Pod{UID: "u-1", Containers: map[string]string{"id-a": "a", "id-b": "b"}}, Usages: []guard.Usage{{Device: "gpu0"}}}
	p.Limits = limits.Limits{IdleReport: time.Minute, IdleTerminate: 2 * time.Minute,
		Containers: []limits.Container{{Name: "a", GPUs: 1}, {Name: "b", GPUs: 1}}}
	return p
}

// TestStep: whatever runs, nothing is due of a container that ran, or may have, within the time that its policy allows, nor before its
// owner was notified; and a step changes no state.
func TestStep(t *testing.T) {
	t.Parallel()
	dues := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		p, at, state := anyPod(), epoch, State{}
		ran, notified := map[string]time.Time{"a": at, "b": at}, map[string]time.Time{}
		for range 200 {
			reading, gap := anyReading(r, at)
			before := reflect.ValueOf(state.clocks).Len()
			next, notices := Step(state, p, reading)
			again, _ := Step(state, p, reading)
			if !reflect.DeepEqual(next, again) || len(state.clocks) != before {
				t.Fatalf("seed %d: two steps from one state differ", seed)
			}
			at, state = reading.At, next
			for pid, container := range []string{"a", "b", "*"} {
				d := reading.Sample.Devices[0]
				doubt := gap > longestGap || d.Fault != "" || len(reading.Activities) == 0 || !reading.Activities[0].Complete
				if doubt || reading.Activities[0].Ran[pid] || reading.Activities[0].Sampled[pid] || d.Processes[pid].MPS {
					for _, name := range []string{"a", "b"} {
						if container == name || container == "*" || doubt {
							ran[name] = at
						}
					}
				}
			}
			for _, n := range notices {
				notified[n.Container.Name] = at
			}
			for _, due := range state.Due() {
				dues++
				if since := at.Sub(ran[due.Container]); since < p.Limits.IdleTerminate || due.For > since {
					t.Fatalf("seed %d: %s is due after %s, and ran %s ago", seed, due.Container, due.For, since)
				}
				if when := notified[due.Container]; when.IsZero() || !when.Before(at) || when.Before(ran[due.Container]) {
					t.Fatalf("seed %d: %s is due, and its owner was notified at %s", seed, due.Container, when)
				}
			}
		}
	}
	if dues == 0 {
		t.Error("nothing was ever due")
	}
}

// TestStepAfterTheNotice: nothing is due in the reading that notifies, either.
func TestStepAfterTheNotice(t *testing.T) {
	t.Parallel()
	l := limits.Limits{IdleReport: time.Hour, IdleTerminate: time.Hour}
	c, notify := clock{}.advance(interval{epoch, epoch.Add(time.Hour), true}, l)
	if !notify || c.terminate {
		t.Errorf("the first reading: notifies %v, terminates %v", notify, c.terminate)
	}
	if c, notify = c.advance(interval{epoch.Add(time.Hour), epoch.Add(time.Hour + Period), true}, l); notify || !c.terminate {
		t.Errorf("the next: notifies %v, terminates %v", notify, c.terminate)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	p, state := anyPod(), State{}
	for i := range time.Duration(5) {
		quiet := Reading{At: epoch.Add(i * Period), Sample: node.Sample{Devices: []node.Device{{Device: guard.Device{ID: "gpu0"}}}},
			Activities: []guard.Activity{{Device: "gpu0", Complete: true}}}
		state, _ = Step(state, p, quiet)
	}
	if got := state.Idle(); got["a"] != 4*Period || got["b"] != 4*Period || len(got) != 2 {
		t.Errorf("idle %v", got)
	}
	if got := state.Due(); !slices.Equal(got, nil) {
		t.Errorf("due %v", got)
	}
}

// TestQuietNeedsDevices has a sample with a fault, and one without devices: neither proves that nothing ran.
func TestQuietNeedsDevices(t *testing.T) {
	t.Parallel()
	devices, known := []node.Device{{Device: guard.Device{ID: "gpu0"}}}, []guard.Activity{{Device: "gpu0", Complete: true}}
	for name, tc := range map[string]struct {
		sample node.Sample
		want   bool
	}{
		"a device":              {node.Sample{Devices: devices}, true},
		"a fault":               {node.Sample{Devices: devices, Fault: "driver not loaded"}, false},
		"no device":             {node.Sample{}, false},
		"no device and a fault": {node.Sample{Fault: "driver not loaded"}, false},
	} {
		if got := (Reading{Sample: tc.sample, Activities: known}).isQuiet(anyPod(), "a"); got != tc.want {
			t.Errorf("%s: quiet %v", name, got)
		}
	}
}

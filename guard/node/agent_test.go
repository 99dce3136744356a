package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/mps"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// still returns a node on which nothing happens, with a pod for each name, each
// promised 8Gi of one GPU for its trainer.
func still(pods ...string) *world {
	w := newWorld(1)
	w.still, w.pods, w.processes = true, nil, map[int]*process{}
	for i, name := range pods {
		p := &pod{uid: fmt.Sprintf("%08d-0000-4000-8000-000000000000", i), promised: true, limits: limits.Default(),
			ids: map[string]string{"trainer": fmt.Sprintf("%064x", name)}}
		p.limits.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 * gib, LimitBytes: 8 * gib, GPUs: 1}}
		p.limits.TermGrace = 0
		p.report()
		w.pods = append(w.pods, p)
	}
	return w
}

// run adds a process to a container of a pod, that uses so much of each device.
func (w *world) run(pid int, in *pod, container string, gibs ...int64) *process {
	w.clock++
	p := &process{pid: pid, start: w.clock, alive: true, bytes: make([]int64, w.devices)}
	for i, n := range gibs {
		p.bytes[i] = n * gib
	}
	if in != nil {
		p.at = place{in.uid, in.ids[container]}
	}
	w.processes[pid] = p
	return p
}

// record is what the agent reported, by pod.
type record struct {
	messages map[string][]string
	left     []string
	samples  []node.Sample
}

func (r *record) Pod(p node.Pod) guard.Reporter { return podRecord{r, p.UID} }
func (r *record) Left(p node.Pod)               { r.left = append(r.left, p.UID) }
func (r *record) Sampled(s node.Sample)         { r.samples = append(r.samples, s) }

type podRecord struct {
	*record
	uid string
}

func (r podRecord) Report(e guard.Event)               { r.messages[r.uid] = append(r.messages[r.uid], e.Message()) }
func (r podRecord) Ordered(guard.Order)                {}
func (r podRecord) Observed(guard.Sample, guard.State) {}

// watch runs an agent over the node for a time.
func (w *world) watch(t *testing.T, d time.Duration, change func(*node.Agent)) *record {
	t.Helper()
	n, err := proc.NewNode(w)
	if err != nil {
		t.Fatal(err)
	}
	r := &record{messages: map[string][]string{}}
	a := &node.Agent{Reader: devicesReader{w}, Node: n, Pods: w, Reporter: r, Open: w.open}
	if change != nil {
		change(a)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	a.Run(ctx)
	return r
}

func TestAgentTerminatesThePodOverItsSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := still("hog", "neighbor")
		hog, small := w.run(10, w.pods[0], "trainer", 9), w.run(11, w.pods[0], "trainer", 1)
		neighbor, others := w.run(20, w.pods[1], "trainer", 7), w.run(30, nil, "", 40)
		r := w.watch(t, time.Minute, nil)
		if hog.alive || !small.alive || !neighbor.alive || !others.alive || w.violation != "" {
			t.Errorf("hog %v, beside it %v, neighbor %v, others %v: %s", hog.alive, small.alive, neighbor.alive, others.alive, w.violation)
		}
		want := "gpuslice terminated python (pid 10, 9Gi) in trainer: 10Gi of 8Gi on gpu0 for 2s"
		if got := r.messages[w.pods[0].uid]; !slices.Contains(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
		if got := r.messages[w.pods[1].uid]; len(got) > 0 {
			t.Errorf("of the neighbor: %q", got)
		}
	})
}

func TestAgentHoldsTheNumberOfGPUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := still("wide")
		first, second := w.run(10, w.pods[0], "trainer", 6), w.run(11, w.pods[0], "trainer", 0, 3)
		w.watch(t, time.Minute, nil)
		if !first.alive || second.alive {
			t.Errorf("on the device it was given %v, on the other %v", first.alive, second.alive)
		}
	})
}

// TestAgentLeaves: what has no promise, or is only observed, is never signaled.
func TestAgentLeaves(t *testing.T) {
	for name, change := range map[string]func(*world, *node.Agent){
		"a pod without a promise": func(w *world, _ *node.Agent) { w.pods[0].promised = false },
		"everything in a dry run": func(_ *world, a *node.Agent) { a.DryRun = true },
		"a pod in a dry run":      func(w *world, _ *node.Agent) { w.pods[0].limits.DryRun = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := still("hog")
				hog := w.run(10, w.pods[0], "trainer", 9)
				r := w.watch(t, time.Minute, func(a *node.Agent) { change(w, a) })
				if !hog.alive || w.signaled > 0 {
					t.Error("it was signaled")
				}
				last := r.samples[len(r.samples)-1].Devices[0].Processes
				if len(last) != 1 || last[0].Member.PodUID != w.pods[0].uid {
					t.Errorf("it is not counted: %+v", last)
				}
			})
		})
	}
}

func TestAgentFollowsThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := still("gone", "later")
		gone, later := w.pods[0], w.pods[1]
		w.pods = w.pods[:1]
		hog := w.run(10, later, "trainer", 9)
		time.AfterFunc(10*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !hog.alive {
				t.Error("it was signaled before its pod was known")
			}
			w.pods = []*pod{later}
		})
		r := w.watch(t, time.Minute, nil)
		if hog.alive || !slices.Equal(r.left, []string{gone.uid}) {
			t.Errorf("the hog lives: %v, left %q", hog.alive, r.left)
		}
	})
}

// A driver lists memory under the PID of who allocated it, for as long as a child of
// his holds it on. Another pod's process gets the PID meanwhile.
func TestAgentLeavesWhoHasAnothersPID(t *testing.T) {
	for _, c := range []struct {
		name      string
		successor func(w *world) *process // after ten seconds; nil: there is none
		want      [2]string               // to the pod that allocated it, and to the other
	}{
		{"of another pod", func(w *world) *process { return w.run(10, w.pods[1], "trainer") },
			[2]string{"12Gi in use on gpu0 is nobody's: the process of trainer that had pid 10 has exited, and another may hold it",
				"12Gi in use on gpu0 is nobody's: it was in use before the process of trainer began that has pid 10 now"}},
		{"of the same container", func(w *world) *process { return w.run(10, w.pods[0], "trainer") },
			[2]string{"12Gi in use on gpu0 is nobody's: the process of trainer that had pid 10 has exited, and another may hold it"}},
		{"of none", nil,
			[2]string{"12Gi in use on gpu0 is nobody's: the process of trainer that had pid 10 has exited, and another may hold it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := still("leaves memory", "neighbor")
				w.pods[0].limits.Containers[0].SliceBytes = 16 * gib
				leaver, neighbor := w.run(10, w.pods[0], "trainer", 12), w.run(20, w.pods[1], "trainer", 6)
				var successor *process
				time.AfterFunc(10*time.Second, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.exit(leaver)
					w.stale[0][10] = stale{leaver.at, 12 * gib}
					if c.successor != nil {
						successor = c.successor(w)
					}
				})
				r := w.watch(t, 30*time.Second, nil)
				if !neighbor.alive || successor != nil && !successor.alive || w.signaled > 0 {
					t.Errorf("%d signals; neighbor %v", w.signaled, neighbor.alive)
				}
				for i, want := range c.want {
					if got := strings.Join(r.messages[w.pods[i].uid], "; "); got != want {
						t.Errorf("pod %d: %q, want %q", i, got, want)
					}
				}
			})
		})
	}
}

// TestAgentDeviceFault: a device that fails is reported to who uses it.
func TestAgentDeviceFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := still("on it", "elsewhere", "nowhere", "may be on it")
		w.pods[3].limits.Containers[0].GPUs = 2
		w.run(40, w.pods[3], "trainer", 0, 4)
		w.run(10, w.pods[0], "trainer", 4)
		w.run(20, w.pods[1], "trainer", 0, 4)
		time.AfterFunc(20*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lost = "gpu0"
		})
		r := w.watch(t, time.Minute, nil)
		want := []string{"gpuslice cannot enforce this pod's slice on gpu0: the device does not answer"}
		for i, messages := range [][]string{want, nil, want, want} {
			if got := r.messages[w.pods[i].uid]; !slices.Equal(got, messages) {
				t.Errorf("pod %d: %q, want %q", i, got, messages)
			}
		}
	})
}

// mapped reads a process that maps memory which another exports: it is listed with it, and the device has it once.
type mapped struct {
	devicesReader
	pid int
}

// Read implements node.Reader.
func (m mapped) Read(ctx context.Context, maxAge time.Duration) ([]guard.Device, error) {
	devices, err := m.devicesReader.Read(ctx, maxAge)
	for i := range devices {
		for _, p := range devices[i].Processes {
			if p.PID == m.pid {
				devices[i].UsedBytes -= p.UsedBytes
			}
		}
	}
	return devices, err
}

// A pod's own memory that is listed twice is not counted among what others share: it is certain, and nothing is reported.
func TestAgentKnowsWhatAPodShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := still("shares", "neighbor")
		exporter := w.run(10, w.pods[0], "trainer", 6)
		w.run(20, w.pods[1], "trainer", 7) // so that the device has more in use than the limit
		time.AfterFunc(10*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.run(11, w.pods[0], "trainer", 6)
		})
		r := w.watch(t, time.Minute, func(a *node.Agent) { a.Reader = mapped{devicesReader{w}, 11} })
		if got := r.messages[w.pods[0].uid]; len(got) > 0 || !exporter.alive || !w.processes[11].alive {
			t.Errorf("reported %q; the exporter lives: %v, who maps it: %v", got, exporter.alive, w.processes[11].alive)
		}
	})
}

// endsPod is the handle of a process with which its pod ends.
type endsPod struct {
	proc.Handle
	world *world
}

// Signal implements proc.Handle.
func (e endsPod) Signal(sig syscall.Signal) error {
	err := e.Handle.Signal(sig)
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	e.world.pods = nil
	return err
}

// A pod that ends with what was terminated is gone before the outcome is known.
func TestAgentReportsOfAPodThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := still("hog")
		hog := w.pods[0]
		w.run(10, hog, "trainer", 9)
		r := w.watch(t, time.Minute, func(a *node.Agent) {
			a.Open = func(pid int) (proc.Handle, error) {
				h, err := w.open(pid)
				if err != nil {
					return nil, err
				}
				return endsPod{h, w}, nil
			}
		})
		want := "gpuslice terminated python (pid 10, 9Gi) in trainer: 9Gi of 8Gi on gpu0 for 2s"
		if got := r.messages[hog.uid]; !slices.Contains(got, want) || !slices.Equal(r.left, []string{hog.uid}) {
			t.Errorf("reported %q, want %q; left %q", got, want, r.left)
		}
	})
}

func TestGiven(t *testing.T) {
	p := node.Pod{Limits: limits.Limits{Containers: []limits.Container{{Name: "init", GPUs: 1}, {Name: "main", GPUs: 2}}}}
	if got := p.Given(); got != 2 { // an init container's devices go to those after it
		t.Errorf("given %d devices at least, want 2", got)
	}
}

// clients is an MPS daemon.
type clients struct {
	list       []mps.Client
	terminated []int
}

func (c *clients) Clients(context.Context) ([]mps.Client, error) { return c.list, nil }
func (c *clients) Terminate(_ context.Context, client mps.Client) error {
	c.terminated = append(c.terminated, client.PID)
	return nil
}

func TestAgentTerminatesMPSClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := still("client", "evader", "neighbor")
		for _, p := range w.pods {
			p.limits.ExpectMPS = true
		}
		client, evader, neighbor := w.run(10, w.pods[0], "trainer", 9), w.run(20, w.pods[1], "trainer", 9), w.run(30, w.pods[2], "trainer", 7)
		server := w.run(40, nil, "")
		server.command = "nvidia-cuda-mps"
		daemon := &clients{list: []mps.Client{{PID: 10, Server: 40}, {PID: 30, Server: 40}}}
		w.watch(t, time.Minute, func(a *node.Agent) { a.Daemons = func() []mps.Daemon { return []mps.Daemon{daemon} } })
		if client.alive || evader.alive || !neighbor.alive || !slices.Equal(daemon.terminated, []int{10}) {
			t.Errorf("client %v, evader %v, neighbor %v; through the daemon %v", client.alive, evader.alive, neighbor.alive, daemon.terminated)
		}
	})
}

// TestAgentAsksWhoIsIdle: of pods whose policy terminates what is idle, and where
// somebody knows.
func TestAgentAsksWhoIsIdle(t *testing.T) {
	for _, c := range []struct {
		name   string
		period time.Duration
		known  bool
		asked  bool
	}{
		{"a policy, and nobody who knows", time.Hour, false, false},
		{"no policy", 0, true, false},
		{"both", time.Hour, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := still("idle")
				w.pods[0].limits.IdleTerminate = c.period
				idle := w.run(10, w.pods[0], "trainer", 7)
				asked := map[bool]bool{} // whether again, before the signal
				w.watch(t, time.Minute, func(a *node.Agent) {
					if c.known {
						a.Idle = func(_ context.Context, _ string, again bool) []guard.Idle {
							asked[again] = true
							return []guard.Idle{{Container: "trainer", Since: time.Now().Add(-c.period), For: c.period}}
						}
					}
				})
				if asked[false] != c.asked || asked[true] != c.asked || !c.asked && !idle.alive {
					t.Errorf("asked %v, again %v, it lives: %v", asked[false], asked[true], idle.alive)
				}
			})
		})
	}
}

// TestAgentFakeMPSServer: a tenant that calls itself a server is none.
func TestAgentFakeMPSServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := still("client", "fake")
		for _, p := range w.pods {
			p.limits.ExpectMPS = true
		}
		client, fake := w.run(10, w.pods[0], "trainer", 9), w.run(40, w.pods[1], "trainer")
		fake.command = "nvidia-cuda-mps"
		daemon := &clients{list: []mps.Client{{PID: 10, Server: 40}}}
		w.watch(t, time.Minute, func(a *node.Agent) { a.Daemons = func() []mps.Daemon { return []mps.Daemon{daemon} } })
		if !client.alive || len(daemon.terminated) > 0 {
			t.Errorf("client %v; through the daemon %v", client.alive, daemon.terminated)
		}
	})
}

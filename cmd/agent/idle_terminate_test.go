package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/idle"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/proc"
	"github.com/gpuslice/gpuslice/guard/status"
)

// quietNode is a node with gpu0 and gpu1, on which pod u-1 has the containers
// trainer and beside, of which trainer has a slice of one GPU.
type quietNode struct {
	mu        sync.Mutex
	pod       node.Pod
	processes map[int]*tenant
	unread    bool // the driver does not report what runs
	unknown   bool // somebody ran who is not listed
	lost      bool // gpu0 cannot be read
	began     time.Time
	onOpen    func() // happens when a process was opened
	signals   int    // to anybody
}

// tenant is a process on gpu0.
type tenant struct {
	container, command string
	start              uint64
	gibs               int64
	mps, runs, traces  bool
	signals            []syscall.Signal
}

const podUID = "00000001-0000-4000-8000-000000000000"

func newQuietNode() *quietNode {
	n := &quietNode{began: time.Now(), processes: map[int]*tenant{7: {container: "trainer", start: 1, gibs: 2}, 9: {start: 1, gibs: 20}}}
	n.pod = node.Pod{UID: podUID, Namespace: "team-a", Name: "train",
		Containers: map[string]string{idOf("trainer"): "trainer", idOf("beside"): "beside"}}
	n.pod.Limits = limits.Default()
	n.pod.Limits.Interval = 5 * time.Second
	n.pod.Limits.IdleReport, n.pod.Limits.IdleTerminate = 4*time.Hour, 8*time.Hour
	n.pod.Limits.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	return n
}

// Promised implements node.Pods.
func (n *quietNode) Promised() []node.Pod { return []node.Pod{n.pod} }

// Promise implements node.Pods.
func (n *quietNode) Promise(uid string) (node.Pod, bool) { return n.pod, uid == n.pod.UID }

// devices implements node.Reader.
func (n *quietNode) devices(context.Context, time.Duration) ([]guard.Device, error) {
	time.Sleep(time.Millisecond)
	n.mu.Lock()
	defer n.mu.Unlock()
	gpu0 := guard.Device{ID: "gpu0", Listed: time.Now(), AsOf: 1000, TotalBytes: 80 << 30}
	if n.lost {
		gpu0.Fault = "it is lost"
	}
	for pid, p := range n.processes {
		gpu0.UsedBytes += p.gibs << 30
		gpu0.Processes = append(gpu0.Processes, guard.Process{PID: pid, UsedBytes: p.gibs << 30, Known: true, MPS: p.mps})
	}
	return []guard.Device{gpu0, {ID: "gpu1", Listed: time.Now(), AsOf: 1000, TotalBytes: 80 << 30}}, nil
}

type readerFunc func(context.Context, time.Duration) ([]guard.Device, error)

func (f readerFunc) Read(ctx context.Context, maxAge time.Duration) ([]guard.Device, error) {
	return f(ctx, maxAge)
}

func (n *quietNode) activities(context.Context) []guard.Activity {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unread {
		return []guard.Activity{{Device: "gpu1", Complete: true}}
	}
	a := guard.Activity{Device: "gpu0", Complete: !n.unknown, Ran: map[int]bool{}, Sampled: map[int]bool{}}
	for pid, p := range n.processes {
		if p.runs {
			a.Ran[pid], a.Sampled[pid] = true, true
		}
		if p.traces {
			a.Sampled[pid] = true
		}
	}
	return []guard.Activity{a, {Device: "gpu1", Complete: true}}
}

// source is the node as /proc.
type source struct{ *quietNode }

// Read implements proc.Source.
func (s source) Read(process, file string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, _ := strconv.Atoi(process)
	p := s.processes[pid]
	switch {
	case process == "self" && file == "stat":
		return statOf(900, "agent", 1), nil
	case process == "self":
		return "0::/\n", nil
	case process == "1":
		return "0::/../../../init.scope\n", nil
	case p == nil:
		return "", os.ErrNotExist
	case file == "stat":
		return statOf(pid, p.command, p.start), nil
	case p.container == "":
		return "0::/../../../system.slice/x.service\n", nil
	}
	return "0::/../../pod" + podUID + "/" + idOf(p.container) + "\n", nil
}

func statOf(pid int, command string, start uint64) string {
	if command == "" {
		command = "python"
	}
	return fmt.Sprintf("%d (%s) S 1%s %d 0\n", pid, command, strings.Repeat(" 0", 17), start)
}

// Threads implements proc.Source.
func (source) Threads(int) iter.Seq[int] { return func(func(int) bool) {} }

// PIDs implements proc.Source.
func (source) PIDs() []int { return nil }

// Now implements proc.Source.
func (source) Now() uint64 { return 1000 }

// opened is a process by its pidfd.
type opened struct {
	n   *quietNode
	pid int
	of  *tenant
}

func (n *quietNode) open(pid int) (proc.Handle, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.processes[pid]; p != nil {
		if n.onOpen != nil {
			n.onOpen()
		}
		return opened{n, pid, p}, nil
	}
	return nil, os.ErrProcessDone
}

// Signal implements proc.Handle.
func (o opened) Signal(sig syscall.Signal) error {
	o.n.mu.Lock()
	defer o.n.mu.Unlock()
	o.n.signals++
	o.of.signals = append(o.of.signals, sig)
	delete(o.n.processes, o.pid)
	return nil
}

// Exited implements proc.Handle.
func (o opened) Exited() bool {
	o.n.mu.Lock()
	defer o.n.mu.Unlock()
	return o.n.processes[o.pid] != o.of
}

// Wait implements proc.Handle.
func (o opened) Wait(context.Context, time.Duration) bool { return o.Exited() }

// Release implements proc.Handle.
func (opened) Release() {}

// watch runs an agent over the node, and returns the messages of its Events by
// reason, in order.
func (n *quietNode) watch(t *testing.T, d time.Duration, meanwhile func()) (told []string) {
	t.Helper()
	processes, err := proc.NewNode(source{n})
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	recorder := status.New(n.Promise)
	writer := newEventWriter(t.Context(), client, nodeName)
	reports := &reporter{log: slog.New(slog.NewTextHandler(io.Discard, nil)), events: writer, recorder: recorder,
		bystanders: node.Bystanders{Known: func(string) (node.Pod, bool) { return node.Pod{}, false }}}
	use := &status.UseWatch{Recorder: recorder, Activities: n.activities, Notify: reports.Idle}
	a := &node.Agent{Reader: readerFunc(n.devices), Node: processes, Pods: n, Reporter: reports, Idle: use.Idle, Open: n.open}
	var beside sync.WaitGroup
	beside.Go(func() { use.Run(ctx) })
	if meanwhile != nil {
		beside.Go(meanwhile)
	}
	a.Run(ctx)
	beside.Wait()
	synctest.Wait()
	writer.Close()
	list, err := client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.FirstTimestamp.Compare(b.FirstTimestamp.Time) })
	for _, e := range list.Items {
		if e.Reason != reasonUnmanaged {
			told = append(told, e.Reason+": "+e.Message)
		}
	}
	return told
}

// stages of a slice's idleness, as its Events tell them.
const (
	toldOf     = "GPUSliceIdle: nothing of trainer ran on a GPU for 4h, and its slice holds 8Gi: delete the pod if nobody needs it"
	announced  = toldOf + "; what it holds of a GPU is terminated after 8h of this (policy idle.terminate)"
	terminated = "GPUSliceTerminated: gpuslice terminated python (pid 7, 2Gi) in trainer: nothing of trainer ran on a GPU for 8h, " +
		"since 2000-01-01T00:00:10Z, and policy idle.terminate allows no more; start it again when it has something to run, or have the policy's idle.terminate raised"
)

// at does something to the node after a time.
func (n *quietNode) at(d time.Duration, change func()) {
	time.Sleep(d - time.Since(n.began))
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// forAMinute sets something for a minute, an hour before processes are terminated.
func (n *quietNode) forAMinute(set *bool) {
	n.at(7*time.Hour, func() { *set = true })
	n.at(7*time.Hour+time.Minute, func() { *set = false })
}

// TestIdleTerminates: who holds a slice in which nothing runs gets an Event, and is later
// terminated; within ten hours, and nobody else.
func TestIdleTerminates(t *testing.T) {
	t.Parallel()
	const late = 7*time.Hour + 50*time.Minute
	for name, c := range map[string]struct {
		change func(n *quietNode, p *tenant)
		then   func(n *quietNode, p *tenant)
		want   []string
	}{
		"a process of which nothing ran": {want: []string{announced, terminated}},
		"whose policy does not report": {change: func(n *quietNode, _ *tenant) { n.pod.Limits.IdleReport = 0 },
			want: []string{announced, terminated}},
		"but not in a dry run": {change: func(n *quietNode, _ *tenant) { n.pod.Limits.DryRun = true },
			want: []string{toldOf, strings.NewReplacer("Terminated", "DryRun", "terminated python", "would have terminated python",
				"; start it again when it has something to run, or have the policy's idle.terminate raised",
				"; this is a dry run").Replace(terminated)}},
		"nor without a policy": {change: func(n *quietNode, _ *tenant) { n.pod.Limits.IdleTerminate = 0 },
			want: []string{toldOf}},
		"nor a client of an MPS daemon": {change: func(_ *quietNode, p *tenant) { p.mps = true }},
		"nor one that may be a client": {change: func(n *quietNode, _ *tenant) { n.processes[9].command = "nvidia-cuda-mps" },
			want: []string{announced}},
		"nor where the driver does not report": {change: func(n *quietNode, _ *tenant) { n.unread = true }},
		"nor one beside another that runs": {change: func(n *quietNode, _ *tenant) {
			n.processes[8] = &tenant{container: "trainer", start: 2, gibs: 1, runs: true}
		}},
		"nor beside one without a slice that runs": {change: func(n *quietNode, _ *tenant) {
			n.processes[8] = &tenant{container: "beside", start: 2, gibs: 1, runs: true}
		}},
		"nor one in a container without a name": {change: func(_ *quietNode, p *tenant) { p.container = "unknown" },
			want: []string{announced}},
		"nor where the driver did not report for a minute": {then: func(n *quietNode, _ *tenant) { n.forAMinute(&n.unread) },
			want: []string{announced}},
		"nor where somebody unknown ran for a minute": {then: func(n *quietNode, _ *tenant) { n.forAMinute(&n.unknown) },
			want: []string{announced}},
		"nor on a device that was lost for a minute": {then: func(n *quietNode, _ *tenant) { n.forAMinute(&n.lost) },
			want: []string{announced, "", ""}},
		"nor one of which a trace ran": {then: func(n *quietNode, p *tenant) { n.forAMinute(&p.traces) },
			want: []string{announced}},
		"nor one that allocates memory": {then: func(n *quietNode, p *tenant) { n.at(late, func() { p.gibs++ }) },
			want: []string{announced}},
		"nor beside one that has just come": {then: func(n *quietNode, _ *tenant) {
			n.at(late, func() { n.processes[8] = &tenant{container: "trainer", start: 2, gibs: 1} })
		}, want: []string{announced}},
		"nor one that runs a kernel each hour": {then: func(n *quietNode, p *tenant) {
			for hour := range time.Duration(9) {
				// Between two readings: timers of one instant fire in any order.
				n.at(hour*time.Hour+idle.Period/2, func() { p.runs = true })
				n.at(hour*time.Hour+3*idle.Period/2, func() { p.runs = false })
			}
		}},
		"nor who runs something between the pidfd and the signal": {change: func(n *quietNode, p *tenant) { n.onOpen = func() { p.runs = true } },
			want: []string{announced}},
		"nor who has the PID by then": {change: func(n *quietNode, _ *tenant) {
			n.onOpen = func() { n.processes[7] = &tenant{container: "beside", start: 50, gibs: 2} }
		}, want: []string{announced}},
		"nor whose PID is used again while it is opened": {change: func(n *quietNode, _ *tenant) {
			n.onOpen = func() { n.processes[7] = &tenant{container: "trainer", start: 50, gibs: 2} }
		}, want: []string{announced}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := newQuietNode()
				p := n.processes[7]
				if c.change != nil {
					c.change(n, p)
				}
				told := n.watch(t, 10*time.Hour, func() {
					if c.then != nil {
						c.then(n, p)
					}
				})
				if !matches(told, c.want) {
					t.Errorf("told %q, want %q", told, c.want)
				}
				ended := slices.Contains(c.want, terminated)
				if (n.signals == 1) != ended || n.signals > 1 || (len(p.signals) == 1) != ended {
					t.Errorf("%d signals, of them %v to it", n.signals, p.signals)
				}
			})
		})
	}
}

// matches compares texts; an empty one is any.
func matches(got, want []string) bool {
	return slices.EqualFunc(got, want, func(g, w string) bool { return w == "" || g == w })
}

func TestIdleTerminatesEveryProcessOfTheContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newQuietNode()
		first, second, beside := n.processes[7], &tenant{container: "trainer", start: 2, gibs: 1}, &tenant{container: "beside", start: 3, gibs: 1}
		n.processes[8], n.processes[10] = second, beside
		n.watch(t, 9*time.Hour, nil)
		if len(first.signals) != 1 || len(second.signals) != 1 || n.signals != 2 {
			t.Errorf("%d signals: %v, %v, in the container without a slice %v", n.signals, first.signals, second.signals, beside.signals)
		}
	})
}

func TestIdleBeginsAnewWithTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newQuietNode()
		n.watch(t, 7*time.Hour, nil)
		n.watch(t, 7*time.Hour, nil)
		if n.signals > 0 {
			t.Error("it was terminated after seven hours of an agent")
		}
	})
}

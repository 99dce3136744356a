package node_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/proc"
)

const gib = int64(1) << 30

// world is a node whose pods, processes and devices change at random, between any
// two things that the agent reads. It is the /proc, the devices, the pods and the
// kernel of an agent, and knows the truth.
type world struct {
	mu        sync.Mutex
	r         *rand.Rand
	pods      []*pod
	processes map[int]*process
	clock     uint64 // start time of the newest process
	devices   int
	listed    map[string]guard.Device
	used      map[place][]int64 // what containers used when the devices were listed
	over      map[place]bool    // those that were over what their pods were promised then

	began           map[place]time.Time // when a container was signaled first that was over its limit
	signaled, steps int
	violation       string
	holders         map[holder]bool // who truly used memory when a device was listed
	stale           []map[int]stale // what devices list under the PID of who has exited, by PID
	still           bool            // nothing happens
	lost            string          // the device that fails
}

// holder is a process on a device.
type holder struct {
	device string
	pid    int
	start  uint64
}

// stale is memory that another process holds on.
type stale struct {
	at    place
	bytes int64
}

// place is a container of a pod, by its ID.
type place struct{ pod, container string }

type pod struct {
	uid      string
	promised bool
	limits   limits.Limits
	ids      map[string]string // container -> the running ID
	reported map[string]string // ID -> container, as the kubelet reported it last
	known    map[string]string // and as the agent was last given it
}

type process struct {
	pid     int
	command string
	start   uint64
	at      place // empty: no container of a pod
	bytes   []int64
	alive   bool
}

func newWorld(seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 7)), processes: map[int]*process{}, devices: 3,
		listed: map[string]guard.Device{}, began: map[place]time.Time{}, holders: map[holder]bool{}}
	for range w.devices {
		w.stale = append(w.stale, map[int]stale{})
	}
	for range 6 {
		w.addPod()
	}
	for range 12 {
		w.fork()
	}
	return w
}

func (w *world) chance(percent int) bool { return !w.still && w.r.IntN(100) < percent }

func (w *world) addPod() {
	p := &pod{uid: fmt.Sprintf("%08x-0000-4000-8000-000000000000", w.r.Uint32()), promised: w.chance(80), ids: map[string]string{},
		reported: map[string]string{}}
	p.limits = limits.Default()
	p.limits.Grace, p.limits.Settle, p.limits.TermGrace = 500*time.Millisecond, time.Second, 0
	if w.chance(30) {
		p.limits.TermGrace = time.Second
	}
	for _, name := range []string{"trainer", "scorer"}[:1+w.r.IntN(2)] {
		p.limits.Containers = append(p.limits.Containers,
			limits.Container{Name: name, SliceBytes: 8 * gib, LimitBytes: 8 * gib, GPUs: 1 + w.r.IntN(2)})
		w.restart(p, name)
	}
	w.restart(p, "sidecar")
	p.report()
	w.pods = append(w.pods, p)
}

// restart gives a container a new ID, of which the kubelet has yet to report.
func (w *world) restart(p *pod, container string) {
	for _, q := range w.processes {
		if q.at == (place{p.uid, p.ids[container]}) {
			w.exit(q)
		}
	}
	p.ids[container] = fmt.Sprintf("%064x", w.r.Uint64())
}

func (p *pod) report() {
	p.reported = map[string]string{}
	for name, id := range p.ids {
		p.reported[id] = name
	}
}

func (w *world) exit(p *process) {
	p.alive = false
	delete(w.processes, p.pid)
	for i, bytes := range p.bytes { // a child may hold on what was listed before
		if w.holders[holder{fmt.Sprintf("gpu%d", i), p.pid, p.start}] && bytes > 0 && w.chance(20) {
			w.stale[i][p.pid] = stale{p.at, bytes}
		}
	}
}

// fork makes a process in any container, or in none, often with a PID that was
// another's.
func (w *world) fork() {
	pid := 2 + w.r.IntN(40)
	if _, taken := w.processes[pid]; taken {
		return
	}
	w.clock++
	p := &process{pid: pid, start: w.clock, alive: true, bytes: make([]int64, w.devices)}
	if w.chance(85) {
		in := w.pods[w.r.IntN(len(w.pods))]
		ids := make([]string, 0, len(in.ids))
		for _, name := range []string{"trainer", "scorer", "sidecar"} {
			if id, found := in.ids[name]; found {
				ids = append(ids, id)
			}
		}
		p.at = place{in.uid, ids[w.r.IntN(len(ids))]}
	}
	w.processes[pid] = p
	w.allocate(p)
}

func (w *world) allocate(p *process) {
	p.bytes[w.r.IntN(w.devices)] = int64(w.r.IntN(7)) * gib
}

func (w *world) any() *process {
	for range 8 {
		if p := w.processes[2+w.r.IntN(40)]; p != nil {
			return p
		}
	}
	return nil
}

// happen lets something happen.
func (w *world) happen() {
	if w.still {
		return
	}
	p, in, n := w.any(), w.pods[w.r.IntN(len(w.pods))], w.r.IntN(100)
	if w.chance(10) { // whoever held it on lets it go
		clear(w.stale[w.r.IntN(w.devices)])
	}
	switch {
	case n < 30 && p != nil:
		w.allocate(p)
	case n < 45:
		w.fork()
	case n < 55 && p != nil:
		w.exit(p)
	case n < 65 && p != nil: // its PID is reused at once
		w.exit(p)
		w.fork()
	case n < 75:
		in.report()
	case n < 78:
		w.restart(in, in.limits.Containers[0].Name)
	case n < 80:
		in.promised = !in.promised
	case n < 82:
		in.limits.Containers = append([]limits.Container(nil), in.limits.Containers...)
		c := &in.limits.Containers[0]
		c.SliceBytes = int64(4+w.r.IntN(12)) * gib
		c.LimitBytes = c.SliceBytes
	case n < 83:
		w.replacePod(in)
	}
}

func (w *world) replacePod(p *pod) {
	for _, id := range p.ids {
		for _, q := range w.processes {
			if q.at == (place{p.uid, id}) {
				w.exit(q)
			}
		}
	}
	for i := range w.pods {
		if w.pods[i] == p {
			w.pods = append(w.pods[:i:i], w.pods[i+1:]...)
			break
		}
	}
	w.addPod()
}

// Read implements proc.Source. Between two files anything may happen.
func (w *world) Read(process, file string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chance(20) {
		w.happen()
	}
	pid, _ := strconv.Atoi(process)
	p := w.processes[pid]
	switch {
	case process == "self" && file == "stat":
		return stat(900, "agent", 1), nil
	case process == "self":
		return "0::/\n", nil
	case process == "1":
		return "0::/../../../init.scope\n", nil
	case p == nil:
		return "", os.ErrNotExist
	case file == "stat":
		return stat(p.pid, p.command, p.start), nil
	case p.at == (place{}):
		return "0::/../../../system.slice/x.service\n", nil
	}
	return "0::/../../pod" + p.at.pod + "/" + p.at.container + "\n", nil
}

func stat(pid int, command string, start uint64) string {
	return fmt.Sprintf("%d (%s) S 1%s %d 0\n", pid, cmp.Or(command, "python"), strings.Repeat(" 0", 17), start)
}

// Threads implements proc.Source.
func (w *world) Threads(int) iter.Seq[int] { return func(func(int) bool) {} }

// Now implements proc.Source.
func (w *world) Now() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

// PIDs implements proc.Source.
func (w *world) PIDs() (pids []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for pid := range w.processes {
		pids = append(pids, pid)
	}
	return pids
}

// devicesReader is the world as devices.
type devicesReader struct{ *world }

// Read implements node.Reader: lists that may be old, blank, or not be had, with
// PIDs that nobody has.
func (d devicesReader) Read(_ context.Context, maxAge time.Duration) ([]guard.Device, error) {
	w := d.world
	time.Sleep(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	for range 1 + w.r.IntN(3) {
		w.happen()
	}
	w.steps++
	if w.chance(1) {
		return nil, os.ErrDeadlineExceeded
	}
	w.used = w.usage()
	w.over = w.truth()
	var devices []guard.Device
	for i := range w.devices {
		id := fmt.Sprintf("gpu%d", i)
		last, known := w.listed[id]
		switch {
		case known && maxAge > 0 && w.chance(50) && time.Since(last.Listed) < maxAge:
			devices = append(devices, last)
		case w.chance(1) || id == w.lost:
			devices = append(devices, guard.Device{ID: id, Fault: "the device does not answer"})
		default:
			w.listed[id] = w.list(i)
			devices = append(devices, w.listed[id])
		}
	}
	return devices, nil
}

func (w *world) list(device int) guard.Device {
	d := guard.Device{ID: fmt.Sprintf("gpu%d", device), Listed: time.Now(), AsOf: w.clock + 1, TotalBytes: 80 * gib}
	for pid := range 42 {
		p := w.processes[pid]
		left := w.stale[device][pid]
		d.UsedBytes += left.bytes
		if p != nil && p.bytes[device] > 0 {
			d.UsedBytes += p.bytes[device]
			w.holders[holder{d.ID, p.pid, p.start}] = true
		}
		switch {
		case p != nil && p.bytes[device] > 0:
			d.Processes = append(d.Processes, guard.Process{PID: pid, UsedBytes: max(p.bytes[device], left.bytes), Known: !w.chance(2)})
		case left.bytes > 0:
			d.Processes = append(d.Processes, guard.Process{PID: pid, UsedBytes: left.bytes, Known: true})
		case p == nil && w.chance(1):
			d.Processes = append(d.Processes, guard.Process{PID: pid, UsedBytes: 40 * gib, Known: true})
		}
	}
	return d
}

// usage returns what each container uses of each device.
func (w *world) usage() map[place][]int64 {
	used := map[place][]int64{}
	add := func(at place, device int, bytes int64) {
		if used[at] == nil {
			used[at] = make([]int64, w.devices)
		}
		used[at][device] += bytes
	}
	for _, p := range w.processes {
		for i, bytes := range p.bytes {
			add(p.at, i, bytes)
		}
	}
	for i, left := range w.stale {
		for _, s := range left {
			add(s.at, i, s.bytes)
		}
	}
	return used
}

// truth returns the containers that used more, when the devices were listed, than
// their pods are promised.
func (w *world) truth() map[place]bool {
	over := map[place]bool{}
	for _, p := range w.pods {
		if !p.promised {
			continue
		}
		for _, c := range p.limits.Containers {
			at := place{p.uid, p.ids[c.Name]}
			over[at] = exceeds(w.used[at], c)
		}
		whole, all := limits.Container{}, make([]int64, w.devices)
		for _, c := range p.limits.Containers {
			whole.SliceBytes, whole.GPUs = whole.SliceBytes+c.SliceBytes, whole.GPUs+c.GPUs
		}
		for _, id := range p.ids {
			for i, bytes := range w.used[place{p.uid, id}] {
				all[i] += bytes
			}
		}
		for name, id := range p.ids { // without a slice, or a name that the agent knows, it is held to what is left
			_, named := p.known[id]
			if _, sliced := p.limits.Container(name); !(named && sliced) && exceeds(all, whole) {
				over[place{p.uid, id}] = true
			}
		}
	}
	return over
}

func exceeds(used []int64, c limits.Container) bool {
	held := 0
	for _, bytes := range used {
		if bytes > c.SliceBytes {
			return true
		}
		if bytes > 0 {
			held++
		}
	}
	return held > c.GPUs
}

// Promised implements node.Pods.
func (w *world) Promised() (promised []node.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.promised {
			p.known = p.reported
			promised = append(promised, p.asPromised())
		}
	}
	return promised
}

// Promise implements node.Pods.
func (w *world) Promise(uid string) (node.Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.uid == uid && p.promised {
			return p.asPromised(), true
		}
	}
	return node.Pod{}, false
}

func (p *pod) asPromised() node.Pod {
	return node.Pod{UID: p.uid, Name: p.uid, Containers: p.reported, Limits: p.limits}
}

// open opens a process, as the kernel does.
func (w *world) open(pid int) (proc.Handle, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.processes[pid]; p != nil {
		return &handle{w, p}, nil
	}
	return nil, os.ErrProcessDone
}

// terminationTime is how long a termination goes on that was begun: SIGTERM, the
// grace period, SIGKILL.
const terminationTime = 1500 * time.Millisecond

// handle is an open process of the world.
type handle struct {
	*world
	process *process
}

// Signal implements proc.Handle, and checks who is hit.
func (h *handle) Signal(sig syscall.Signal) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.process.alive {
		return os.ErrProcessDone
	}
	h.signaled++
	over := h.over[h.process.at] || h.truth()[h.process.at] // what the pod is promised may have changed to and fro
	if !over && time.Since(h.began[h.process.at]) > terminationTime && h.violation == "" {
		h.violation = fmt.Sprintf("%s to pid %d in %v at step %d, which had been signaled %v before\n%s",
			sig, h.process.pid, h.process.at, h.steps,
			time.Since(h.began[h.process.at]), h.account(h.process.at.pod))
	}
	if over {
		h.began[h.process.at] = time.Now()
	}
	if sig == syscall.SIGKILL || h.chance(50) {
		h.exit(h.process)
	}
	return nil
}

// account describes a pod for the message of a failed test.
func (w *world) account(uid string) string {
	var text strings.Builder
	for _, p := range w.pods {
		if p.uid == uid {
			fmt.Fprintf(&text, "runs %v, reported %v, known %v, promised %v %+v\n", p.ids, p.reported, p.known, p.promised, p.limits.Containers)
		}
	}
	for id, d := range w.listed {
		fmt.Fprintf(&text, "%s, listed %s ago:", id, time.Since(d.Listed))
		for _, listed := range d.Processes {
			if p := w.processes[listed.PID]; p != nil && p.at.pod == uid {
				fmt.Fprintf(&text, " pid %d in %s with %d (%v), now %v", p.pid, p.at.container[56:], listed.UsedBytes/gib, listed.Known, p.bytes)
			}
		}
		text.WriteByte('\n')
	}
	for at, over := range w.over {
		if at.pod == uid {
			fmt.Fprintf(&text, "%s over: %v\n", at.container[56:], over)
		}
	}
	return text.String()
}

// Exited implements proc.Handle.
func (h *handle) Exited() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.process.alive
}

// Wait implements proc.Handle.
func (h *handle) Wait(_ context.Context, limit time.Duration) bool {
	if !h.Exited() {
		time.Sleep(limit)
	}
	return h.Exited()
}

// Release implements proc.Handle.
func (h *handle) Release() {}

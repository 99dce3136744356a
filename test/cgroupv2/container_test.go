package cgroupv2

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/guard/cgroup"
)

// pod is a pod whose containers a runtime has made, as a kubelet lays them out.
type pod struct {
	*testing.T
	layout    layout
	uid, name string
	pause     *container // holds the PID namespace that the containers share; nil: each has its own
}

// process is what a container runs.
type process struct {
	container    string // its name in the pod
	args         []string
	env          []string
	capabilities []string
	files        map[string]string // path in the container -> file of the machine
	node         bool              // it has the node's PID namespace
	hooks        *specs.Hooks
}

// container is one instance of a container.
type container struct {
	*testing.T
	layout layout
	podUID string
	name   string
	id     string
	pid    int // on the node
	output *output
	ended  *os.ProcessState
}

// newPod makes a pod without a process.
func newPod(t *testing.T, l layout, name string) *pod {
	t.Helper()
	// What runtimes leave behind becomes a child of this process, so that it learns how containers end.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	return &pod{T: t, layout: l, uid: newUID(), name: name}
}

// shareProcesses gives the pod's containers, which are still to come, one PID namespace.
func (p *pod) shareProcesses() {
	p.Helper()
	p.pause = p.run(process{container: "POD", args: []string{pauseProgram}})
}

func newUID() string {
	text := newID()
	return fmt.Sprintf("%s-%s-4%s-8%s-%s", text[:8], text[8:12], text[12:15], text[15:18], text[18:30])
}

func newID() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// run starts a container.
func (p *pod) run(what process) *container {
	p.Helper()
	return p.make("run", what, "--detach")
}

// create makes a container whose process waits to be started.
func (p *pod) create(what process) *container {
	p.Helper()
	return p.make("create", what)
}

func (c *container) start() {
	c.Helper()
	if err := c.runtime(nil, "start", c.id); err != nil {
		c.Fatal(err)
	}
}

// make makes a container, which ends with the test.
func (p *pod) make(how string, what process, flags ...string) *container {
	p.Helper()
	c, err := p.try(how, what, flags...)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		c.wait(unix.SIGKILL)
		if p.Failed() {
			p.Logf("%s of %s wrote:\n%s", c.name, p.name, c.output.last())
		}
	})
	c.wantMember()
	return c
}

// wantDenied fails the test unless the runtime does not start a container, and writes why.
func (p *pod) wantDenied(what process, message *regexp.Regexp) {
	p.Helper()
	c, err := p.try("run", what, "--detach")
	if err == nil {
		p.Fatal("the container runs")
	}
	<-c.output.ended
	if written := fmt.Sprint(err, c.output.last()); !message.MatchString(written) {
		p.Errorf("the runtime wrote %q, want %s", written, message)
	}
}

// try makes a container.
func (p *pod) try(how string, what process, flags ...string) (*container, error) {
	c := &container{T: p.T, layout: p.layout, podUID: p.uid, name: what.container, id: newID()}
	dir := p.TempDir()
	spec, err := json.Marshal(p.spec(c, what))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), spec, 0o600); err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	c.output = follow(read)
	pidFile := filepath.Join(dir, "pid")
	// The machine's root is in memory, and there is nothing to pivot to.
	args := append([]string{how, "--no-pivot", "--bundle", dir, "--pid-file", pidFile}, append(flags, c.id)...)
	if err := c.runtime(write, args...); err != nil {
		return c, err
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return c, err
	}
	if c.pid, err = strconv.Atoi(string(text)); err != nil {
		return c, err
	}
	return c, c.adopt()
}

// adopt returns once the container's process is a child of this one. A process of crun's, its parent, may outlive the call of crun.
func (c *container) adopt() error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(text), "\nPPid:")
	line, _, _ := strings.Cut(rest, "\n")
	parent, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || parent == os.Getpid() {
		return err
	}
	leaving, err := os.FindProcess(parent)
	if err != nil {
		return err
	}
	if _, err := leaving.Wait(); err != nil {
		return fmt.Errorf("wait for the parent of the container's process: %w", err)
	}
	return nil
}

// runtime runs the container runtime.
func (c *container) runtime(stdout *os.File, args ...string) error {
	log := filepath.Join(c.TempDir(), "log")
	cmd := exec.Command(c.layout.runtime, append([]string{"--root=/run/" + c.layout.runtime, "--log=" + log}, args...)...)
	if stdout != nil { // what it writes is the container's
		cmd.Stdout, cmd.Stderr = stdout, stdout
	}
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log)
		return fmt.Errorf("%s %s: %w\n%s", c.layout.runtime, strings.Join(args, " "), err, text)
	}
	return nil
}

// wantMember fails the test unless the node's cgroups tell whose process it is.
func (c *container) wantMember() {
	c.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.pid))
	if err != nil {
		c.Fatal(err)
	}
	got, err := cgroup.MemberOf(string(text))
	if want := (cgroup.Member{PodUID: c.podUID, ContainerID: c.id}); got != want || err != nil {
		c.Errorf("%s, in %q, belongs to %+v (%v)", c.name, text, got, err)
	}
}

// spec is what containerd and CRI-O ask of a runtime, in what matters here.
func (p *pod) spec(c *container, what process) *specs.Spec {
	log := filepath.Join("/var/lib/kubelet/pods", p.uid, "containers", what.container, c.id[:8])
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(log, nil, 0o666); err != nil {
		p.Fatal(err)
	}
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"ro"}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"ro"}},
		{Destination: "/dev/termination-log", Type: "bind", Source: log, Options: []string{"bind", "rw"}},
	}
	for at, file := range what.files {
		mounts = append(mounts, specs.Mount{Destination: at, Type: "bind", Source: file, Options: []string{"bind", "ro"}})
	}
	return &specs.Spec{
		Version: "1.0.2",
		Root:    &specs.Root{Path: rootfs, Readonly: true},
		Mounts:  mounts,
		Hooks:   what.hooks,
		Process: &specs.Process{Args: what.args, Env: append([]string{"PATH=/usr/bin:/bin"}, what.env...), Cwd: "/", NoNewPrivileges: true,
			Capabilities: &specs.LinuxCapabilities{Bounding: what.capabilities, Effective: what.capabilities, Permitted: what.capabilities}},
		Linux: &specs.Linux{CgroupsPath: p.layout.processes(p.uid, c.id), Namespaces: p.namespaces(what)},
	}
}

// namespaces returns those of a container. The network is the machine's.
func (p *pod) namespaces(what process) []specs.LinuxNamespace {
	all := []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.IPCNamespace},
		{Type: specs.UTSNamespace}, {Type: specs.CgroupNamespace}}
	switch {
	case what.node:
		return all
	case p.pause != nil:
		return append(all, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: fmt.Sprintf("/proc/%d/ns/pid", p.pause.pid)})
	}
	return append(all, specs.LinuxNamespace{Type: specs.PIDNamespace})
}

// moveBelow moves the container's process into a cgroup that it might have made itself.
func (c *container) moveBelow() {
	c.Helper()
	if err := os.MkdirAll(c.below(), 0o755); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.below(), "cgroup.procs"), []byte(strconv.Itoa(c.pid)), 0o600); err != nil {
		c.Fatal(err)
	}
	c.wantMember()
}

func (c *container) below() string {
	return filepath.Join("/sys/fs/cgroup", c.layout.processes(c.podUID, c.id), "ray/worker-7")
}

// wait returns how the container's first process ended, which it sends a signal before (0: none). The process is a child of this
// one.
func (c *container) wait(signal unix.Signal) *os.ProcessState {
	c.Helper()
	if c.ended != nil {
		return c.ended
	}
	first, err := os.FindProcess(c.pid)
	if err != nil {
		c.Fatal(err)
	}
	if err := first.Signal(signal); err != nil && signal != 0 {
		c.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		c.ended, err = first.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			c.Fatal(err)
		}
	case <-time.After(patience):
		c.Fatalf("%s runs on", c.name)
	}
	return c.ended
}

// wantEmpty fails the test where processes are left in a container that moveBelow was called for.
func (c *container) wantEmpty() {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.below(), "cgroup.procs"))
	if err != nil || len(text) > 0 {
		c.Errorf("processes of %s are left: %s (%v)", c.name, text, err)
	}
}

// patience is how long anything may take to happen.
const patience = time.Minute

// output is the lines that a container wrote.
type output struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed with the next line
	ended chan struct{} // closed when nobody can write another
}

// follow collects what comes through a pipe.
func follow(r io.Reader) *output {
	o := &output{more: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		in := bufio.NewScanner(r)
		for in.Scan() {
			o.add(in.Text())
		}
	}()
	return o
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, line)
	close(o.more)
	o.more = make(chan struct{})
}

// after returns the lines from one on, and what is closed when there is another.
func (o *output) after(n int) ([]string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines[n:], o.more
}

func (o *output) last() string {
	lines, _ := o.after(0)
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// await waits until the container writes a line that matches, from line n on.
func (c *container) await(n int, want *regexp.Regexp) {
	c.Helper()
	late := time.After(patience)
	for {
		lines, more := c.output.after(n)
		for _, line := range lines {
			if want.MatchString(line) {
				return
			}
		}
		n += len(lines)
		select {
		case <-more:
		case <-late:
			c.Fatalf("%s wrote no line %s", c.name, want)
		}
	}
}

// neverNoticed fails the test unless a tenant goes on as if nothing had happened.
func (c *container) neverNoticed() {
	c.Helper()
	lines, _ := c.output.after(0)
	c.await(len(lines), regexp.MustCompile(`^beat `))
	if strings.Contains(strings.Join(lines, "\n"), "term") {
		c.Errorf("%s was terminated", c.name)
	}
}

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/child"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// Binary compiles a command of this module into dir and returns its path.
func Binary(ctx context.Context, dir, command string) (string, error) {
	return build(ctx, filepath.Join(dir, filepath.Base(command)), command)
}

// build compiles a command of this module with further flags. As in a release it has no debug information, which takes a third of
// the linker's time. Cgo is as in the tests, unlike in a release: net differs by it, and after net most of Kubernetes' client, which
// would be compiled twice. Makefile says why GOGC is set.
func build(ctx context.Context, out, command string, flags ...string) (string, error) {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/gpuslice/gpuslice/"+command)...)
	cmd.Env = append(os.Environ(), "GOGC=400")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, text)
	}
	return out, nil
}

// Process is a running webhook.
type Process struct {
	// Reviews and Probes are the addresses it listens on.
	Reviews, Probes string
	// Log is the file of its output.
	Log string

	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

// startProcess starts the webhook beside the API server, as the ServiceAccount that config stands for.
func startProcess(ctx context.Context, binary, dir, name string, config *rest.Config, args ...string) (*Process, error) {
	for attempts := 1; ; attempts++ {
		reviews, probes, err := freeAddresses()
		if err != nil {
			return nil, err
		}
		p, err := startAt(ctx, reviews, probes, binary, dir, name, config, args...)
		if err == nil || attempts == 5 || !strings.Contains(err.Error(), "address already in use") { // by a process that started meanwhile
			return p, err
		}
	}
}

// startAt is startProcess with the addresses to listen on.
func startAt(ctx context.Context, reviews, probes, binary, dir, name string, config *rest.Config, args ...string) (*Process, error) {
	p, err := launch(reviews, probes, binary, dir, name, config, nil, args...)
	if err != nil {
		return nil, err
	}
	if err := p.waitReady(ctx); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// launch starts the process, with more in its environment, and waits for nothing.
func launch(reviews, probes, binary, dir, name string, config *rest.Config, environment []string, args ...string) (*Process, error) {
	kubeconfig := filepath.Join(dir, name+".kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, config); err != nil {
		return nil, err
	}
	p := &Process{Reviews: reviews, Probes: probes, Log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.Log)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer log.Close()
	p.cmd = exec.Command(binary, append([]string{"--kubeconfig", kubeconfig, "--listen", reviews, "--metrics-listen", probes}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	limit, err := goMemLimit()
	if err != nil {
		return nil, err
	}
	p.cmd.Env = append([]string{limit}, os.Environ()...)
	p.cmd.Env = append(append(p.cmd.Env, "GPUSLICE_IDLE_GRACE=0s"), environment...) // a variable, which other builds need not know
	ended, err := child.Start(p.cmd)
	if err != nil {
		return nil, fmt.Errorf("start webhook: %w", err)
	}
	go func() { p.err = <-ended; close(p.exited) }()
	return p, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// waitReady returns once the process is ready.
func (p *Process) waitReady(ctx context.Context) error {
	return p.poll(ctx, "be ready", func() (bool, string) {
		status, body, err := p.get(ctx, "/readyz")
		if err != nil {
			return false, err.Error()
		}
		return status == http.StatusOK, body
	})
}

// waitDiffers returns once the process reports that its clock alone keeps it from being ready.
func (p *Process) waitDiffers(ctx context.Context) error {
	return p.poll(ctx, "notice its clock", func() (bool, string) {
		status, body, err := p.get(ctx, "/readyz")
		if err != nil {
			return false, err.Error()
		}
		return status == http.StatusServiceUnavailable && strings.HasPrefix(body, "clock: the clock of this replica's node is "), body
	})
}

// poll repeats done until it returns true, the process ends, or ctx does.
func (p *Process) poll(ctx context.Context, what string, done func() (bool, string)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, why := done()
		if ok {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("the webhook ended before it could %s: %v\n%s", what, p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("the webhook did not %s: %s: %w\n%s", what, why, ctx.Err(), p.tail())
		case <-tick.C:
		}
	}
}

func (p *Process) get(ctx context.Context, path string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Probes+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// State is the webhook's knowledge of the cluster, from /state.
type State struct {
	Policies []PolicyState `json:"policies"`
	Tenants  []PolicyState `json:"tenants"` // tenants' own documents
	Pools    []PoolState   `json:"pools"`
	Nodes    int           `json:"nodes"`

	Runtimes       pools.Runtimes       `json:"runtimes"`
	GuardFailures  guardaccess.Failures `json:"guardFailures"`
	ResourceQuotas []QuotaState         `json:"resourceQuotas"`
}

// QuotaState is a ResourceQuota on a GPU resource that the webhook knows.
type QuotaState struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
}

// ResourceQuota is the state of a ResourceQuota as the webhook reports it, "" where it does not know it.
func (s State) ResourceQuota(namespace, name string) string {
	for _, q := range s.ResourceQuotas {
		if q.Namespace == namespace && q.Name == name {
			return q.State
		}
	}
	return ""
}

// PolicyState is a policy document that the webhook has read.
type PolicyState struct {
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
	Error           string `json:"error"`
}

// PoolState is a pool that the webhook knows.
type PoolState struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
}

// State reads the process's knowledge.
func (p *Process) State(ctx context.Context) (State, error) {
	_, body, err := p.get(ctx, "/state")
	if err != nil {
		return State{}, err
	}
	var s State
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		return State{}, fmt.Errorf("read state %q: %w", body, err)
	}
	return s, nil
}

// WaitState returns once done accepts the process's knowledge.
func (p *Process) WaitState(ctx context.Context, what string, done func(State) bool) error {
	return p.poll(ctx, what, func() (bool, string) {
		s, err := p.State(ctx)
		if err != nil {
			return false, err.Error()
		}
		return done(s), fmt.Sprintf("%+v", s)
	})
}

// Stop signals the process to end, and waits until it has.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.exited
}

// Pause stops the process where it stands, until the function that is returned is called.
func (p *Process) Pause() (resume func()) {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	return func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }
}

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *Process) tail() string {
	b, _ := os.ReadFile(p.Log)
	return string(b[max(0, len(b)-2000):])
}

func freeAddresses() (reviews, probes string, err error) {
	if reviews, err = freeAddress(); err != nil {
		return "", "", err
	}
	probes, err = freeAddress()
	return reviews, probes, err
}

// freeAddress returns a loopback address that nobody listens on. Its port is below those that Linux gives to outgoing connections:
// under load a connection gets such a port before the process listens there.
func freeAddress() (string, error) {
	const from, to = 20_000, 32_000
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", from+rand.IntN(to-from))); err == nil {
			defer l.Close()
			return l.Addr().String(), nil
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}

package oncard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/prove/cuda"
	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/mps"
)

// pinned is the limit of a client of the MPS daemon.
const pinned = 2 * gibibyte

// served is an MPS daemon of the row's own.
type served struct {
	*card
	control mps.Control
	folder  string
}

// daemon starts an MPS daemon, tries its limits, and stops it. The compute mode stays as it is.
func daemon(ctx context.Context, c *card) []check {
	const subject = "daemon starts and answers"
	s, err := c.startDaemon(ctx)
	defer s.stop()
	if err != nil {
		return []check{broken(subject, err)}
	}
	if err := s.control.Alive(ctx); err != nil {
		return []check{verdict(subject, false, "%s", oneLine(err.Error()))}
	}
	checks := []check{verdict(subject, true, "")}
	for _, measure := range []func(served, context.Context) check{served.limit, served.evaded, served.threads, served.terminate, served.killed} {
		checks = append(checks, measure(s, ctx))
	}
	return checks
}

func (c *card) startDaemon(ctx context.Context) (s served, err error) {
	s.card = c
	program, err := exec.LookPath(mps.Program)
	if err != nil {
		return s, fmt.Errorf("%s is not in PATH", mps.Program)
	}
	if err := c.requireFree(ctx, 2*pinned+2*gibibyte); err != nil {
		return s, err
	}
	if s.folder, err = os.MkdirTemp("", "gpuslice-card"); err != nil {
		return s, err
	}
	pipe, log := filepath.Join(s.folder, "pipe"), filepath.Join(s.folder, "log")
	if err := errors.Join(os.Mkdir(pipe, 0o700), os.Mkdir(log, 0o700)); err != nil {
		return s, err
	}
	s.control = mps.Control{Program: program, PipeDirectory: pipe}
	cmd := exec.CommandContext(ctx, program, "-d")
	cmd.Env = append(c.environment(), "CUDA_MPS_PIPE_DIRECTORY="+pipe, "CUDA_MPS_LOG_DIRECTORY="+log)
	cmd.WaitDelay = time.Second // the daemon may keep the output of the program that starts it
	if out, err := cmd.CombinedOutput(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return s, fmt.Errorf("start %s: %w: %s", mps.Program, err, oneLine(string(out)))
	}
	return s, nil
}

// stop stops the daemon and its servers, also when the row's time is up.
func (s served) stop() {
	if s.folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.control.Program)
	cmd.Env = append(s.environment(), "CUDA_MPS_PIPE_DIRECTORY="+s.control.PipeDirectory)
	cmd.Stdin = strings.NewReader("quit -t 5\n")
	_ = cmd.Run() // one that does not answer has exited
	_ = os.RemoveAll(s.folder)
}

// client starts a client of the daemon.
func (s served) client(ctx context.Context, environment ...string) (*process, error) {
	return s.start(ctx, append(environment, "CUDA_MPS_PIPE_DIRECTORY="+s.control.PipeDirectory))
}

// limit fills a client until its pinned memory limit denies more.
func (s served) limit(ctx context.Context) check {
	const subject = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
	p, err := s.client(ctx, fmt.Sprintf("%s=0=%dM", subject, int64(pinned/mebibyte)))
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	reported := "unknown to the client"
	if a, err := p.do(ctx, order{Do: "memory"}); err == nil {
		reported = fmt.Sprintf("%s free of %s to the client", guard.FormatBytes(a.Free), guard.FormatBytes(a.Total))
	}
	held, err := fill(ctx, p, 2*pinned)
	found, there, _ := s.listed(ctx, p.pid)
	denied, ok := errors.AsType[*cuda.Error](err)
	if err != nil && (!ok || denied.Code != cuda.OutOfMemory) {
		return broken(subject, err)
	}
	return verdict(subject, ok && held <= pinned, "limit %s: out of memory %t at %s; %s; NVML lists the client %t, with %s",
		guard.FormatBytes(pinned), ok, guard.FormatBytes(held), reported, there, guard.FormatBytes(found.UsedBytes))
}

// fill takes memory piece by piece, at most so much, and returns how much it got and the error that stopped it.
func fill(ctx context.Context, p *process, most int64) (held int64, err error) {
	const piece = 128 * mebibyte
	for ; held < most; held += piece {
		if _, err := p.do(ctx, order{Do: "allocate", Bytes: piece}); err != nil {
			return held, err
		}
	}
	return held, nil
}

// evaded starts a process without the pipe directory: nothing of the daemon's is promised for it.
func (s served) evaded(ctx context.Context) check {
	const subject = "process without the pipe directory is no client"
	p, err := s.start(ctx, []string{"CUDA_MPS_PIPE_DIRECTORY=/nonexistent/gpuslice", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=256M"})
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	clients, err := s.control.Clients(ctx)
	if err != nil {
		return broken(subject, err)
	}
	held, err := fill(ctx, p, gibibyte)
	if ctx.Err() != nil {
		return broken(subject, ctx.Err())
	}
	isClient := slices.ContainsFunc(clients, func(c mps.Client) bool { return c.PID == p.pid })
	return verdict(subject, !isClient && err == nil, "it held %s, its limit of 256Mi notwithstanding", guard.FormatBytes(held))
}

// threads compares the multiprocessors of a client that may use a quarter with the ones of a process that may use all.
func (s served) threads(ctx context.Context) check {
	const subject = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	var counts []int
	for _, percent := range []string{"100", "25"} {
		p, err := s.client(ctx, subject+"="+percent)
		if err != nil {
			return broken(subject, err)
		}
		a, err := p.do(ctx, order{Do: "multiprocessors"})
		p.stop()
		if err != nil {
			return broken(subject, err)
		}
		counts = append(counts, a.Multiprocessors)
	}
	return verdict(subject, counts[1]*3 <= counts[0], "%d of %d multiprocessors at 25 %%", counts[1], counts[0])
}

// two starts two clients that hold memory, of which the second works.
func (s served) two(ctx context.Context) (first, second *process, err error) {
	if first, err = s.client(ctx); err != nil {
		return first, second, err
	}
	if second, err = s.client(ctx); err != nil {
		return first, second, err
	}
	for _, p := range []*process{first, second} {
		if _, err := p.do(ctx, order{Do: "allocate", Bytes: neighborHolds}); err != nil {
			return first, second, err
		}
	}
	return first, second, second.send(order{Do: "beat", PeriodMicros: beatPeriod.Microseconds()})
}

// worksOn lets a process that beats do so for a while, and stops it.
func (p *process) worksOn(ctx context.Context) (answer, error) {
	select {
	case <-ctx.Done():
	case <-time.After(rateWindow):
	}
	return p.do(ctx, order{Do: "stop"})
}

// terminate has the daemon terminate a client beside another.
func (s served) terminate(ctx context.Context) check {
	const subject = "terminate_client leaves the other client alone"
	victim, other, err := s.two(ctx)
	if err != nil {
		return broken(subject, err)
	}
	defer victim.stop()
	defer other.stop()
	clients, err := s.control.Clients(ctx)
	if err != nil {
		return broken(subject, err)
	}
	i := slices.IndexFunc(clients, func(c mps.Client) bool { return c.PID == victim.pid })
	if i < 0 {
		return verdict(subject, false, "ps lists %d clients, and not PID %d", len(clients), victim.pid)
	}
	began := time.Now()
	if err := s.control.Terminate(ctx, clients[i]); err != nil {
		return verdict(subject, false, "%s", oneLine(err.Error()))
	}
	took := time.Since(began)
	_, failed := victim.do(ctx, order{Do: "check"})
	beats, err := other.worksOn(ctx)
	if ctx.Err() != nil {
		return broken(subject, ctx.Err())
	}
	return verdict(subject, failed != nil && err == nil && beats.Beats > 0, "it took %s; the client then gets %q; the other: %d heartbeats, error %v",
		milliseconds(took), oneLine(fmt.Sprint(failed)), beats.Beats, err)
}

// killed kills a client beside another. NVIDIA calls the outcome undefined, and the guard does so only where policy has it.
func (s served) killed(ctx context.Context) check {
	const subject = "client killed by a signal leaves the other client alone"
	victim, other, err := s.two(ctx)
	if err != nil {
		return broken(subject, err)
	}
	defer other.stop()
	_ = victim.cmd.Process.Kill()
	victim.stop()
	beats, err := other.worksOn(ctx)
	if ctx.Err() != nil {
		return broken(subject, ctx.Err())
	}
	return verdict(subject, err == nil && beats.Beats > 0, "the other: %d heartbeats, error %v", beats.Beats, err)
}

package oncard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/cmd/prove/cuda"
	"github.com/gpuslice/gpuslice/guard"
)

// process is one that the row started. It is killed when the row's context is done.
type process struct {
	cmd     *exec.Cmd
	pid     int
	in      io.WriteCloser
	lines   chan string
	ended   chan struct{} // closed with its end
	endedAt time.Time     // to be read after that
	over    <-chan struct{}
}

// launch starts a program.
func (c *card) launch(cmd *exec.Cmd) (*process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, pid: cmd.Process.Pid, in: in, lines: make(chan string, 4096), ended: make(chan struct{}), over: c.over}
	c.started = append(c.started, p)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			select {
			case p.lines <- scanner.Text():
			default: // nobody reads so many: the program must not wait for that
			}
		}
		_ = cmd.Wait()
		p.endedAt = time.Now()
		close(p.ended)
	}()
	return p, nil
}

// start starts a process that holds memory of the device, and waits for its context. files are its descriptors from 3 on.
func (c *card) start(ctx context.Context, environment []string, files ...*os.File) (*process, error) {
	text, err := json.Marshal(holding{Library: c.cudaLibrary, About: about})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", HoldCommand, string(text))
	cmd.Args[0], cmd.Env, cmd.ExtraFiles = os.Args[0], append(c.environment(), environment...), files
	p, err := c.launch(cmd)
	if err != nil {
		return nil, err
	}
	_, err = p.answer(ctx)
	return p, err
}

// environment is the environment of programs that use the device, and no other, without MPS.
func (c *card) environment() []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "CUDA_MPS_") || strings.HasPrefix(v, "CUDA_VISIBLE_DEVICES=")
	})
	return append(own, "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES="+c.device.ID)
}

// do has the process follow an order, and returns its answer.
func (p *process) do(ctx context.Context, o order) (answer, error) {
	if err := p.send(o); err != nil {
		return answer{}, err
	}
	return p.answer(ctx)
}

func (p *process) send(o order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.in, "%s\n", line); err != nil {
		return fmt.Errorf("%s: %w", o.Do, err)
	}
	return nil
}

// answer waits for the answer to an order. A failure of the driver is an error: *cuda.Error, or one that wraps cuda.ErrMissing.
func (p *process) answer(ctx context.Context) (a answer, err error) {
	text, err := p.line(ctx)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return a, fmt.Errorf("read an answer: %w", err)
	}
	switch {
	case a.Missing:
		return a, fmt.Errorf("%s%w", strings.TrimSuffix(a.Failure, cuda.ErrMissing.Error()), cuda.ErrMissing)
	case a.Code != 0:
		call, name, _ := strings.Cut(a.Failure, ": ")
		return a, &cuda.Error{Call: call, Name: strings.TrimSuffix(name, fmt.Sprintf(" (%d)", a.Code)), Code: a.Code}
	case a.Failure != "":
		return a, errors.New(a.Failure)
	}
	return a, nil
}

func (p *process) line(ctx context.Context) (string, error) {
	select {
	case text := <-p.lines:
		return text, nil
	case <-p.ended:
		select {
		case text := <-p.lines:
			return text, nil
		default:
			return "", fmt.Errorf("the process ended: %s", p.cmd.ProcessState)
		}
	case <-ctx.Done():
		return "", fmt.Errorf("wait for a process: %w", ctx.Err())
	}
}

// stop closes the input and waits until the process exits or the row's time is up; card.end waits for the rest.
func (p *process) stop() {
	_ = p.in.Close()
	select {
	case <-p.ended:
	case <-p.over:
	case <-time.After(endLimit):
		_ = p.cmd.Process.Kill()
	}
}

// lives reports whether the process has not exited.
func (p *process) lives() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// signaled returns the signal that terminated the process; 0: none.
func (p *process) signaled() syscall.Signal {
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}

// read lists the device's processes again.
func (c *card) read(ctx context.Context) (guard.Device, error) {
	all, err := c.driver.Read(ctx, 0)
	if err != nil {
		return guard.Device{}, err
	}
	for _, one := range all {
		if one.ID == c.device.ID {
			return one, nil
		}
	}
	return guard.Device{}, errors.New("NVML no longer shows the device " + c.device.ID)
}

// listed returns NVML's entry of a process. It is not there if NVML lists another PID for it, or none.
func (c *card) listed(ctx context.Context, pid int) (found guard.Process, there bool, err error) {
	seen, err := c.read(ctx)
	if err != nil {
		return found, false, err
	}
	i := slices.IndexFunc(seen.Processes, func(p guard.Process) bool { return p.PID == pid })
	if i < 0 {
		return found, false, nil
	}
	return seen.Processes[i], true, nil
}

// spareBytes stay free on the device.
const spareBytes = 1 << 30

// requireFree returns an error where the device has too little free memory.
func (c *card) requireFree(ctx context.Context, needed int64) error {
	seen, err := c.read(ctx)
	if err != nil {
		return err
	}
	if seen.TotalBytes == 0 {
		return errors.New("NVML does not report the device's memory")
	}
	if free := seen.TotalBytes - seen.UsedBytes; free < needed+spareBytes {
		return fmt.Errorf("%s are free on the device, and %s are needed", guard.FormatBytes(free), guard.FormatBytes(needed+spareBytes))
	}
	return nil
}

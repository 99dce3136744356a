package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
)

// orders are the orders for the programs that go the way together, up to a target.
func (o options) orders(w proof.Way, target int64) (all []order) {
	count, pieces, least := int64(1), int64(pieceCount), int64(1)
	switch w {
	case proof.ManyProcesses:
		count = processCount
	case proof.ManySmall:
		pieces, least = smallCount, smallest
	}
	each := (target + count - 1) / count
	for range count {
		all = append(all, order{Way: w, Target: each, Piece: max((each+pieces-1)/pieces, least), Library: o.cudaLibrary, About: about})
	}
	return all
}

// event is an event of one of the programs.
type event struct {
	index int
	said  said
	ended *os.ProcessState
	at    time.Time
}

// start starts the programs.
func (a *attempt) start(orders []order) error {
	a.events, a.held = make(chan event, 64), make([]int64, len(orders))
	for i, o := range orders {
		if a.device.missing != nil {
			o.Device = a.options.device
		}
		if err := a.startOne(i, o); err != nil {
			return fmt.Errorf("start a program that allocates: %w", err)
		}
	}
	return nil
}

func (a *attempt) startOne(index int, o order) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", allocateCommand, string(text))
	cmd.Args[0], cmd.Env, cmd.Stderr = os.Args[0], a.environment(os.Environ()), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	a.commands, a.stop, a.pids = append(a.commands, cmd), append(a.stop, in.Close), append(a.pids, cmd.Process.Pid)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s said
			if json.Unmarshal(lines.Bytes(), &s) == nil {
				a.events <- event{index: index, said: s, at: time.Now()}
			}
		}
		_ = cmd.Wait()
		a.events <- event{index: index, ended: cmd.ProcessState, at: time.Now()}
	}()
	return nil
}

// end makes the programs free all and waits for them: by force where they do not in time. One that even then hangs in the driver is
// left, since nothing terminates it.
func (a *attempt) end(limit time.Duration) {
	for _, stop := range a.stop {
		_ = stop()
	}
	if a.await(limit) {
		return
	}
	for _, cmd := range a.commands {
		_ = cmd.Process.Kill()
	}
	a.await(limit)
}

// await waits until no program runs any more, and reports whether that came in time.
func (a *attempt) await(limit time.Duration) bool {
	over := time.After(limit)
	for _, pid := range a.pids {
		for running(pid) {
			select {
			case <-over:
				return false
			case <-a.events:
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return true
}

// running reports whether a process of ours has not been waited for.
func running(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

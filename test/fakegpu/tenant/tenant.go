package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// resumeVariable carries over a reexec where the script goes on, and what is
// held.
const resumeVariable = "GPUSLICE_TENANT_RESUME"

// tenant performs a script.
type tenant struct {
	args   []string
	at     int // the next argument
	device int
	held   atomic.Int64 // MiB
}

func resumed() int {
	var at int
	_, _ = fmt.Sscanf(os.Getenv(resumeVariable), "%d", &at)
	return at
}

// restore takes up what was held before a reexec.
func (t *tenant) restore() error {
	var at, device int
	var mib int64
	if n, _ := fmt.Sscanf(os.Getenv(resumeVariable), "%d %d %d", &at, &device, &mib); n != 3 {
		return nil
	}
	t.device = device
	return t.hold(mib)
}

// hold names the main thread for what is held: the library reads the name.
func (t *tenant) hold(mib int64) error {
	name := "tenant"
	if mib > 0 {
		name = fmt.Sprintf("gpu:%d:%dM", t.device, mib)
	}
	if err := os.WriteFile("/proc/self/comm", []byte(name), 0); err != nil {
		return fmt.Errorf("hold %d MiB: %w", mib, err)
	}
	t.held.Store(mib)
	return nil
}

func (t *tenant) beat(every time.Duration) {
	for range time.Tick(every) {
		fmt.Printf("%d alive %dMi\n", os.Getpid(), t.held.Load())
	}
}

func (t *tenant) perform() error {
	for t.at < len(t.args) {
		if err := t.step(t.next()); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next word of the script, empty past its end.
func (t *tenant) next() string {
	if t.at >= len(t.args) {
		return ""
	}
	t.at++
	return t.args[t.at-1]
}

func (t *tenant) step(verb string) error {
	switch verb {
	case "hold":
		return t.amount(t.hold)
	case "grow":
		return t.grow()
	case "spike":
		return t.spike()
	case "sleep":
		return t.pause()
	case "fork":
		return t.fork()
	case "refork":
		return t.amount(t.refork)
	case "ignore":
		return t.expect("SIGTERM", func() error { signal.Ignore(syscall.SIGTERM); return nil })
	case "say":
		fmt.Println(t.next())
		return nil
	case "reexec":
		return t.reexec()
	case "device":
		n, err := strconv.Atoi(t.next())
		t.device = n
		return err
	case "exit":
		code, err := strconv.Atoi(t.next())
		if err != nil {
			return err
		}
		os.Exit(code)
	}
	return fmt.Errorf("unknown step %q", verb)
}

// expect does what is given if the next word is the one expected.
func (t *tenant) expect(word string, do func() error) error {
	if got := t.next(); got != word {
		return fmt.Errorf("got %q, want %q", got, word)
	}
	return do()
}

func (t *tenant) amount(do func(mib int64) error) error {
	mib, err := parseMiB(t.next())
	if err != nil {
		return err
	}
	return do(mib)
}

func (t *tenant) duration(after string) (time.Duration, error) {
	if got := t.next(); got != after {
		return 0, fmt.Errorf("got %q, want %q", got, after)
	}
	return time.ParseDuration(t.next())
}

func (t *tenant) grow() error {
	return t.expect("to", func() error {
		return t.amount(func(goal int64) error {
			over, err := t.duration("over")
			if err != nil {
				return err
			}
			const steps = 20
			from := t.held.Load()
			for i := int64(1); i <= steps; i++ {
				time.Sleep(over / steps)
				if err := t.hold(from + (goal-from)*i/steps); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (t *tenant) spike() error {
	return t.amount(func(mib int64) error {
		lasts, err := t.duration("for")
		if err != nil {
			return err
		}
		before := t.held.Load()
		if err := t.hold(mib); err != nil {
			return err
		}
		time.Sleep(lasts)
		return t.hold(before)
	})
}

func (t *tenant) pause() error {
	lasts, err := time.ParseDuration(t.next())
	if err != nil {
		return err
	}
	time.Sleep(lasts)
	return nil
}

// fork starts a child at once, or "on SIGTERM".
func (t *tenant) fork() error {
	word := t.next()
	if word != "on" {
		mib, err := parseMiB(word)
		if err != nil {
			return err
		}
		return t.child(mib).Start()
	}
	return t.expect("SIGTERM", func() error {
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		go func() {
			for range told {
				if err := t.child(t.held.Load()).Start(); err != nil {
					fmt.Fprintf(os.Stderr, "tenant: fork: %v\n", err)
				}
			}
		}()
		return nil
	})
}

// refork keeps a child going, as a framework's parent does with its workers.
func (t *tenant) refork(mib int64) error {
	go func() {
		for {
			child := t.child(mib)
			if err := child.Start(); err != nil {
				fmt.Fprintf(os.Stderr, "tenant: refork: %v\n", err)
				return
			}
			_ = child.Wait()
		}
	}()
	return nil
}

func (t *tenant) child(mib int64) *exec.Cmd {
	child := exec.Command("/proc/self/exe", "device", strconv.Itoa(t.device), "hold", fmt.Sprintf("%dMi", mib))
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	return child
}

// reexec runs the program anew in its own place; the script goes on after it.
func (t *tenant) reexec() error {
	resume := fmt.Sprintf("%s=%d %d %d", resumeVariable, t.at, t.device, t.held.Load())
	return syscall.Exec("/proc/self/exe", append([]string{"tenant"}, t.args...), append(os.Environ(), resume))
}

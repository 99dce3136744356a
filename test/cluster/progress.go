package cluster

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reporter reports slow steps: one line that is kept up to date on a terminal, a line every 15 seconds elsewhere.
type reporter struct {
	out      io.Writer
	terminal bool
	every    time.Duration
}

func newReporter(out io.Writer) *reporter {
	r := &reporter{out: out, every: 15 * time.Second}
	if f, ok := out.(*os.File); ok {
		_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		r.terminal = err == nil
	}
	if r.terminal {
		r.every = time.Second
	}
	return r
}

func (r *reporter) say(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// step is one piece of work under way.
type step struct {
	*reporter
	what  string
	start time.Time
	done  chan struct{}
	wait  sync.WaitGroup

	mu    sync.Mutex
	count int
	last  string
}

// begin starts to report on what until the step's end is called.
func (r *reporter) begin(what string) *step {
	s := &step{reporter: r, what: what, start: time.Now(), done: make(chan struct{})}
	s.wait.Go(func() {
		tick := time.NewTicker(r.every)
		defer tick.Stop()
		for s.show(); ; s.show() {
			select {
			case <-s.done:
				return
			case <-tick.C:
			}
		}
	})
	return s
}

// note counts one package or download, the last of which is shown.
func (s *step) note(last string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.last = last
}

func (s *step) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.what
	if s.count > 0 {
		text = fmt.Sprintf("%s: %d packages, %s", s.what, s.count, s.last)
	}
	elapsed := time.Since(s.start).Round(time.Second)
	if s.terminal {
		fmt.Fprintf(s.out, "\r\033[K%6s  %.100s", elapsed, text)
		return
	}
	s.say("%6s  %s", elapsed, text)
}

// end reports how long the step took and how it went.
func (s *step) end(err error) {
	close(s.done)
	s.wait.Wait()
	verdict := "done"
	if err != nil {
		verdict = "failed"
	}
	if s.terminal {
		fmt.Fprint(s.out, "\r\033[K")
	}
	s.say("%6s  %s: %s", time.Since(s.start).Round(time.Second), s.what, verdict)
}

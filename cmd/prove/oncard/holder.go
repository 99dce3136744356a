package oncard

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/cmd/prove/cuda"
)

// HoldCommand is the argument that makes the program one that holds memory.
const HoldCommand = "hold"

// about makes the purpose of the process plain to whoever lists processes.
const about = "gpuslice-prove holds some memory of the GPU for a moment, to see what the driver reports. It frees all when it ends."

// holding describes such a process. It exits when its standard input is closed, as it is with its parent.
type holding struct {
	Device  int    `json:"device"`
	Library string `json:"library"`
	About   string `json:"about"`
}

// order is a line that such a process reads.
type order struct {
	Do           string `json:"do"`
	Bytes        int64  `json:"bytes,omitempty"`
	PeriodMicros int64  `json:"periodMicros,omitempty"`
	Handle       []byte `json:"handle,omitempty"`
}

// answer is the line after it.
type answer struct {
	Failure         string `json:"failure,omitempty"`
	Code            int    `json:"code,omitempty"`    // the driver's
	Missing         bool   `json:"missing,omitempty"` // the driver's library lacks the call
	Free            int64  `json:"free,omitempty"`
	Total           int64  `json:"total,omitempty"`
	Multiprocessors int    `json:"multiprocessors,omitempty"`
	Beats           int64  `json:"beats,omitempty"`
	LongestMicros   int64  `json:"longestMicros,omitempty"` // from one beat to the next
	Handle          []byte `json:"handle,omitempty"`
}

// socket is the descriptor of a process's end of a pair of sockets, where it has one.
const socket = 3

// Hold follows orders until its input is closed.
func Hold(text string, in io.Reader, out io.Writer) int {
	runtime.LockOSThread()
	var h holding
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		fmt.Fprintln(os.Stderr, "gpuslice-prove:", err)
		return exitUsage
	}
	lines := make(chan order)
	go func() {
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			var o order
			if json.Unmarshal(scanner.Bytes(), &o) == nil {
				lines <- o
			}
		}
		os.Exit(0)
	}()
	say := func(a answer, err error) {
		if err != nil {
			a.Failure, a.Missing = err.Error(), errors.Is(err, cuda.ErrMissing)
			if e, ok := errors.AsType[*cuda.Error](err); ok {
				a.Code = e.Code
			}
		}
		line, _ := json.Marshal(a)
		fmt.Fprintf(out, "%s\n", line)
	}
	c, err := cuda.Open(h.Library, h.Device)
	say(answer{}, err)
	if err != nil {
		select {} // until its input is closed
	}
	for o := range lines {
		say(o.follow(c, lines))
	}
	return 0
}

// follow carries out one order; next are those after it.
func (o order) follow(c *cuda.Context, next <-chan order) (a answer, err error) {
	switch o.Do {
	case "allocate":
		return a, c.Allocate(o.Bytes)
	case "create":
		return a, c.Create(o.Bytes)
	case "allocateAsync":
		return a, c.AllocateAsync(o.Bytes)
	case "check":
		return a, c.Check()
	case "memory":
		a.Free, a.Total, err = c.Memory()
	case "multiprocessors":
		a.Multiprocessors, err = c.Multiprocessors()
	case "beat":
		return beat(c, time.Duration(o.PeriodMicros)*time.Microsecond, next)
	case "ipc":
		a.Handle, err = c.IPCHandle()
	case "openIPC":
		return a, c.OpenIPC(o.Handle)
	case "give":
		return a, give(c, o.Bytes)
	case "take":
		return a, take(c)
	default:
		err = fmt.Errorf("no order %q", o.Do)
	}
	return a, err
}

// beat writes on the device to what was allocated last, again and again, until the next order.
func beat(c *cuda.Context, period time.Duration, next <-chan order) (a answer, err error) {
	for last := time.Now(); ; {
		select {
		case <-next:
			return a, err
		default:
		}
		if err == nil {
			if err = c.Write(); err == nil {
				a.Beats++
			}
			now := time.Now()
			a.LongestMicros, last = max(a.LongestMicros, now.Sub(last).Microseconds()), now
		}
		time.Sleep(period)
	}
}

// give passes a descriptor of new memory over the socket, and keeps none.
func give(c *cuda.Context, bytes int64) error {
	fd, err := c.Export(bytes)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(fd), nil, 0); err != nil {
		return fmt.Errorf("pass the descriptor: %w", err)
	}
	return nil
}

// take imports the memory of a descriptor that arrives over the socket.
func take(c *cuda.Context) error {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, 0)
	if err != nil {
		return fmt.Errorf("receive the descriptor: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return errors.Join(errors.New("no descriptor arrived"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return errors.Join(errors.New("no descriptor arrived"), err)
	}
	defer unix.Close(fds[0])
	return c.Import(fds[0])
}

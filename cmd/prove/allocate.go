package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/gpuslice/gpuslice/cmd/prove/cuda"
	"github.com/gpuslice/gpuslice/cmd/prove/proof"
)

// allocateCommand is the argument that makes the program one that allocates.
const allocateCommand = "allocate"

// order describes such a program's work. It frees all and exits when its standard input is closed, as it is with its
// parent.
type order struct {
	Way     proof.Way `json:"way"`
	Device  int       `json:"device"`
	Target  int64     `json:"targetBytes"`
	Piece   int64     `json:"pieceBytes"`
	Library string    `json:"library"`
	About   string    `json:"about"`
}

// about makes the purpose of the process plain to whoever lists processes.
const about = "gpuslice-prove goes past its slice of the GPU for a moment, to see what holds it. It frees all when it ends."

// said is a line that such a program prints.
type said struct {
	Opened  bool   `json:"opened,omitempty"`  // there is a context
	Held    int64  `json:"held,omitempty"`    // so far
	Code    int    `json:"code,omitempty"`    // of the error that stopped it
	Failure string `json:"failure,omitempty"` // in words
}

// checkEvery is how often a program that holds all checks whether its context still works.
const checkEvery = 100 * time.Millisecond

func allocate(text string, in io.Reader, out io.Writer) int {
	runtime.LockOSThread()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(0)
	}()
	say := func(s said) {
		line, _ := json.Marshal(s)
		fmt.Fprintf(out, "%s\n", line)
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, "gpuslice-prove:", err)
		return exitUsage
	}
	stopped := o.hold(say)
	s := said{Failure: stopped.Error()}
	if e, ok := errors.AsType[*cuda.Error](stopped); ok {
		s.Code = e.Code
	}
	say(s)
	select {} // its memory stays until its parent has looked
}

// hold allocates piece by piece, and returns the error that stops it.
func (o order) hold(say func(said)) error {
	c, err := cuda.Open(o.Library, o.Device)
	if err != nil {
		return err
	}
	say(said{Opened: true})
	take := map[proof.Way]func(int64) error{proof.Managed: c.AllocateManaged, proof.Create: c.Create}[o.Way]
	if take == nil {
		take = c.Allocate
	}
	for held := int64(0); held < o.Target; {
		piece := min(o.Piece, o.Target-held)
		if err := take(piece); err != nil {
			return err
		}
		held += piece
		say(said{Held: held})
	}
	for {
		if err := c.Check(); err != nil {
			return err
		}
		time.Sleep(checkEvery)
	}
}

package oncard

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuslice/gpuslice/guard/gpu"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	// mostContext is the most that a process may have on the device besides its allocations.
	mostContext = 2 * gibibyte
)

// Exit codes.
const (
	exitHolds  = 0
	exitFails  = 1
	exitUsage  = 2
	exitNoCard = 3 // NVML does not answer, or the file cannot be written: nothing was tried
)

// endLimit is how long the processes of a row may take to end, and its MPS daemon.
const endLimit = 10 * time.Second

// options are the flags.
type options struct {
	out, bin, cgroup         string
	chosen                   []int
	device, terminations     int
	rowLimit                 time.Duration
	cudaLibrary, nvmlLibrary string
}

// card is the tried device, with the processes of the row that is being run.
type card struct {
	options
	driver  *gpu.Driver
	version string
	device  gpu.Device
	started []*process
	over    <-chan struct{} // closed when the row's time is up
}

func open(ctx context.Context, o options) (*card, error) {
	c := &card{options: o, driver: gpu.New(gpu.Options{Library: o.nvmlLibrary, NodePIDs: true, Limit: 10 * time.Second})}
	facts, err := c.driver.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if o.device >= len(facts.Devices) {
		return nil, fmt.Errorf("there is no device %d: NVML shows %d", o.device, len(facts.Devices))
	}
	c.version, c.device = facts.Driver, facts.Devices[o.device]
	return c, nil
}

// end waits for the processes of a row, whose context is done.
func (c *card) end() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	for _, p := range c.started {
		select {
		case <-p.ended:
		case <-ctx.Done(): // nothing terminates a process that hangs in the driver
		}
	}
	c.started = nil
}

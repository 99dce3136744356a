package main

import (
	"context"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// present is the signal that only asks whether a process is there.
const present = syscall.Signal(0)

// filled is a usage with something of everything.
func filled(l limits.Limits) *usage {
	u := newUsage(l, func(context.Context) []gpu.Utilization {
		return []gpu.Utilization{{Device: "gpu0", PID: 214, Percent: 40}, {Device: "gpu0", PID: 999, Percent: 60}}
	})
	at := time.Unix(1e9, 0)
	sample := guard.Sample{Taken: at, Devices: []guard.Device{{ID: "gpu0", TotalBytes: 16384, Processes: []guard.Process{{PID: 214, Container: "trainer"}}}}}
	state := guard.State{Watches: []guard.Watch{{Container: "trainer", Device: "gpu0", HeldBytes: 4096, PeakBytes: 8192}},
		Sensors: []guard.Sensor{{Device: "gpu0", Blind: true, Reason: "so"}}}
	u.saw(sample, state)
	sample.Taken = at.Add(2 * time.Second)
	u.saw(sample, state)
	u.count(guard.Action{Kind: guard.Warn, Container: "trainer"})
	u.count(guard.Action{Kind: guard.Warn, Container: "trainer"})
	u.count(guard.Action{Kind: guard.Report, Container: "trainer", Outcome: guard.Outcome{Result: guard.Ended}})
	u.took(time.Millisecond)
	return u
}

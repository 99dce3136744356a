package main

import (
	"context"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// present is the signal that only asks whether a process is there.
const present = syscall.Signal(0)

// filledRecorder is a recorder with something of everything.
func filledRecorder(l limits.Limits) *recorder {
	r := newRecorder(l, func(context.Context) []guard.Utilization {
		return []guard.Utilization{{Device: "gpu0", PID: 214, Percent: 40}, {Device: "gpu0", PID: 999, Percent: 60}}
	})
	at := time.Now().Add(-2 * time.Second)
	sample := guard.Sample{Taken: at, Devices: []guard.Device{
		{ID: "gpu0", Model: "NVIDIA A10", TotalBytes: 16384, Processes: []guard.Process{{PID: 214, Container: "trainer"}}},
	}}
	state := guard.State{Usages: []guard.Usage{{Container: "trainer", Device: "gpu0", MeasuredAt: at, UsedBytes: 4096, PeakBytes: 8192}},
		Devices: []guard.DeviceStatus{{Device: "gpu0", Unreliable: true, Reason: "so"}}}
	r.record(sample, state)
	sample.Taken = at.Add(2 * time.Second)
	r.record(sample, state)
	r.count(guard.Event{Kind: guard.NearLimit, Container: "trainer"})
	r.count(guard.Event{Kind: guard.NearLimit, Container: "trainer"})
	r.count(guard.Event{Kind: guard.TerminationResult, Container: "trainer", Outcome: &guard.Outcome{Result: guard.Terminated}})
	r.observeDuration(time.Millisecond)
	return r
}

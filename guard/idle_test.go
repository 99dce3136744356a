package guard

import (
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// idleSample is one of gpu0, with the processes of an idle container.
func idleSample(at time.Duration, ps ...Process) Sample {
	taken := epoch.Add(at)
	s := Sample{Taken: taken, Devices: []Device{{ID: "gpu0", Listed: taken, TotalBytes: 80 << 30, UsedBytes: 10 << 30, Processes: ps}}}
	s.Idle = []Idle{{Container: "trainer", Since: epoch.Add(-8 * time.Hour), For: 8 * time.Hour}}
	return s
}

func idleProcess(pid int) Process {
	return Process{PID: pid, Start: uint64(pid), Container: "trainer", Command: "python", UsedBytes: 1 << 30, Known: true}
}

func TestIdleOrders(t *testing.T) {
	l := limits.Default()
	l.MaxTerminations = 1
	l.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	protected, client, other := idleProcess(3), idleProcess(4), idleProcess(5)
	protected.Protected, client.MPS, other.Container = true, true, "beside"
	all := []Process{idleProcess(7), idleProcess(8), idleProcess(9), protected, client, other}

	var s State
	var ordered []int
	at := time.Duration(0)
	for range 100 { // each denied: none is ordered twice
		at += 2 * time.Second
		next, order, _ := Step(s, idleSample(at, all...), l)
		s = next
		if order != nil {
			ordered = append(ordered, order.Process.PID)
			s, _ = applyOutcome(s, &Outcome{Order: *order, Result: Denied, Reason: "it may not", At: epoch.Add(at)})
		}
	}
	equal(t, "each that may be signaled, once", ordered, []int{7, 8, 9})
	equal(t, "none counts towards the escalation", len(s.Terminations), 0)

	running := idleSample(at+2*time.Second, all...)
	running.Idle = nil
	s, _, _ = Step(s, running, l)
	equal(t, "forgotten once something runs", len(s.IdleOrdered), 0)
}

func TestWithheldFromIdle(t *testing.T) {
	s := State{SampledAt: epoch}
	o := Order{Kind: TerminateProcess, Container: "trainer", Device: "gpu0", Process: idleProcess(7), Idle: idleSample(0).Idle[0]}
	for name, c := range map[string]struct {
		change func(*Sample)
		want   bool
	}{
		"the same":                    {func(*Sample) {}, true},
		"something ran":               {func(in *Sample) { in.Idle = nil }, false},
		"idle since another time":     {func(in *Sample) { in.Idle[0].Since = epoch }, false},
		"another process of that PID": {func(in *Sample) { in.Devices[0].Processes[0].Start++ }, false},
		"in another container":        {func(in *Sample) { in.Devices[0].Processes[0].Container = "beside" }, false},
		"a client by now":             {func(in *Sample) { in.Devices[0].Processes[0].MPS = true }, false},
		"a device that fails":         {func(in *Sample) { in.Devices[0].Fault = "it is lost" }, false},
		"an old list":                 {func(in *Sample) { in.Devices[0].Listed = epoch }, false},
		"nothing was read":            {func(in *Sample) { in.Fault = "the driver hangs" }, false},
	} {
		in := idleSample(time.Second, idleProcess(7))
		c.change(&in)
		equal(t, name, withheld(s, in, o, limits.Default()) == "", c.want)
	}
}

func TestFormatPeriod(t *testing.T) {
	for d, want := range map[time.Duration]string{8 * time.Hour: "8h", 90*time.Minute + 10*time.Second: "1h30m", 10 * time.Minute: "10m",
		30500 * time.Millisecond: "30s", 10*time.Hour + 5*time.Minute: "10h5m"} {
		equal(t, d.String(), FormatPeriod(d), want)
	}
}

package proof

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestObserved(t *testing.T) {
	t.Parallel()
	passed := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const slice, target, card = 4 << 30, 5 << 30, 80 << 30
	seen := func(o Observed) Observed {
		o.SliceBytes, o.TargetBytes = slice, target
		if o.TotalBytes == 0 {
			o.TotalBytes = card
		}
		return o
	}
	for _, tt := range []struct {
		name     string
		way      Way
		seen     Observed
		held     Holder
		reaction int64
		detail   string
	}{
		{"nobody ended it", Alloc, Observed{Passed: passed, ReachedBytes: target, Watched: time.Minute},
			Nothing, 0, "held more than the slice for 1m0s"},
		{"a guard ended it", Alloc, Observed{Passed: passed, Ended: passed.Add(2300 * time.Millisecond), Signal: 15}, Guard, 2300, "signal 15"},
		{"ended in the same instant", Alloc, Observed{Passed: passed, Ended: passed, Signal: 9}, Guard, 1, "signal 9"},
		{"a daemon ended its client", Alloc, Observed{Passed: passed, Ended: passed.Add(time.Second), Terminated: true},
			Guard, 1000, "MPS daemon"},
		{"a crash is no guard", Alloc, Observed{Passed: passed, Ended: passed.Add(time.Second), Signal: 11}, "", 0, "signal 11"},
		{"ended before it was past the slice", Alloc, Observed{Ended: passed, Signal: 15}, "", 0, "before it was past"},
		{"the kernel ended it for want of host memory", Managed,
			Observed{Passed: passed, Ended: passed.Add(time.Second), Signal: 9, OutOfHostMemory: true}, "", 0, "memory of the host"},
		{"the driver's limit", Alloc, Observed{OutOfMemory: true, FreeBytes: 20 << 30, NeedBytes: 1 << 30, LimitBytes: slice},
			Driver, 0, "limit of the container"},
		{"a daemon's limit", Alloc, Observed{OutOfMemory: true, FreeBytes: 20 << 30, NeedBytes: 1 << 30, Client: true}, MPS, 0, "daemon's limit"},
		{"nobody's limit", Alloc, Observed{OutOfMemory: true, FreeBytes: 20 << 30, NeedBytes: 1 << 30}, Unknown, 0, "neither"},
		{"a limit beyond the slice", Alloc,
			Observed{OutOfMemory: true, FreeBytes: 20 << 30, NeedBytes: 1 << 30, ReachedBytes: slice + 1, Client: true},
			Nothing, 0, "larger than the slice"},
		{"a full device proves nothing", Alloc, Observed{OutOfMemory: true, FreeBytes: 1 << 20, NeedBytes: 1 << 30, Client: true}, "", 0, "full"},
		{"a device that cannot be read proves nothing", Alloc,
			Observed{OutOfMemory: true, FreeBytes: -1, NeedBytes: 1 << 30, Client: true}, "", 0, "unknown"},
		{"an instance", Alloc, Observed{OutOfMemory: true, FreeBytes: 0, NeedBytes: 1 << 30, TotalBytes: slice}, Hardware, 0, "no more"},
		{"no context without the daemon", MPSUnset, Observed{Unavailable: true, Failure: "CUDA_ERROR_DEVICE_UNAVAILABLE"}, MPS, 0, "alone"},
		{"no context at all", Alloc, Observed{Unavailable: true, Failure: "CUDA_ERROR_DEVICE_UNAVAILABLE"},
			"", 0, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
		{"no context for a client of the daemon", MPSLimit, Observed{Unavailable: true, Failure: "CUDA_ERROR_DEVICE_UNAVAILABLE"},
			"", 0, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
		{"a daemon that is not ready", MPSUnset, Observed{Failure: "cuInit: CUDA_ERROR_MPS_SERVER_NOT_READY (807)"}, "", 0, "807"},
		{"signal 9, and the kernel's kills are unknown", Alloc,
			Observed{Passed: passed, Ended: passed.Add(time.Second), Signal: 9, KillsUnknown: true}, "", 0, "may be the kernel's"},
		{"signal 15, and the kernel's kills are unknown", Alloc,
			Observed{Passed: passed, Ended: passed.Add(time.Second), Signal: 15, KillsUnknown: true}, Guard, 1000, "signal 15"},
		{"managed memory beyond an instance", Managed, Observed{Passed: passed, ReachedBytes: target, TotalBytes: slice, Watched: time.Minute},
			Hardware, 0, "memory of the host"},
		{"managed memory of a shared device", Managed, Observed{Passed: passed, ReachedBytes: target, Watched: time.Minute},
			Nothing, 0, "held more"},
		{"another error", Create, Observed{Failure: "cuMemCreate: CUDA_ERROR_NOT_SUPPORTED (801)"}, "", 0, "CUDA_ERROR_NOT_SUPPORTED"},
		{"it took too long", Alloc, Observed{}, "", 0, "did not get past"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := seen(tt.seen).Attempt(tt.way)
			if got.Held != tt.held || got.ReactionMilliseconds != tt.reaction || !strings.Contains(got.Detail, tt.detail) || got.Way != tt.way {
				t.Errorf("%+v, want %q after %d ms, with %q", got, tt.held, tt.reaction, tt.detail)
			}
		})
	}
}

// reported is a report of words WAY=HOLDER.
func reported(words string) (r Report) {
	for word := range strings.FieldsSeq(words) {
		way, held, _ := strings.Cut(word, "=")
		r.Attempts = append(r.Attempts, Attempt{Way: Way(way), Held: Holder(held)})
	}
	return r
}

func TestReport(t *testing.T) {
	t.Parallel()
	const guarded = "cuMemAlloc=guard cuMemCreate=guard many-small=guard many-processes=guard "
	for _, tt := range []struct {
		name, attempts, tier string
		weakest              Holder
		proves               string // of framework, guard, mps, driver, hardware
	}{
		{"nothing was tried", "", "none", "", ""},
		{"a guard, which sees no managed memory", guarded + "cuMemAllocManaged=nothing", "guard", Nothing, "framework guard"},
		{"a way was not tried", "cuMemAlloc=guard cuMemCreate=guard many-small=guard", "none", Guard, ""},
		{"nothing follows from one", guarded + "cuMemAlloc=", "none", "", ""},
		{"one was not held", guarded + "cuMemAlloc=nothing", "none", Nothing, ""},
		{"one was held by a limit that nobody knows",
			"cuMemAlloc=unknown cuMemCreate=guard many-small=guard many-processes=guard", "none", Unknown, ""},
		{"one of several with the same name was not", guarded + guarded + "many-small=nothing", "none", Nothing, ""},
		{"MPS, each process by itself",
			"cuMemAlloc=mps cuMemCreate=mps many-small=mps many-processes=nothing mps-unset=mps mps-elsewhere=mps mps-limit=mps",
			"mps", Nothing, "mps"},
		{"MPS, with a guard for all together",
			"cuMemAlloc=mps cuMemCreate=mps many-small=mps many-processes=guard mps-unset=mps mps-elsewhere=mps mps-limit=mps",
			"mps", Guard, "framework guard mps"},
		{"MPS that lets go, and a guard",
			"cuMemAlloc=mps cuMemCreate=mps many-small=mps many-processes=guard mps-unset=guard mps-elsewhere=guard mps-limit=guard",
			"guard", Guard, "framework guard"},
		{"MPS that nobody tried to evade", "cuMemAlloc=mps cuMemCreate=mps many-small=mps many-processes=guard",
			"guard", Guard, "framework guard"},
		{"the driver", "cuMemAlloc=driver cuMemCreate=driver many-small=driver many-processes=driver cuMemAllocManaged=nothing",
			"driver", Nothing, "framework guard driver"},
		{"an instance", "cuMemAlloc=hardware cuMemCreate=hardware many-small=hardware many-processes=hardware cuMemAllocManaged=hardware",
			"hardware", Hardware, "framework guard driver hardware"},
		{"an instance, with managed memory in the host's",
			"cuMemAlloc=hardware cuMemCreate=hardware many-small=hardware many-processes=hardware cuMemAllocManaged=",
			"hardware", "", "framework guard driver hardware"},
		{"an instance with a way around",
			"cuMemAlloc=hardware cuMemCreate=nothing many-small=hardware many-processes=hardware cuMemAllocManaged=hardware", "none", Nothing, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := reported(tt.attempts)
			var proves []string
			for _, tier := range []string{"framework", "guard", "mps", "driver", "hardware"} {
				if r.Proves(tier) {
					proves = append(proves, tier)
				}
			}
			if got := strings.Join(proves, " "); got != tt.proves || r.Tier() != tt.tier || r.Weakest() != tt.weakest {
				t.Errorf("proves %q, tier %s, weakest %q; want %q, %s, %q", got, r.Tier(), r.Weakest(), tt.proves, tt.tier, tt.weakest)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	first, second := reported("cuMemAlloc=guard cuMemCreate=guard"), reported("cuMemCreate=nothing many-small=guard")
	first.Driver, second.Driver, first.Readings = "1", "2", &Readings{PIDs: Right}
	first.Taken, second.Taken = time.Unix(1, 0), time.Unix(2, 0)
	got := first.Merge(second)
	want := reported("cuMemAlloc=guard cuMemCreate=nothing many-small=guard")
	want.Driver, want.OldDriver, want.Taken, want.Readings = "2", "1", second.Taken, first.Readings
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if again := got.Merge(second); again.OldDriver != "1" {
		t.Errorf("after a third run, the first one's driver is %q", again.OldDriver)
	}
	if alone := (Report{}).Merge(second); alone.OldDriver != "" {
		t.Errorf("one run has two drivers, 2 and %q", alone.OldDriver)
	}
}

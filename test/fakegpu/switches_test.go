package fakegpu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"
)

func TestFailingCall(t *testing.T) {
	t.Run("fails as often as set", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		for range 2 { // the same words again mean the same again
			g.say(t, Config{Fault: Fault{Fail: []Fail{{"nvmlDeviceGetMemoryInfo", "UNKNOWN", 2}}}})
			var got []nvml.Return
			for range 4 {
				_, ret := d.GetMemoryInfo()
				got = append(got, ret)
			}
			if diff := cmp.Diff([]nvml.Return{nvml.ERROR_UNKNOWN, nvml.ERROR_UNKNOWN, nvml.SUCCESS, nvml.SUCCESS}, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			g.say(t, Config{})
			if _, ret := d.GetMemoryInfo(); ret != nvml.SUCCESS {
				t.Errorf("after the config changed: %v", ret)
			}
		}
	})
}

func TestHangingCall(t *testing.T) {
	t.Run("hangs until the config changes", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		g.say(t, Config{Fault: Fault{Hang: []string{"nvmlDeviceGetComputeRunningProcesses*"}}})
		answered := make(chan nvml.Return, 1)
		go func() {
			_, ret := d.GetComputeRunningProcesses()
			answered <- ret
		}()
		select {
		case ret := <-answered:
			t.Fatalf("the call did not hang: %v", ret)
		case <-time.After(100 * time.Millisecond):
		}
		if _, ret := d.GetMemoryInfo(); ret != nvml.SUCCESS {
			t.Errorf("another call beside one that hangs: %v", ret)
		}
		g.say(t, Config{})
		if ret := <-answered; ret != nvml.SUCCESS {
			t.Errorf("the call that hung: %v", ret)
		}
	})
}

func TestSlowCall(t *testing.T) {
	t.Run("takes its time", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		g.say(t, Config{Fault: Fault{Slow: []Slow{{"nvmlDeviceGetMemoryInfo", 50 * time.Millisecond}}}})
		start := time.Now()
		if _, ret := d.GetMemoryInfo(); ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
		if took := time.Since(start); took < 50*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestLingeringMemory(t *testing.T) {
	t.Run("outlives its process", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		lingers := Config{Fault: Fault{Linger: time.Minute}}
		g.say(t, lingers)
		tenant := g.start(t, "a", "gpu0=1GiB")
		want := "total: 1024 of 81920\ncompute: a=1024\n"
		if diff := cmp.Diff(want, g.reading(d)); diff != "" {
			t.Fatalf("alive (-want +got):\n%s", diff)
		}
		tenant.Process.Kill()
		tenant.Wait()
		if diff := cmp.Diff("total: 1024 of 81920\n", g.reading(d)); diff != "" {
			t.Errorf("just gone (-want +got):\n%s", diff)
		}
		lingers.Stale = true
		g.say(t, lingers)
		if diff := cmp.Diff(want, g.reading(d)); diff != "" {
			t.Errorf("just gone, with a stale PID (-want +got):\n%s", diff)
		}
		lingers.Linger = time.Millisecond
		g.say(t, lingers)
		for deadline := time.Now().Add(5 * time.Second); g.reading(d) != "total: 0 of 81920\n"; {
			if time.Now().After(deadline) {
				t.Fatalf("its memory never goes:\n%s", g.reading(d))
			}
		}
	})
}

func TestHiddenProcess(t *testing.T) {
	t.Run("is in the total only", func(t *testing.T) {
		g := load(t)
		tenant := g.start(t, "a", "gpu0=1GiB")
		g.say(t, Config{Fault: Fault{Hidden: []int{tenant.Process.Pid}}})
		if diff := cmp.Diff("total: 1024 of 81920\n", g.reading(g.device(t, 0))); diff != "" {
			t.Errorf("reading (-want +got):\n%s", diff)
		}
	})
}

func TestUtilization(t *testing.T) {
	t.Run("may name an unknown process", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		g.start(t, "a", "gpu0=1GiB")
		if _, ret := d.GetProcessUtilization(0); ret != nvml.ERROR_NOT_SUPPORTED {
			t.Errorf("without usage in the config: %v", ret)
		}
		g.say(t, Config{Fault: Fault{Usage: "none"}})
		if _, ret := d.GetProcessUtilization(0); ret != nvml.ERROR_NOT_FOUND {
			t.Errorf("where nothing runs: %v", ret)
		}
		for _, tt := range []struct{ usage, want string }{{"own", "a=40 "}, {"node", "a=40 645400=40 "}, {"trace", "a=0 "}} {
			g.say(t, Config{Fault: Fault{Usage: tt.usage}})
			samples, ret := d.GetProcessUtilization(0)
			if ret != nvml.SUCCESS {
				t.Fatal(ret)
			}
			got := ""
			for _, s := range samples {
				got += fmt.Sprintf("%s=%d ", g.letter(s.Pid), s.SmUtil)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("samples with usage %s (-want +got):\n%s", tt.usage, diff)
			}
		}
	})
}

func TestCgroup(t *testing.T) {
	t.Run("is charged by the driver", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		in := g.start(t, "a", "gpu0=1GiB")
		g.start(t, "b", "gpu0=2GiB")
		cgroup := t.TempDir()
		if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), fmt.Appendln(nil, in.Process.Pid), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ret := d.GetMemoryLimits_v1(cgroup); ret != nvml.ERROR_NOT_SUPPORTED {
			t.Errorf("an older driver: %v", ret)
		}
		g.say(t, Config{Fault: Fault{Limits: true}})
		if l, ret := d.GetMemoryLimits_v1(cgroup); ret != nvml.SUCCESS || Bytes(l.CurrentUsed) != GiB {
			t.Errorf("its processes' sum: %s, %v", Bytes(l.CurrentUsed), ret)
		}
		if _, ret := d.GetMemoryLimits_v1(cgroup + "/none"); ret != nvml.ERROR_NOT_FOUND {
			t.Errorf("no such cgroup: %v", ret)
		}
		g.say(t, Config{Fault: Fault{Limits: true, Charged: 5 * GiB}})
		if l, ret := d.GetMemoryLimits_v1(cgroup); ret != nvml.SUCCESS || Bytes(l.CurrentUsed) != 5*GiB {
			t.Errorf("what the config says: %s, %v", Bytes(l.CurrentUsed), ret)
		}
	})
	t.Run("has limits", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		if ret := d.SetMemoryLimits_v1(t.TempDir(), 1, 2); ret != nvml.ERROR_NOT_SUPPORTED {
			t.Errorf("an older driver: %v", ret)
		}
		g.say(t, Config{Fault: Fault{Limits: true}})
		for _, c := range []struct {
			cgroup     string
			soft, hard Bytes
			want       nvml.Return
		}{
			{t.TempDir(), GiB, 2 * GiB, nvml.SUCCESS},
			{t.TempDir(), 2 * GiB, GiB, nvml.ERROR_INVALID_ARGUMENT},
			{t.TempDir() + "/none", GiB, GiB, nvml.ERROR_OPERATING_SYSTEM},
		} {
			if ret := d.SetMemoryLimits_v1(c.cgroup, uint64(c.soft), uint64(c.hard)); ret != c.want {
				t.Errorf("%+v: %v", c, ret)
			}
		}
	})
}

func TestCriticalEvent(t *testing.T) {
	t.Run("comes once", func(t *testing.T) {
		g := load(t)
		set, ret := g.EventSetCreate()
		if ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
		defer set.Free()
		if ret := g.device(t, 0).RegisterEvents(nvml.EventTypeXidCriticalError, set); ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
		g.say(t, Config{Fault: Fault{Xids: []int{79}}})
		if e, ret := set.Wait(1000); ret != nvml.SUCCESS || e.EventData != 79 {
			t.Errorf("event %d, %v", e.EventData, ret)
		}
		if e, ret := set.Wait(20); ret != nvml.ERROR_TIMEOUT {
			t.Errorf("again: event %d, %v", e.EventData, ret)
		}
	})
}

func TestGrowingList(t *testing.T) {
	t.Run("is read in the end", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		for i := range 5 {
			g.start(t, fmt.Sprint("p", i), "gpu0=1MiB")
		}
		g.say(t, Config{Fault: Fault{Fail: []Fail{{"nvmlDeviceGetComputeRunningProcesses*", "INSUFFICIENT_SIZE", 2}}}})
		want := "total: 5 of 81920\ncompute: p0=1 p1=1 p2=1 p3=1 p4=1\n"
		if diff := cmp.Diff(want, g.reading(d)); diff != "" {
			t.Errorf("reading (-want +got):\n%s", diff)
		}
	})
}

func TestChangingConfig(t *testing.T) {
	t.Run("may change while it is read", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		full := func(i int) Config { // a device of one or two GiB with nothing free
			size := Bytes(1+i%2) * GiB
			return Config{Node: g.node, Fault: Fault{Memory: size, Others: size}}
		}
		g.say(t, full(0))
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() {
			var err error
			for i := 0; err == nil && ctx.Err() == nil; i++ {
				err = full(i).WriteFile(g.config)
			}
			stopped <- err
		}()
		for range 200 {
			if m, ret := d.GetMemoryInfo(); ret != nvml.SUCCESS || m.Used != m.Total || Bytes(m.Total) > 2*GiB {
				t.Errorf("half a config: %d of %d, %v", m.Used, m.Total, ret)
				break
			}
		}
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

package node

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// full is a node with 8 devices and 100 pods, each of two processes within its
// slice.
type full struct{ pods []Pod }

func (full) podUID(i int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", i) }

func (f full) Read(process, file string) (string, error) {
	var pid int
	switch {
	case process == "self" && file == "stat":
		pid = 9
	case process == "self":
		return "0::/\n", nil
	case process == "1":
		return "0::/../../../init.scope\n", nil
	default:
		if _, err := fmt.Sscan(process, &pid); err != nil {
			return "", err
		}
	}
	if file == "cgroup" {
		return fmt.Sprintf("0::/../../pod%s/%064x\n", f.podUID(pid/10), pid/10), nil
	}
	return fmt.Sprintf("%d (python) S 1%s 1 0\n", pid, strings.Repeat(" 0", 17)), nil
}

func (full) Threads(int) iter.Seq[int] { return func(func(int) bool) {} }
func (full) PIDs() []int               { return nil }
func (full) Now() uint64               { return 2 }

func (f full) Promised() []Pod { return f.pods }

func (f full) Promise(string) (Pod, bool) { return f.pods[0], true }

// devices are those of a full node.
type devices struct{ full }

func (d devices) Read(context.Context, time.Duration) ([]guard.Device, error) {
	var all []guard.Device
	for i := range 8 {
		device := guard.Device{ID: fmt.Sprint("gpu", i), Listed: time.Now(), AsOf: 2, TotalBytes: 80 << 30, UsedBytes: 50 << 30}
		for pod := i; pod < len(d.pods); pod += 8 {
			for n := range 2 {
				device.Processes = append(device.Processes, guard.Process{PID: 1000 + 10*pod + n, UsedBytes: 1 << 30, Known: true})
			}
		}
		all = append(all, device)
	}
	return all, nil
}

type nobody struct{}

func (nobody) Pod(Pod) guard.Reporter             { return nobody{} }
func (nobody) Left(Pod)                           {}
func (nobody) Sampled(Sample)                     {}
func (nobody) Report(guard.Event)                 {}
func (nobody) Ordered(guard.Order)                {}
func (nobody) Observed(guard.Sample, guard.State) {}

// BenchmarkAgent is one sample of a full node whose lists are all new, without what
// the driver takes.
func BenchmarkAgent(b *testing.B) {
	var f full
	for i := range 100 {
		p := Pod{UID: f.podUID(100 + i), Limits: limits.Default(), Containers: map[string]string{fmt.Sprintf("%064x", 100+i): "trainer"}}
		p.Limits.Containers = []limits.Container{{Name: "trainer", SliceBytes: 4 << 30, LimitBytes: 4 << 30, GPUs: 1}}
		f.pods = append(f.pods, p)
	}
	n, err := proc.NewNode(f)
	if err != nil {
		b.Fatal(err)
	}
	a := &Agent{Reader: devices{f}, Node: n, Pods: f, Reporter: nobody{}}
	a.sampler, a.enforced = sampler{reader: a.Reader, node: n}, map[string]*enforced{}
	b.ReportAllocs()
	for b.Loop() {
		a.advance(b.Context(), 0)
	}
	if len(a.enforced) != 100 || len(a.enforced[f.podUID(100)].seen) != 1 {
		b.Errorf("%d pods are enforced", len(a.enforced))
	}
}

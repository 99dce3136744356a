package plan

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/placement"
	"github.com/gpuslice/gpuslice/test/openb"
)

// traces is a folder with the trace openb; the tests of this file are skipped without it.
func traces(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GPUSLICE_TRACES")
	if dir == "" {
		t.Skip("reads the trace openb: set GPUSLICE_TRACES to the folder of its files")
	}
	return dir
}

func traceFleet(t *testing.T, list string) *demand.Fleet {
	t.Helper()
	dir := traces(t)
	var files [2]*os.File
	for i, name := range []string{"openb_node_list_gpu_node.csv.gz", "openb_pod_list_" + list + ".csv.gz"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	fleet, err := openb.Read(files[0], files[1])
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

// arrivals are the pods of a list and others drawn from it until they demand 1.3 times the fleet, in random order.
func arrivals(f *demand.Fleet, random *rand.Rand) (order []int) {
	demanded, enough := 0, f.Devices()*demand.Whole*13/10
	for i := range f.Pods {
		order = append(order, i)
		demanded += f.Pods[i].Devices * f.Pods[i].Share
	}
	for demanded < enough {
		i := random.IntN(len(f.Pods))
		order = append(order, i)
		demanded += f.Pods[i].Devices * f.Pods[i].Share
	}
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// allocatedByBestFit is the per cent of all devices that pods have once those that arrived demand all of them.
func allocatedByBestFit(f *demand.Fleet, seed uint64) float64 {
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBestFit(f)
	allocated, demanded, all := 0, 0, f.Devices()*demand.Whole
	for _, i := range arrivals(f, random) {
		p := &f.Pods[i]
		if demanded += p.Devices * p.Share; demanded > all {
			break
		}
		if b.place(p, random) {
			allocated += p.Devices * p.Share
		}
	}
	return 100 * float64(allocated) / float64(all)
}

// TestTraceBestFit holds the reader and best fit to what the trace's authors published: the mean of ten seeds.
func TestTraceBestFit(t *testing.T) {
	for list, published := range map[string]float64{"default": 92.86, "gpushare40": 91.44} {
		f, sum := traceFleet(t, list), 0.0
		for seed := range uint64(10) {
			sum += allocatedByBestFit(f, seed)
		}
		mean := sum / 10
		t.Logf("%s: %.2f%% allocated, published %.2f%%", list, mean, published)
		if mean < published-0.3 || mean > published+0.3 {
			t.Errorf("%s: best fit allocates %.2f%%, published are %.2f%%", list, mean, published)
		}
	}
}

// TestTraceLayouts prints the devices that the pods with parts need under each layout, beside the facts of a bound, and holds the gap of
// the best mix to what is published.
func TestTraceLayouts(t *testing.T) {
	f := traceFleet(t, "default")
	whole := 0
	for i := range f.Pods {
		if p := &f.Pods[i]; !p.Part() {
			whole += p.Devices
		}
	}
	for _, row := range []struct {
		name     string
		families layout.Families
		most     int
	}{
		{"one each", layout.Families{}, 3078},
		{"4 replicas", layout.Families{Replicas: []int{4}, Shared: layout.TimeSlicing}, 2847},
		{"2 replicas", layout.Families{Replicas: []int{2}, Shared: layout.TimeSlicing}, 2278},
		{"MIG sizes", asA100, 2319},
		{"best mix", layout.Families{Replicas: layout.AllReplicas(), Shared: layout.TimeSlicing}, 2241},
		{"exact", layout.Families{Claims: true}, 1975},
	} {
		start := time.Now()
		got, bound := layout.Pack(f, row.families).Devices()-whole, layout.Bound(f, row.families)-whole
		t.Logf("%s: %d devices, at least %d (%v)", row.name, got, bound, time.Since(start))
		if got < bound || got > row.most {
			t.Errorf("%s: %d devices, at least %d, at most %d", row.name, got, bound, row.most)
		}
	}
}

// asA100 divides every GPU as an A100 of 80 GB: the trace names no models that MIG divides.
var asA100 = layout.Families{MIG: true, Geometry: func(*demand.Kind) *layout.Geometry { return layout.GeometryOf("A100", 81920) }}

// servedOn places pods as they arrive by the stock scheduler on nodes as a layout has them, until those that arrived demand all devices,
// as the trace's authors measure policies. It returns what is allocated and what of it pods demanded, in per cent of all devices.
func servedOn(f *demand.Fleet, a *layout.Assignment, seed uint64) (allocated, served float64) {
	var order []int
	var pods []placement.Pod
	demanded, all := 0, f.Devices()*demand.Whole
	for _, i := range arrivals(f, rand.New(rand.NewPCG(seed, 0))) {
		if demanded += f.Pods[i].Devices * f.Pods[i].Share; demanded > all {
			break
		}
		order, pods = append(order, i), append(pods, a.Pods[i])
	}
	for at, node := range placement.Stock(a.Nodes, pods) {
		if node < 0 {
			continue
		}
		served += float64(f.Pods[order[at]].Devices * f.Pods[order[at]].Share)
		allocated += float64(pods[at].Part)
		devices := f.Kinds[f.Nodes[node].Kind].Devices
		for name, count := range pods[at].Extended {
			allocated += float64(count) * unit(name, a, node, devices)
		}
	}
	return 100 * allocated / float64(all), 100 * served / float64(all)
}

// unit is a unit of a resource in thousandths of a device. MIG instances count by their memory slices.
func unit(name string, a *layout.Assignment, node, devices int) float64 {
	g := layout.GeometryOf("A100", 81920)
	for _, p := range g.Profiles {
		if p.Name == name {
			return demand.Whole * float64(p.Size) / float64(g.Slices)
		}
	}
	if a.Forms[node].Strategy == layout.MIG {
		return demand.Whole
	}
	return demand.Whole * float64(devices) / float64(a.Nodes[node].Extended[name])
}

// TestTraceServed prints allocated and served demand under each layout, mean of ten seeds. A layout is made for the pods of the list, all
// at once; others drawn from the list arrive. Published, where the demand is allocated exactly: see the authors' six policies.
func TestTraceServed(t *testing.T) {
	for _, list := range []string{"default", "gpushare40"} {
		f := traceFleet(t, list)
		for _, row := range []struct {
			name     string
			families layout.Families
		}{
			{"whole devices", layout.Families{}},
			{"4 replicas", layout.Families{Replicas: []int{4}, Shared: layout.TimeSlicing}},
			{"2 replicas", layout.Families{Replicas: []int{2}, Shared: layout.TimeSlicing}},
			{"MIG sizes", asA100},
			{"best mix", layout.Families{Replicas: layout.AllReplicas(), Shared: layout.TimeSlicing}},
			{"exact", layout.Families{Claims: true}},
		} {
			start := time.Now()
			a := layout.Assign(f, row.families, layout.Pack(f, row.families))
			allocated, served := 0.0, 0.0
			const seeds = 10
			for seed := range uint64(seeds) {
				x, y := servedOn(f, a, seed)
				allocated, served = allocated+x/seeds, served+y/seeds
			}
			t.Logf("%s, %s: %.2f%% allocated, %.2f%% served (%v)", list, row.name, allocated, served, time.Since(start).Round(time.Second))
			if served > allocated+1e-6 || allocated > 100+1e-6 || served < 50 {
				t.Errorf("%s, %s: %.2f%% allocated, %.2f%% served", list, row.name, allocated, served)
			}
		}
	}
}

func TestTraceAssign(t *testing.T) {
	f := traceFleet(t, "default")
	start := time.Now()
	before := layout.Today(f)
	t.Logf("today: %d wait (%v)", before.Waiting, time.Since(start))
	fam := layout.Families{Replicas: layout.AllReplicas(), Shared: layout.TimeSlicing}
	packing := layout.Pack(f, fam)
	after := layout.Assign(f, fam, packing)
	t.Logf("planned: %d wait (%v)", after.Waiting, time.Since(start))
}

// TestTracePlan prints what the whole command takes.
func TestTracePlan(t *testing.T) {
	dir := traces(t)
	start := time.Now()
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	d := planOf(t, "--from",
		tracePrefix+filepath.Join(dir, "openb_node_list_gpu_node.csv.gz")+","+filepath.Join(dir, "openb_pod_list_default.csv.gz"))
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	cpu := time.Duration(after.Utime.Nano() - before.Utime.Nano() + after.Stime.Nano() - before.Stime.Nano())
	t.Logf("%+v %+v: %v, %v of CPU time, at most %d MiB resident", d.Devices, d.Waiting, time.Since(start), cpu, after.Maxrss>>10)
}

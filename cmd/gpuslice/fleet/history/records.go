package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
	"github.com/gpuslice/gpuslice/policies/api"
)

// Bounds on the input: a workload of a month takes 6 KB, a series 300 bytes.
const (
	MaxWorkloads = 50_000
	MaxSeries    = 500_000
	maxName      = 253 // of a pod, a container or a namespace
	maxDevice    = 1024
)

// ErrTooMuch is returned when a bound is passed.
var ErrTooMuch = errors.New("set a shorter --since, or read fewer files")

// Key names a container of a workload.
type Key struct {
	Cluster                        string // "": the server or file has no label of one
	Namespace, Workload, Container string
}

func (k Key) workload() Key {
	return Key{Cluster: k.Cluster, Namespace: k.Namespace, Workload: k.Workload}
}

// Record is the data of one Key.
type Record struct {
	Key    Key
	Owner  Owner
	Memory sizing.History
	Events sizing.Events
	Slice  api.MiB // that its pods had last; 0: unknown
	Device api.MiB // memory of the largest GPU that they were on last; 0: unknown
	Pods   int     // with samples in the last two hours of all
	// Shared reports whether the samples are of a GPU that several containers share, and so nobody's own.
	Shared bool
	// EngineUse is the highest part of its cache that an inference engine reported to use; 0: unknown.
	EngineUse float64

	free float64 // least memory of its GPU that was free, in MiB; negative: unknown
}

// series is one of the sequences of samples of a record: a container of a pod on a device.
type series struct {
	record *Record
	pod    string
	first  float64
	last   float64
	gpu    string // that DCGM measured; "": the samples are of the container itself
	counter
}

// Records are the data of all workloads.
type Records struct {
	// System is the namespace of the agents, which measure pods of all others.
	System string
	// Until is the time in seconds after which no sample can be; 0: any can.
	Until float64
	// Cluster is the one whose series are read; "": all.
	Cluster string
	// Incomplete is what servers said of incomplete answers.
	Incomplete Incomplete
	// Exporters is how many GPUs DCGM exporter reported under its own pod, because no pod had them.
	Exporters int
	// Dropped is how many samples were no memory of a GPU at a time that can be: NaN, negative, later than Until.
	Dropped int
	// Unnamed is how many series named no pod and no container.
	Unnamed int
	// LeftOut is how many series of a server had longer names than objects have, or no room beside those of other namespaces, in all of
	// its answers, by namespace; "": of others, or of none.
	LeftOut map[string]int

	server bool // tenants wrote labels: what is odd is left out, where it would be an error in files
	bounds bounds
	byKey  map[Key]*Record
	series map[string]*series
	owners map[Key]Owner // of workloads, where they are known from more than names of pods
	// ofGPUs are the records of DCGM exporter: of GPUs, and so of less worth than those of containers. nil: there are none.
	ofGPUs *Records
}

// dcgm returns the records of DCGM exporter.
func (r *Records) dcgm() *Records {
	if r.ofGPUs == nil {
		r.ofGPUs = NewRecords()
		r.ofGPUs.Until, r.ofGPUs.server, r.ofGPUs.Cluster = r.Until, r.server, r.Cluster
	}
	return r.ofGPUs
}

// NewRecords returns records of no workload.
func NewRecords() *Records {
	return &Records{System: api.SystemNamespace, byKey: map[Key]*Record{},
		series: map[string]*series{}, owners: map[Key]Owner{}, LeftOut: map[string]int{},
		bounds: bounds{series: bound[string]{most: MaxSeries}, workloads: bound[Key]{most: MaxWorkloads}}}
}

// labels are the names of a series.
type labels struct{ cluster, namespace, pod, workload, container, device, gpu string }

// seriesOf is the series that labels name, of a name that is unique to them.
func (r *Records) seriesOf(name string, l labels) (*series, error) {
	record, err := r.record(l)
	if err != nil {
		return nil, err
	}
	if err := admit(r, &r.bounds.series, r.series, l.namespace, name); err != nil {
		return nil, fmt.Errorf("more than %d series: %w", MaxSeries, err)
	}
	s := &series{record: record, pod: cmp.Or(l.pod, l.container), first: math.Inf(1), gpu: l.gpu}
	r.series[name] = s
	return s, nil
}

// errName is returned for names that no object has.
var errName = errors.New("no object has such a name")

func (r *Records) record(l labels) (*Record, error) {
	for _, name := range []string{l.cluster, l.namespace, l.pod, l.workload, l.container} {
		if len(name) > maxName {
			return nil, fmt.Errorf("a name of %d characters, at most %d: %.40q...: %w", len(name), maxName, name, errName)
		}
	}
	if len(l.device) > maxDevice {
		return nil, fmt.Errorf("a name of a device of %d characters, at most %d: %.40q...: %w", len(l.device), maxDevice, l.device, errName)
	}
	owner := OwnerOf(l.pod)
	if l.workload != "" {
		owner = Owner{Name: l.workload}
	}
	key := Key{l.cluster, l.namespace, cmp.Or(owner.Name, l.container), l.container}
	if key.Workload == key.Container {
		key.Container = ""
	}
	record := r.byKey[key]
	if record == nil {
		if err := admit(r, &r.bounds.workloads, r.byKey, l.namespace, key); err != nil {
			return nil, fmt.Errorf("more than %d workloads: %w", MaxWorkloads, err)
		}
		record = &Record{Key: key, Owner: owner, free: -1}
		r.byKey[key] = record
	}
	return record, nil
}

// add adds a sample of a series, in MiB.
func (r *Records) add(s *series, seconds, mib float64) {
	if r.Until > 0 && seconds > r.Until || !s.record.Memory.Add(seconds, mib) {
		r.Dropped++
		return
	}
	s.first, s.last = min(s.first, seconds), max(s.last, seconds)
}

// All ends the reading, and returns the records of those workloads that have samples, by key.
func (r *Records) All() []*Record {
	if r.ofGPUs != nil {
		r.addMissing(r.ofGPUs)
		r.ofGPUs = nil
	}
	r.noteStarts()
	r.noteCounters()
	r.notePeaks()
	r.notePods()
	r.noteEngines()
	r.noteOwners()
	r.series = map[string]*series{}
	var all []*Record
	for _, record := range r.byKey {
		if record.Memory.Hours() > 0 {
			if record.Device == 0 && record.free >= 0 {
				setMemory(&record.Device, record.Memory.Peak()+record.free)
			}
			all = append(all, record)
		}
	}
	slices.SortFunc(all, func(a, b *Record) int {
		return cmp.Or(cmp.Compare(a.Key.Cluster, b.Key.Cluster), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Workload, b.Key.Workload),
			cmp.Compare(a.Key.Container, b.Key.Container))
	})
	return all
}

// addMissing takes from others, which are of DCGM exporter, the workloads of which there are no samples here.
func (r *Records) addMissing(others *Records) {
	others.noteShared() // before some of those that share go
	for _, record := range r.byKey {
		if record.Memory.Hours() > 0 {
			delete(others.byKey, record.Key)
		}
	}
	for name, s := range others.series {
		if others.byKey[s.record.Key] != nil {
			if known := r.byKey[s.record.Key]; known != nil && known != s.record { // engines and counters, without samples
				s.record.Slice, s.record.Events, s.record.EngineUse = known.Slice, known.Events, known.EngineUse
			}
			r.byKey[s.record.Key] = s.record
			r.series[name] = s
		}
	}
	r.Dropped, r.Unnamed = r.Dropped+others.Dropped, r.Unnamed+others.Unnamed
	for namespace, n := range others.LeftOut {
		r.LeftOut[namespace] += n
	}
}

// podOf is a pod of a workload.
type podOf struct {
	record *Record
	name   string
}

// notePods counts the pods of each workload that were there at the end.
func (r *Records) notePods() {
	const end = 7200
	latest := 0.0
	for _, s := range r.series {
		latest = max(latest, s.last)
	}
	seen := map[podOf]bool{}
	for _, s := range r.series {
		if p := (podOf{s.record, s.pod}); s.last > 0 && s.last >= latest-end && !seen[p] {
			seen[p] = true
			s.record.Pods++
		}
	}
}

// noteEngines gives the containers of a workload its engine's reports without the name of a container.
func (r *Records) noteEngines() {
	use := map[Key]float64{}
	for key, record := range r.byKey {
		use[key.workload()] = max(use[key.workload()], record.EngineUse)
	}
	for key, record := range r.byKey {
		record.EngineUse = use[key.workload()]
	}
}

// first is the time of the first sample of all.
func (r *Records) first() float64 {
	first := math.Inf(1)
	for _, s := range r.series {
		first = min(first, s.first)
	}
	return first
}

// beginning is the seconds in which earlier series come into sight.
const beginning = 3600

// noteStarts counts a start for each pod that came into sight after the first samples of all.
func (r *Records) noteStarts() {
	first, began := r.first(), map[podOf]float64{}
	for _, s := range r.series {
		p := podOf{s.record, s.pod}
		if at, seen := began[p]; !seen || s.first < at {
			began[p] = s.first
		}
	}
	for p, at := range began {
		if at > first+beginning && !math.IsInf(at, 1) {
			p.record.Memory.Start(at)
		}
	}
}

// noteCounters counts the events that made a counter appear after the first samples of all.
func (r *Records) noteCounters() {
	first := r.first()
	for _, s := range r.series {
		if s.sum != nil {
			first = min(first, s.began)
		}
	}
	for _, s := range r.series {
		if s.sum != nil && s.began > first+beginning {
			*s.sum += int(s.counter.first)
		}
	}
}

// notePeaks takes the first peak of each container that appeared after the first samples of all: it reached that since.
func (r *Records) notePeaks() {
	first := r.first()
	for _, s := range r.series {
		if s.peak && s.began > first+beginning {
			r.add(s, s.began, s.counter.first/mebibyte)
		}
	}
}

// noteShared marks the records whose samples are of a GPU that several pods, or containers of one, had at one time: each has the sum.
func (r *Records) noteShared() {
	byGPU := map[string][]*series{}
	for _, s := range r.series {
		if s.gpu != "" {
			byGPU[s.gpu] = append(byGPU[s.gpu], s)
		}
	}
	for _, gpu := range slices.Sorted(maps.Keys(byGPU)) {
		on := byGPU[gpu]
		slices.SortFunc(on, func(a, b *series) int { return cmp.Compare(a.first, b.first) })
		var latest *series // of those before, the one with the latest sample
		for _, s := range on {
			if latest != nil && latest.last > s.first && (latest.record != s.record || latest.pod != s.pod) {
				latest.record.Shared, s.record.Shared = true, true
			}
			if latest == nil || s.last > latest.last {
				latest = s
			}
		}
	}
}

const mebibyte = 1 << 20

// setMemory notes an amount in MiB; one that is no memory of a GPU is left out.
func setMemory(m *api.MiB, mib float64) {
	if mib >= 1 && mib < 1<<24 {
		*m = api.MiB(mib)
	}
}

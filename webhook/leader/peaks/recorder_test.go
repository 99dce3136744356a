package peaks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/daystest"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// fixture is a cluster whose time and use are set by hand.
type fixture struct {
	*testing.T
	client kubernetes.Interface
	now    time.Time
	pods   cache.Store
	used   map[string]int64 // by UID; absent: not reported
	slices map[string]int   // of each pod by UID; absent: one
	// devices are the memory of GPUs, by node; absent: not known.
	devices map[string]int64
	ready   error
}

func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, client: daystest.Client(), now: noon, pods: cache.NewStore(cache.MetaNamespaceKeyFunc), used: map[string]int64{},
		slices: map[string]int{}, devices: map[string]int64{}}
}

// leader is a session of one replica.
func (f *fixture) leader() *session {
	r := &Recorder{Client: f.client, Namespace: "gpuslice-system", Ready: func() error { return f.ready },
		Now: func() time.Time { return f.now }, Log: logr.Discard(),
		DeviceOf: func(node, _, _ string) int64 { return f.devices[node] },
		PromiseOf: func(pod *corev1.Pod) *promise.Promise {
			if pod.Annotations[api.AnnotationPromise] == "forged" {
				return nil
			}
			p := &promise.Promise{}
			for i := range max(f.slices[string(pod.UID)], 1) {
				p.Containers = append(p.Containers, promise.Container{Name: []string{"main", "second"}[i], Count: 1, Slice: 8 << 10})
			}
			return p
		},
	}
	return r.newSession(f.pods, func(_, uid string) (int64, bool) { mib, ok := f.used[uid]; return mib, ok })
}

// pod is one of a Deployment.
func (f *fixture) pod(workload, uid string, change ...func(*corev1.Pod)) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: workload + "-5d9c-" + uid, UID: types.UID(uid),
			ResourceVersion: fmt.Sprint(len(change), f.now.Unix()),
			Labels:          map[string]string{"pod-template-hash": "5d9c"},
			Annotations:     map[string]string{api.AnnotationPromise: "{}"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: workload + "-5d9c", Controller: new(true)}}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-2 * time.Hour))}}}}},
	}
	for _, c := range change {
		c(pod)
	}
	kept, err := podcache.Of(pod, "")
	if err != nil {
		f.Fatal(err)
	}
	if err := f.pods.Add(kept); err != nil {
		f.Fatal(err)
	}
}

// pass lets minutes pass, each with a look of all leaders.
func (f *fixture) pass(minutes int, leaders ...*session) {
	for range minutes {
		for _, s := range leaders {
			s.look(f.now)
		}
		f.now = f.now.Add(time.Minute)
	}
}

// samples keep the peak of each slot.
type samples struct {
	slots  map[int64]float64
	starts []float64
}

func newSamples() Samples { return &samples{slots: map[int64]float64{}} }

func (s *samples) Add(seconds, mib float64) bool {
	slot := int64(seconds / slotLength.Seconds())
	s.slots[slot] = max(s.slots[slot], mib)
	return true
}

func (s *samples) Start(seconds float64) { s.starts = append(s.starts, seconds) }

func (s *samples) Peak() (peak float64) {
	for _, mib := range s.slots {
		peak = max(peak, mib)
	}
	return peak
}

func (s *samples) Hours() float64 { return float64(len(s.slots)) / float64(slotsOfHour) }

func memoryOf(w *Workload) *samples { return w.Memory.(*samples) }

// record is what is stored.
func (f *fixture) record() *Record {
	f.Helper()
	r, err := Read(f.Context(), f.client, "gpuslice-system", f.now.Add(-14*24*time.Hour), f.now, newSamples)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

func (f *fixture) write(s *session) {
	f.Helper()
	if err := s.write(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// TestRecord: the highest pod of a workload counts, what is not reported is no zero, and starts and terminations have their hours.
func TestRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.leader()
	observed := observe.Observation{State: observe.Enforced, Terminations: []observe.Termination{
		{At: noon.Add(-time.Hour)}, {At: noon.Add(-90 * time.Minute)}, {At: noon.Add(-48 * time.Hour)}, {At: noon.Add(time.Hour)}}}
	f.pod("web", "1", func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled",
			FinishedAt: metav1.NewTime(noon.Add(-3 * time.Hour))}
	})
	f.pod("web", "2", func(pod *corev1.Pod) { pod.Annotations[api.AnnotationObserved] = observed.Encode() })
	f.pod("web", "3", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	f.pod("forged", "4", func(pod *corev1.Pod) { pod.Annotations[api.AnnotationPromise] = "forged" })
	f.pod("pair", "5")
	f.pod("idle", "6", func(pod *corev1.Pod) { pod.Spec.NodeName = "" })
	f.slices["5"] = 2
	f.used = map[string]int64{"1": 1 << 10, "2": 1 << 11, "3": 1 << 12, "4": 1 << 12, "5": 1 << 12, "6": 1 << 12}
	f.pass(90, s)
	delete(f.used, "1")
	delete(f.used, "2")
	f.pass(30, s)
	f.write(s)
	r := f.record()
	web := r.Workloads[container("team-a", "web")]
	if len(r.Workloads) != 1 || web == nil {
		t.Fatalf("recorded %v", r.Workloads)
	}
	if memoryOf(web).Peak() != 1<<11 || memoryOf(web).Hours() != 1.5 || web.Pods != 2 || web.Slice != 8<<10 ||
		web.Terminated != 3 || r.Unrecorded != 1 {
		t.Errorf("peak %g, %g hours, %+v, %d unrecorded", memoryOf(web).Peak(), memoryOf(web).Hours(), web, r.Unrecorded)
	}
	m, err := s.store.Get(t.Context(), noon)
	if err != nil {
		t.Fatal(err)
	}
	d, err := read(m, s.tables[0].start)
	if err != nil || d.Lines[0].Started != 1<<10 {
		t.Errorf("started in the hours %b: %v", d.Lines[0].Started, err)
	}
}

// TestLeaders: two replicas that lead at once, and one that goes on, write what one alone would have written.
func TestLeaders(t *testing.T) {
	t.Parallel()
	f, alone := newFixture(t), newFixture(t)
	s := alone.leader()
	first, second := f.leader(), f.leader()
	for hour := range 30 {
		for _, g := range []*fixture{f, alone} {
			g.pod("web", "1", func(pod *corev1.Pod) { // another version of it
				pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(g.now)
			})
			g.used["1"] = int64(1000 + 7*hour)
		}
		alone.pass(60, s)
		switch {
		case hour < 5:
			f.pass(60, first)
		case hour < 12:
			f.pass(60, first, second)
			f.write(first)
		default:
			f.pass(60, second)
		}
		f.write(second)
	}
	alone.write(s)
	want, got := alone.record(), f.record()
	if diff := cmp.Diff(want.Workloads, got.Workloads, cmp.AllowUnexported(Workload{}),
		cmp.Comparer(func(a, b *samples) bool {
			return fmt.Sprint(a) == fmt.Sprint(b)
		})); diff != "" {
		t.Errorf("(-alone +both)\n%s", diff)
	}
	if w := got.Workloads[container("team-a", "web")]; w == nil || memoryOf(w).Hours() != 30 || len(f.maps()) != 2 {
		t.Errorf("%+v in %v", w, f.maps())
	}
}

// maps are the names of all ConfigMaps.
func (f *fixture) maps() (names []string) {
	f.Helper()
	list, err := f.client.CoreV1().ConfigMaps("gpuslice-system").List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// TestStored: what a newer build wrote is left alone, the next day is recorded again, and what cannot be read is replaced.
func TestStored(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		left bool
	}{"newer": {`{"v":2}`, true}, "broken": {`{"v":`, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			s := f.leader()
			f.pod("web", "1")
			f.pass(1, s)
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gpuslice-peaks-2026-11-26", Labels: map[string]string{Label: "true"}},
				BinaryData: map[string][]byte{dayKey: zipped(tt.text)}}
			if _, err := f.client.CoreV1().ConfigMaps("gpuslice-system").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if r := f.record(); len(r.Unread) != 1 {
				t.Errorf("read %v", r.Unread)
			}
			f.write(s)
			if r := f.record(); len(r.Unread) == 1 != tt.left {
				t.Errorf("then read %v", r.Unread)
			}
			f.used["1"] = 1000
			f.pass(24*60, s)
			f.write(s)
			if w := f.record().Workloads[container("team-a", "web")]; w == nil || memoryOf(w).Hours() < 12 || len(s.tables) != 1 {
				t.Errorf("on the next day recorded %+v, %d days to write", w, len(s.tables))
			}
		})
	}
}

// TestRun: a Recorder looks each minute, writes each hour and when it ends, and nothing while promises cannot be read.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		s := f.leader()
		s.Now = time.Now
		s.written = time.Now()
		start := time.Now()
		f.pod("web", "1")
		f.used["1"] = 100
		f.ready = errors.New("no keys")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.run(ctx); close(done) }()
		time.Sleep(30*time.Minute - time.Second)
		synctest.Wait()
		if f.ready = nil; len(s.tables) > 0 {
			t.Error("it looked while promises could not be read")
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := f.maps(); len(got) != 2 { // one for each day
			t.Errorf("written are %v", got)
		}
		stop()
		<-done
		f.now = time.Now().Add(time.Minute)
		w := f.record().Workloads[container("team-a", "web")]
		if w == nil || memoryOf(w).Hours() < 23.9 || memoryOf(w).Hours() > 24.2 {
			t.Errorf("%v was seen since %s", w, start)
		}
	})
}

// TestWithinDevice: no size is larger than the largest GPU on which the pods of the workload run.
func TestWithinDevice(t *testing.T) {
	t.Parallel()
	for _, most := range []int64{6900, 7480} { // a peak of 7480 is recorded as 7512
		f := newFixture(t)
		s := f.leader()
		f.devices = map[string]int64{"l4": 7000, "a10": 7500}
		for uid, node := range map[string]string{"1": "l4", "2": "a10", "3": "l4"} {
			f.pod("web", uid, func(pod *corev1.Pod) { pod.Spec.NodeName = node })
		}
		for hour := range 20 {
			for _, uid := range []string{"1", "2", "3"} {
				f.used[uid] = most - int64(300*(13-hour%14))
			}
			f.pass(60, s)
		}
		s.writeAndLog(t.Context(), f.now)
		w := f.record().Workloads[container("team-a", "web")]
		if w.Device != 7500 || memoryOf(w).Peak() > 7500 {
			t.Errorf("with a peak of %d on %d, recorded %g", most, w.Device, memoryOf(w).Peak())
		}
	}
}

// TestClockSetBack: a clock that is set back over midnight stops no record.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.leader()
	f.pod("web", "1")
	f.used["1"] = 100
	f.now = noon.Truncate(24 * time.Hour)
	s.look(f.now)
	s.look(f.now.Add(-10 * time.Minute))
	if l := s.tables[0].lines[container("team-a", "web")]; len(s.tables) != 1 || l == nil || l.slots() != 1 {
		t.Errorf("%d days, %+v", len(s.tables), l)
	}
}

// TestPrintCost prints what the record of 10,000 workloads takes.
func TestPrintCost(t *testing.T) {
	d := busyDay(maxLines)
	data, err := d.encode()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := decode(data, d.Date)
	if err != nil || len(stored.Lines) != maxLines {
		t.Fatalf("%d workloads fit: %v", len(stored.Lines), err)
	}
	writes := int(24 * time.Hour / writePeriod)
	t.Logf("%d workloads: %d KiB a day (%d KiB unzipped), %d KiB in %d days; %d writes a day of %d MiB together, and one when the leader changes",
		maxLines, len(data)>>10, len(text)>>10, keepDays*len(data)>>10, keepDays, writes, writes*len(data)>>20)
}

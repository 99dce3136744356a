package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/daystest"
	"github.com/gpuslice/gpuslice/webhook/leader/days"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

func nameOf(at Second) string { return storeIn(nil, "").Name(at.Time()) }

// life is that of a pod.
type life struct {
	Key
	uid                  string
	rate                 Amount
	from, until, deleted Second
	forced               bool // its end is not in its status
}

// podAt is the pod as it is at a time.
func (l *life) podAt(at Second) *podcache.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.uid, UID: types.UID(l.uid),
		Annotations: map[string]string{api.AnnotationPromise: "{}"}}}
	if at >= l.from {
		pod.Spec.NodeName = l.Pool
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(l.from.Time())},
		}
	}
	if at >= l.until && !l.forced {
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(l.until.Time())}}},
		}
	}
	kept, err := podcache.Of(pod, "")
	if err != nil {
		panic(err)
	}
	return kept
}

func (l *life) within(from, until Second) Amount {
	h := held{from: l.from, until: l.until}
	return l.rate.times(h.within(from, until))
}

// world is a cluster whose time is set by hand.
type world struct {
	client kubernetes.Interface
	now    Second
	skew   Second // of the clock
	lives  []*life
}

// leader is a session of one replica.
func (w *world) leader() *session {
	r := &Recorder{Client: w.client, Namespace: "gpuslice-system", Ready: func() error { return nil }, Log: logr.Discard(),
		Now:    func() time.Time { return (w.now + w.skew).Time() },
		PoolOf: func(node, _ string) string { return node },
		PromiseOf: func(pod *corev1.Pod) *promise.Promise {
			i := slices.IndexFunc(w.lives, func(l *life) bool { return l.uid == string(pod.UID) })
			return &promise.Promise{Planned: promise.Planned{Pool: w.lives[i].Pool}, Charge: quota.Charge{Memory: 1 << 10}}
		},
	}
	s := r.newSession(func(string, string) (int64, bool) { return 0, false })
	h := s.pods.handler()
	for _, l := range w.lives {
		if l.deleted > w.now {
			h.OnAdd(l.podAt(w.now), true)
		}
	}
	s.since = s.now()
	return s
}

// pass lets a second pass, which the leaders see.
func (w *world) pass(leaders []*session) {
	w.now++
	for _, l := range w.lives {
		for _, s := range leaders {
			switch h := s.pods.handler(); w.now {
			case l.deleted:
				h.OnDelete(l.podAt(w.now))
			case l.from, l.until:
				h.OnUpdate(l.podAt(w.now-1), l.podAt(w.now))
			}
		}
	}
}

// counted are the sums of all days, and how far they go.
func (w *world) counted(t *testing.T) (sums, unsure map[Key]Amount, from, until Second, unread []Span) {
	t.Helper()
	list, err := w.client.CoreV1().ConfigMaps("gpuslice-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sums, unsure = map[Key]Amount{}, map[Key]Amount{}
	for i := range list.Items {
		d, err := storeIn(nil, "").read(&list.Items[i])
		if err != nil {
			t.Fatal(err)
		}
		if from == 0 || d.From < from {
			from = d.From
		}
		until, unread = max(until, d.Until), append(unread, d.Unread...)
		for _, l := range d.Lines {
			sums[l.Key] = sums[l.Key].plus(l.Held)
			unsure[l.Key] = unsure[l.Key].plus(l.Unsure)
		}
	}
	return sums, unsure, from, until, unread
}

// randomLives are lives within an hour and a half around now.
func (w *world) randomLives(random *rand.Rand) {
	for i := range 12 {
		l := &life{Key: Key{Namespace: fmt.Sprint("team-", random.IntN(2)), Pool: fmt.Sprint("pool-", random.IntN(2))},
			uid: strconv.Itoa(i), rate: Amount{Memory: 1 << 10}}
		l.from = w.now + Second(random.IntN(5000)) - 1000
		l.until = l.from + 1 + Second(random.IntN(2500))
		l.deleted = l.until + Second(random.IntN(2)*random.IntN(400))
		if l.forced = random.IntN(4) == 0; l.forced {
			l.deleted = l.until
		}
		w.lives = append(w.lives, l)
	}
}

// TestCountedIsHeld: pods come and go, leaders too, sometimes two lead at once, and a clock is set back. What is counted is what was
// held, up to what pods held that went while nobody watched; that time is named, and is no longer than it was.
func TestCountedIsHeld(t *testing.T) {
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := &world{client: daystest.Client(), now: noon + Second(random.IntN(int(dayLength)))}
		start := w.now
		w.randomLives(random)
		want, missing := map[Key]Amount{}, map[Key]Amount{}
		var leaders []*session
		counted := start
		for w.now < start+4000 {
			w.pass(leaders)
			switch random.IntN(100) {
			case 0:
				if len(leaders) == 0 || len(leaders) == 1 && seed%3 != 0 {
					leaders = append(leaders, w.leader())
				}
			case 1:
				if n := len(leaders); n > 0 && seed%3 != 0 {
					leaders = slices.Delete(leaders, 0, 1)
				}
			case 2, 3, 4:
				if len(leaders) == 0 {
					break
				}
				s := leaders[random.IntN(len(leaders))]
				w.skew = -Second(random.IntN(4) / 3 * random.IntN(600)) // the clock is set back
				if err := s.count(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.skew = 0
				sums, _, from, until, _ := w.counted(t)
				if len(sums) == 0 && until == 0 {
					break
				}
				if from > counted && counted == start {
					counted = from
				}
				for _, l := range w.lives {
					if gone := l.deleted <= s.since; gone {
						missing[l.Key] = missing[l.Key].plus(l.within(counted, until))
					} else {
						want[l.Key] = want[l.Key].plus(l.within(counted, until))
					}
				}
				counted = max(counted, until)
			}
		}
		sums, unsure, from, until, unread := w.counted(t)
		for k := range want {
			if sums[k] != want[k] {
				t.Errorf("seed %d: %v: counted %d, held was %d", seed, k, sums[k].Memory>>10, want[k].Memory>>10)
			}
		}
		var truth, all Amount
		for _, l := range w.lives {
			truth = truth.plus(l.within(from, until))
		}
		for k := range sums {
			all = all.plus(sums[k])
		}
		if len(unread) == 0 && all != truth {
			t.Errorf("seed %d: nothing was unread, counted %d, held was %d", seed, all.Memory>>10, truth.Memory>>10)
		}
		var named Second
		for _, s := range unread {
			named += s.Until - s.From
		}
		for k, lost := range missing {
			if lost != (Amount{}) && len(unread) == 0 {
				t.Errorf("seed %d: %v: %d is missing, and no time is unread", seed, k, lost.Memory>>10)
			}
		}
		if seed%3 == 0 && (len(unread) > 0 ||
			len(unsure) != 0 && slices.ContainsFunc(slices.Collect(maps.Values(unsure)), func(a Amount) bool { return a != Amount{} })) {
			t.Errorf("seed %d: a leader watched all the time, and %v is unread", seed, unread)
		}
		if until-from < named {
			t.Errorf("seed %d: %d of %d seconds are unread", seed, named, until-from)
		}
	}
}

// TestMissedPods: a pod that another one of its name replaced, or that a broken watch never showed to go, is not counted on.
func TestMissedPods(t *testing.T) {
	for name, goes := range map[string]func(h cache.ResourceEventHandler, first, second *podcache.Pod){
		"replaced": func(h cache.ResourceEventHandler, first, second *podcache.Pod) { h.OnUpdate(first, second) },
		"deleted while the watch was broken": func(h cache.ResourceEventHandler, first, second *podcache.Pod) {
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "team-a/train", Obj: first})
			h.OnAdd(second, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{client: daystest.Client(), now: noon}
			first := &life{Key: Key{Namespace: "team-a", Pool: "p"}, uid: "1", from: noon - 100, until: noon + 1e6, deleted: noon + 1e6}
			second := &life{Key: first.Key, uid: "2", from: noon + 80, until: noon + 1e6, deleted: noon + 1e6}
			w.lives = []*life{first}
			s := w.leader()
			count := func(at Second) Line {
				w.now = at
				if err := s.count(t.Context()); err != nil {
					t.Fatal(err)
				}
				return s.last.Lines[0]
			}
			count(noon + 60 + settle)
			w.lives = append(w.lives, second)
			w.now = noon + 90
			goes(s.pods.handler(), first.podAt(noon+60), second.podAt(noon+90))
			if l := count(noon + 200 + settle); l.Held.Memory>>10 != 60+120 || l.Unsure.Memory>>10 != 30 || l.Open.Memory>>10 != 1 {
				t.Errorf("counted %+v", l)
			}
		})
	}
}

// TestWithoutSlice: a pod without a promise is counted, under the resource's name until the pool of its node is known, and from then on in
// that pool, also once the node is gone. So is one whose promise is not to be trusted.
func TestWithoutSlice(t *testing.T) {
	w := &world{client: daystest.Client(), now: noon}
	for _, uid := range []string{"whole", "free"} {
		w.lives = append(w.lives,
			&life{Key: Key{Namespace: "team-a", Pool: "node"}, uid: uid, from: noon - 100, until: noon + 1e6, deleted: noon + 1e6})
	}
	s := w.leader()
	s.PromiseOf = func(*corev1.Pod) *promise.Promise { return nil }
	pool := ""
	s.WithoutSlice = func(pod *corev1.Pod) (quota.Charge, string, bool) {
		if pod.Name == "free" {
			return quota.Charge{}, "", false
		}
		return quota.Charge{Memory: 1 << 10, Devices: DeviceUnits}, cmp.Or(pool, api.ResourceGPU), pool != ""
	}
	for _, pool = range []string{"", "a100", ""} {
		w.now += 60
		if err := s.count(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := fmt.Sprint(s.last.Lines)
	want := fmt.Sprint([]Line{
		{Key: Key{Namespace: "team-a", Pool: "a100"},
			Held: Amount{Memory: 1 << 10, Devices: DeviceUnits}.times(120), Open: Amount{Memory: 1 << 10, Devices: DeviceUnits}},
		{Key: Key{Namespace: "team-a", Pool: api.ResourceGPU}, Held: Amount{Memory: 1 << 10, Devices: DeviceUnits}.times(60 - settle)},
	})
	if got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
}

// TestOddPod: a pod that cannot be read is left out, and others are counted.
func TestOddPod(t *testing.T) {
	w := &world{client: daystest.Client(), now: noon}
	for _, uid := range []string{"plain", "odd"} {
		w.lives = append(w.lives,
			&life{Key: Key{Namespace: "team-a", Pool: "node"}, uid: uid, from: noon - 100, until: noon + 1e6, deleted: noon + 1e6})
	}
	s := w.leader()
	promiseOf := s.PromiseOf
	s.PromiseOf = func(pod *corev1.Pod) *promise.Promise {
		if pod.Name == "odd" {
			panic("odd")
		}
		return promiseOf(pod)
	}
	w.now += 60
	if err := s.count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.last.Lines) != 1 || s.last.Lines[0].Open.Memory>>10 != 1 {
		t.Errorf("counted %+v", s.last.Lines)
	}
}

// TestHandlersDoNotWait: while a pod is resolved, the watch shows another one, which is counted too.
func TestHandlersDoNotWait(t *testing.T) {
	w := &world{client: daystest.Client(), now: noon}
	for _, uid := range []string{"first", "second"} {
		w.lives = append(w.lives,
			&life{Key: Key{Namespace: "team-a", Pool: "node"}, uid: uid, from: noon - 100, until: noon + 1e6, deleted: noon + 1e6})
	}
	w.lives[1].deleted = noon // it is not listed
	s := w.leader()
	promiseOf := s.PromiseOf
	s.PromiseOf = func(pod *corev1.Pod) *promise.Promise {
		if pod.Name == "first" {
			s.pods.handler().OnAdd(w.lives[1].podAt(w.now), false) // hangs if the pods are locked
		}
		return promiseOf(pod)
	}
	w.now += 60
	if err := s.count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.last.Lines) != 1 || s.last.Lines[0].Open.Memory>>10 != 2 {
		t.Errorf("counted %+v", s.last.Lines)
	}
}

// TestEndOfAClockAhead: a node whose clock is ahead dates the end of a pod after it was seen to have ended, and the pod holds nothing then.
func TestEndOfAClockAhead(t *testing.T) {
	for name, deleted := range map[string]Second{"deleted at once": noon + 100, "deleted later": noon + 150, "still there": noon + 1e6} {
		t.Run(name, func(t *testing.T) {
			w := &world{client: daystest.Client(), now: noon}
			l := &life{Key: Key{Namespace: "team-a", Pool: "p"}, uid: "1", from: noon - 100, until: noon + 1e6, deleted: noon + 1e6}
			w.lives = []*life{l}
			s := w.leader()
			w.now = noon + 100
			running, over := l.podAt(w.now), l.podAt(l.until)
			s.pods.handler().OnUpdate(running, over)
			if w.now = deleted; deleted < l.deleted {
				s.pods.handler().OnDelete(over)
			}
			for _, w.now = range []Second{noon + 200, noon + 300} {
				if err := s.count(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if l := s.last.Lines[0]; l.Held.Memory>>10 != 100 || l.Unsure != (Amount{}) || l.Open != (Amount{}) {
				t.Errorf("counted %+v", l)
			}
		})
	}
}

// TestUnreadableDay: what cannot be read is kept, and the count begins again beside it.
func TestUnreadableDay(t *testing.T) {
	w := &world{client: daystest.Client(), now: noon}
	s := w.leader()
	w.now += 100
	if err := s.count(t.Context()); err != nil {
		t.Fatal(err)
	}
	mappings := w.client.CoreV1().ConfigMaps("gpuslice-system")
	m, err := mappings.Get(t.Context(), nameOf(noon.startOfDay()), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.Data[dayKey] = "{"
	if _, err := mappings.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.now += 100
		if err := s.count(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m, err = mappings.Get(t.Context(), m.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := storeIn(nil, "").read(m); err != nil || d.From != noon+200-settle || d.Until != noon+300-settle || m.Data[keptKey] != "{" {
		t.Errorf("%v, %q: %v", d, m.Data, err)
	}
}

// TestNewerDay: what a newer build wrote, also of other types, stays as it is, and the count goes on with the next day.
func TestNewerDay(t *testing.T) {
	for _, text := range []string{`{"v":2,"from":"2026-11-18T00:00:00Z","until":"2026-11-18T00:00:00Z"}`, `{"v":2,"from":0,"lines":{}}`} {
		testNewerDay(t, text)
	}
}

func testNewerDay(t *testing.T, text string) {
	t.Helper()
	w := &world{client: daystest.Client(), now: noon}
	mappings := w.client.CoreV1().ConfigMaps("gpuslice-system")
	name := nameOf(noon)
	if _, err := mappings.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{Label: "true"}}, Data: map[string]string{dayKey: text}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := w.leader()
	w.now += 100
	if err := s.count(t.Context()); !errors.Is(err, days.ErrNewer) {
		t.Errorf("counted over it: %v", err)
	}
	for _, later := range []Second{1, 3} {
		next := &world{client: w.client, now: noon + later*dayLength}
		s := next.leader()
		next.now += 100
		if err := s.count(t.Context()); err != nil || s.last.From != next.now-100 {
			t.Errorf("%d days later: %v", later, err)
		}
		if err := mappings.Delete(t.Context(), nameOf(next.now), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := mappings.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || m.Data[dayKey] != text || m.Data[keptKey] != "" {
		t.Errorf("%q: %v", m.Data, err)
	}
}

// TestPrune removes days that are too old, and nothing else.
func TestPrune(t *testing.T) {
	w := &world{client: daystest.Client(), now: noon}
	s := w.leader()
	s.KeepDays = 2
	names := []string{nameOf(noon - 400*dayLength), nameOf(noon - 3*dayLength),
		nameOf(noon - 2*dayLength), nameOf(noon), "gpuslice-usage-mine", "other"}
	for _, name := range names {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: "true"}}}
		if _, err := s.store.Client.CoreV1().ConfigMaps("gpuslice-system").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.prune(t.Context())
	list, err := s.store.Client.CoreV1().ConfigMaps("gpuslice-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for i := range list.Items {
		left = append(left, list.Items[i].Name)
	}
	slices.Sort(left)
	want := names[2:]
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q", left, want)
	}
}

// TestRun: a Recorder counts when it starts to lead, each minute, and when it ends.
func TestRun(t *testing.T) {
	w := &world{client: daystest.Client(), now: noon}
	l := &life{Key: Key{Namespace: "team-a", Pool: "p"}, uid: "1", from: noon - 100, until: noon + 1e6, deleted: noon + 1e6}
	w.lives = []*life{l}
	s := w.leader()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx) })
	stop()
	running.Wait()
	w.now += 100
	ended, end := context.WithCancel(t.Context())
	end()
	s.run(ended)
	if s.last.Until != noon+100-settle || s.last.Lines[0].Held.Memory>>10 != int64(100-settle) {
		t.Errorf("counted %+v", s.last.Day)
	}
}

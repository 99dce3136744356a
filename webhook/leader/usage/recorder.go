package usage

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/leader/days"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

const (
	// period is how often Days are written.
	period = time.Minute
	// settle is how late a watch may show a pod: younger changes are counted the next time.
	settle Second = 5
	// prunePeriod is how often old Days are looked for.
	prunePeriod = 12 * time.Hour
	callTimeout = 10 * time.Second
	maxTries    = 5
)

// Recorder counts the holdings of pods.
type Recorder struct {
	Client    kubernetes.Interface
	Namespace string // of the ConfigMaps
	// PodLabel is the key of a label of pods that has lines of its own for each value; "": none has.
	PodLabel string
	// KeepDays is how many days before today are kept.
	KeepDays int
	// Ready returns an error while promises cannot be read or pools are not known.
	Ready func() error
	// PromiseOf returns the promise of a pod; nil: it has none that is to be trusted and accounts for its devices.
	PromiseOf func(*corev1.Pod) *promise.Promise
	// WithoutSlice returns the holding of a pod without a trusted promise, and its pool; nothing: it is not counted.
	// known is false while its node's pool is not known, of which pool has the resource's name then.
	WithoutSlice func(*corev1.Pod) (charge quota.Charge, pool string, known bool)
	// PoolOf returns the pool in which a node offers a resource; "": none is known.
	PoolOf func(node, resource string) string
	// Now is the time of the API server, which dates the changes of pods.
	Now func() time.Time
	Log logr.Logger
}

// session is the work of a Recorder while its replica leads.
type session struct {
	*Recorder
	used  func(node, podUID string) (int64, bool)
	pods  watched
	store store
	since Second  // every pod that went since then was seen
	last  *stored // nil: to be read
}

// Run counts until ctx is done: while this replica leads. Two that count at once do no harm. Pods are podcache.Pods with Recorder.PodLabel;
// used returns the memory, in MiB, that a pod uses as its node last reported, or false if it is not known.
func (r *Recorder) Run(ctx context.Context, pods cache.SharedIndexInformer, used func(node, podUID string) (int64, bool)) error {
	s := r.newSession(used)
	registered, err := pods.AddEventHandler(s.pods.handler())
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer func() { _ = pods.RemoveEventHandler(registered) }()
	if !cache.WaitForCacheSync(ctx.Done(), registered.HasSynced) {
		return nil
	}
	s.since = s.now()
	s.run(ctx)
	return nil
}

func (r *Recorder) newSession(used func(string, string) (int64, bool)) *session {
	s := &session{Recorder: r, used: used, store: storeIn(r.Client, r.Namespace)}
	s.pods = watched{now: s.now, labelKey: r.PodLabel, pods: map[types.UID]*watchedPod{}}
	return s
}

func (s *session) now() Second { return SecondOf(s.Now()) }

func (s *session) run(ctx context.Context) {
	var pruned time.Time
	for range ticks.Every(ctx, period) {
		if now := s.Now(); now.Sub(pruned) >= prunePeriod {
			s.prune(ctx)
			pruned = now
		}
		s.countAndLog(ctx)
	}
	s.countAndLog(context.WithoutCancel(ctx)) // or the next leader could not know the end of pods that went meanwhile
}

func (s *session) countAndLog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.count(ctx); err != nil {
		s.Log.Error(err, "usage is not counted", "retryAfter", period.String())
	}
}

func (s *session) prune(ctx context.Context) {
	before := s.now() - Second(s.KeepDays)*dayLength
	if err := s.store.Prune(ctx, before.Time()); err != nil && ctx.Err() == nil {
		s.Log.Error(err, "cannot remove old usage", "retryAfter", prunePeriod.String())
	}
}

// count counts everything up to now.
func (s *session) count(ctx context.Context) error {
	if err := s.Ready(); err != nil {
		return err
	}
	until := s.now() - settle
	pods := s.pods.held(s.resolve, s.current)
	for tries := 0; ; {
		err := s.step(ctx, pods, until)
		switch {
		case errors.Is(err, days.ErrChanged) && tries < maxTries:
			s.last = nil
			tries++
		case err != nil:
			s.last = nil
			return err
		case s.last.Until >= until:
			s.pods.forget(s.last.Until)
			return nil
		}
	}
}

// step counts the next part, which lies within one day.
func (s *session) step(ctx context.Context, pods []held, until Second) error {
	if s.last == nil {
		found, err := s.store.latest(ctx, until)
		if err != nil {
			return err
		}
		if found == nil { // the count begins when this replica began to watch
			found = &stored{Day: newDay(s.since)}
		}
		s.last = found
	}
	if s.last.Until == s.last.end() && until > s.last.Until {
		s.last = &stored{Day: s.last.next()}
		if found, err := s.store.get(ctx, s.last.From); found != nil || err != nil {
			s.last = found
			return err
		}
	}
	next := s.last.plus(pods, until, s.since)
	if next == s.last.Day {
		return nil
	}
	written, err := s.store.put(ctx, s.last, next)
	if err != nil {
		return err
	}
	s.last = written
	return nil
}

// resolve reads a pod's holding; settled: as long as it lives. A panic leaves the pod out: an odd pod must not stop the
// count of others, nor the webhook that serves in the same process.
func (s *session) resolve(kept *podcache.Pod) (h *held, settled bool) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error(fmt.Errorf("panic: %v", p), "cannot count pod", "object", "Pod "+kept.Namespace()+"/"+kept.Name,
				"stack", string(debug.Stack()))
			h, settled = nil, true
		}
	}()
	pod, err := kept.Read()
	if err != nil {
		return nil, false
	}
	if given := s.PromiseOf(pod); given != nil {
		return &held{Key: Key{Namespace: pod.Namespace, Pool: poolOf(pod, given, s.PoolOf)}, rate: rateOf(accounting.ChargeOn(given, pod))}, true
	}
	charge, pool, known := s.WithoutSlice(pod)
	if charge == (quota.Charge{}) {
		return nil, false
	}
	return &held{Key: Key{Namespace: pod.Namespace, Pool: shortened(pool)}, rate: rateOf(charge)}, known
}

// current adds the facts that change while the pod lives.
func (s *session) current(p *watchedPod, h *held) {
	h.Label = p.label
	h.use, h.used = s.used(p.pod.Node(), string(p.pod.UID))
}

package peaks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unique"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader/days"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
	"github.com/gpuslice/gpuslice/webhook/leader/workload"
)

const (
	lookPeriod  = time.Minute
	writePeriod = time.Hour
	callTimeout = 30 * time.Second
	maxTries    = 5
	keepDays    = 31
)

// Recorder records what workloads use.
type Recorder struct {
	Client    kubernetes.Interface
	Namespace string // of the ConfigMaps
	// Ready returns an error while promises cannot be read.
	Ready func() error
	// PromiseOf returns the promise of a pod; nil: it has none that is to be trusted.
	PromiseOf func(*corev1.Pod) *promise.Promise
	// DeviceOf returns the memory, in MiB, of a GPU of the pool in which a node offers a resource, or of the pool that was planned where
	// that is none; 0: it is not known.
	DeviceOf func(node, resource, planned string) int64
	// Now is the time of the API server, which dates what pods do.
	Now func() time.Time
	Log logr.Logger
}

// session is the work of a Recorder while its replica leads.
type session struct {
	*Recorder
	pods    cache.Store
	used    func(node, podUID string) (int64, bool)
	store   days.Store
	holders map[types.UID]holder // living pods, as they were last read
	tables  []*table             // of days that are not written to their end; the last one is of the latest look
	written time.Time
}

// holder is the part of a pod that does not change before its ResourceVersion does.
type holder struct {
	version string
	of      unique.Handle[workload.Container] // the zero Handle: it is not recorded
	slice   int64                             // MiB
	device  int64                             // MiB; 0: unknown
	several bool                              // slices
	ended   bool
}

// Run records until ctx is done: while this replica leads. Two that record at once do no harm. Pods are podcache.Pods; used
// returns the memory, in MiB, that a pod uses as its node last reported, or false if it is not known.
func (r *Recorder) Run(ctx context.Context, pods cache.SharedIndexInformer, used func(node, podUID string) (int64, bool)) error {
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return nil
	}
	r.newSession(pods.GetStore(), used).run(ctx)
	return nil
}

func (r *Recorder) newSession(pods cache.Store, used func(string, string) (int64, bool)) *session {
	return &session{Recorder: r, pods: pods, used: used, store: storeIn(r.Client, r.Namespace), written: r.Now()}
}

func (s *session) run(ctx context.Context) {
	for range ticks.Every(ctx, lookPeriod) {
		now := s.Now()
		s.look(now)
		if len(s.tables) > 1 || now.Sub(s.written) >= writePeriod {
			s.writeAndLog(ctx, now)
		}
	}
	s.writeAndLog(context.WithoutCancel(ctx), s.Now()) // the next leader goes on with it
}

// look records what pods use now.
func (s *session) look(now time.Time) {
	if s.Ready() != nil {
		return
	}
	t := s.table(now)
	for _, l := range t.lines { // gone, unless a living pod is counted
		l.Pods = 0
	}
	holders, several := make(map[types.UID]holder, len(s.holders)), 0
	for _, object := range s.pods.List() {
		kept, ok := object.(*podcache.Pod)
		if !ok || !kept.Promised() || kept.Node() == "" {
			continue
		}
		h, known := s.holders[kept.UID]
		if !known || h.version != kept.ResourceVersion {
			h = s.read(kept, t, now)
		}
		holders[kept.UID] = h
		switch {
		case h.ended:
		case h.several:
			several++
		case h.of != unique.Handle[workload.Container]{}:
			l := t.line(h.of.Value())
			if l.Pods == 0 {
				l.Device = 0
			}
			l.Pods++
			l.Slice, l.Device = h.slice, max(l.Device, h.device)
			if mib, reported := s.used(kept.Node(), string(kept.UID)); reported {
				t.use(l, now, mib)
			}
		}
	}
	s.holders, t.unrecorded = holders, max(t.unrecorded, several)
}

// table is the table of a time's day. Of earlier days one is kept at most.
func (s *session) table(at time.Time) *table {
	if n := len(s.tables); n > 0 && !s.tables[n-1].start.Before(days.Start(at)) {
		return s.tables[n-1]
	}
	s.tables = append(s.tables[max(len(s.tables)-1, 0):], newTable(at))
	return s.tables[len(s.tables)-1]
}

// read reads a pod, and records when its container started and was terminated. A panic leaves the pod out: an odd pod must not stop the
// record of others, nor the webhook that serves in the same process.
func (s *session) read(kept *podcache.Pod, t *table, now time.Time) (h holder) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error(fmt.Errorf("panic: %v", p), "cannot record pod", "object", "Pod "+kept.Namespace()+"/"+kept.Name,
				"stack", string(debug.Stack()))
			h = holder{version: kept.ResourceVersion}
		}
	}()
	h = holder{version: kept.ResourceVersion, ended: kept.Ended()}
	pod, err := kept.Read()
	if err != nil {
		return h
	}
	given, owner := s.PromiseOf(pod), workload.OwnerOf(pod)
	if given == nil || owner == (workload.Owner{}) || len(given.Containers) == 0 {
		return h
	}
	c := &given.Containers[0]
	if h.several = len(given.Containers) > 1 || !c.Granular() && c.Count > 1; h.several {
		return h
	}
	of := workload.Container{Namespace: pod.Namespace, Owner: owner, Container: c.Name}
	h.of, h.slice, h.device = unique.Make(of), int64(c.Slice), s.DeviceOf(pod.Spec.NodeName, c.Resource, given.Planned.Pool)
	l := t.line(of)
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == c.Name {
				t.noteStates(l, now, list[i].State, list[i].LastTerminationState)
			}
		}
	}
	if o, err := observe.DecodeObservation(pod.Annotations[api.AnnotationObserved]); err == nil {
		for _, termination := range o.Terminations {
			t.note(&l.Terminated, termination.At, now)
		}
	}
	return h
}

// noteStates records what states of a container have of its starts and its end.
func (t *table) noteStates(l *Line, now time.Time, states ...corev1.ContainerState) {
	for _, state := range states {
		if r := state.Running; r != nil {
			t.note(&l.Started, r.StartedAt.Time, now)
		}
		if end := state.Terminated; end != nil {
			t.note(&l.Started, end.StartedAt.Time, now)
			if end.Reason == "OOMKilled" {
				t.note(&l.OOMKilled, end.FinishedAt.Time, now)
			}
		}
	}
}

func (s *session) writeAndLog(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.write(ctx); err != nil {
		s.Log.Error(err, "what workloads use is not recorded", "retryAfter", lookPeriod.String())
		return
	}
	s.written = now
	if err := s.store.Prune(ctx, now.Add(-keepDays*days.Length)); err != nil {
		s.Log.Error(err, "cannot remove old records of what workloads use", "retryAfter", writePeriod.String())
	}
}

// write writes all tables. Those of earlier days are done then.
func (s *session) write(ctx context.Context) error {
	for i, t := range s.tables {
		err := s.writeTable(ctx, t)
		if errors.Is(err, days.ErrNewer) { // after a rollback
			s.Log.Info("what workloads use on that day is not recorded, from the next day on it is", "reason", err.Error())
			continue
		}
		if err != nil {
			s.tables = s.tables[i:]
			return err
		}
	}
	s.tables = s.tables[max(len(s.tables)-1, 0):]
	return nil
}

// writeTable unites a table with what is stored of its day. One that cannot be read is replaced, unless a newer build wrote it.
func (s *session) writeTable(ctx context.Context, own *table) (err error) {
	for range maxTries {
		var m *corev1.ConfigMap
		if m, err = s.store.Get(ctx, own.start); err != nil {
			return err
		}
		all, before, version := newTable(own.start), []byte(nil), days.Version{}
		if m != nil {
			before, version = m.BinaryData[dayKey], days.VersionOf(m)
			stored, err := read(m, own.start)
			if errors.Is(err, days.ErrNewer) {
				return err
			}
			if err != nil {
				s.Log.Error(err, "replacing a record that cannot be read")
			} else {
				all.add(stored)
			}
		}
		all.add(own.day())
		data, err := all.day().encode()
		if err != nil || bytes.Equal(data, before) {
			return err
		}
		_, err = s.store.Put(ctx, own.start, version, &corev1.ConfigMap{BinaryData: map[string][]byte{dayKey: data}})
		if !errors.Is(err, days.ErrChanged) {
			return err
		}
	}
	return days.ErrChanged
}

package node

import (
	"context"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/mps"
	"github.com/gpuslice/gpuslice/guard/proc"
	"github.com/gpuslice/gpuslice/guard/ticks"
)

// Reporter reports the agent's actions and observations.
type Reporter interface {
	// Pod returns the reporter of a pod. It is called once for each, when the agent
	// begins to enforce its slices.
	Pod(p Pod) guard.Reporter
	// Left is called when the agent no longer enforces a pod's slices.
	Left(p Pod)
	// Sampled is called after each sample, before the pods are compared with it.
	Sampled(Sample)
}

// Agent enforces the slices of a node's pods. Use Run, once.
type Agent struct {
	Reader   Reader
	Node     *proc.Node
	Pods     Pods
	Reporter Reporter
	// Daemons are the node's MPS daemons.
	Daemons func() []mps.Daemon
	// Idle returns the containers of a pod whose processes are to be terminated for
	// want of use; again: after another reading of the activity. Nil: there are
	// none.
	Idle func(ctx context.Context, uid string, again bool) []guard.Idle
	// DryRun decides and reports everything, and signals nothing.
	DryRun bool
	// Open opens a process; nil: by a pidfd, which only tests do without.
	Open func(pid int) (proc.Handle, error)

	sampler  sampler
	enforced map[string]*enforced // by the pod's UID
}

// enforced is a pod with the guard of its slices.
type enforced struct {
	pod   Pod
	guard *guard.Guard
	seen  map[string]bool // the devices that have listed it
	left  bool            // it is promised nothing any more, and a termination is in progress
}

// Run samples the devices and advances every pod's guard until ctx is done. It
// waits for terminations in progress before it returns.
func (a *Agent) Run(ctx context.Context) {
	a.sampler, a.enforced = sampler{reader: a.Reader, node: a.Node}, map[string]*enforced{}
	var wait, maxAge time.Duration
	for ctx.Err() == nil {
		wait, maxAge = a.advance(ctx, maxAge)
		ticks.Sleep(ctx, wait)
	}
	for _, e := range a.enforced {
		e.guard.Finish()
	}
}

// advance takes one sample and advances every pod's guard. It returns how long to
// wait for the next, and how old a list that one may repeat: both as the pod that
// is nearest to its limit needs.
func (a *Agent) advance(ctx context.Context, maxAge time.Duration) (wait, nextAge time.Duration) {
	a.follow()
	sample := a.sampler.sample(ctx, maxAge)
	a.Reporter.Sampled(sample)
	wait, nextAge = guard.SampleInterval(guard.State{}, limits.Default())
	counted := a.doubleCounted(sample)
	for _, e := range a.enforced {
		if e.left {
			continue
		}
		part := sample.of(e.pod, e.seen)
		for i, d := range part.Devices {
			part.Devices[i].DoubleCounted = counted[d.ID] - e.guard.DoubleCounted(d.ID)
		}
		part.Idle = a.idle(ctx, e.pod, false)
		podWait, podAge := e.guard.Advance(ctx, part)
		wait, nextAge = min(wait, podWait), min(nextAge, podAge)
	}
	return wait, nextAge
}

// doubleCounted returns the memory that is taken to be listed twice on each device.
func (a *Agent) doubleCounted(s Sample) map[string]int64 {
	all := map[string]int64{}
	for _, d := range s.Devices {
		for _, e := range a.enforced {
			all[d.ID] += e.guard.DoubleCounted(d.ID)
		}
	}
	return all
}

// follow begins to enforce the slices of new pods, and stops for pods that are
// gone, once their outcome is reported: a pod can exit with the process that was
// terminated, before the outcome is known.
func (a *Agent) follow() {
	promised := map[string]bool{}
	for _, p := range a.Pods.Promised() {
		promised[p.UID] = true
		p.Limits.DryRun = p.Limits.DryRun || a.DryRun
		e, known := a.enforced[p.UID]
		if !known {
			e = a.begin(p)
			a.enforced[p.UID] = e
		}
		e.pod, e.guard.Limits = p, p.Limits
	}
	for uid, e := range a.enforced {
		if e.left = !promised[uid]; e.left && e.guard.TryFinish() {
			delete(a.enforced, uid)
			a.Reporter.Left(e.pod)
		}
	}
}

func (a *Agent) begin(p Pod) *enforced {
	e := &enforced{pod: p, seen: map[string]bool{}}
	e.guard = &guard.Guard{Limits: p.Limits, Reporter: a.Reporter.Pod(p), Sampler: finalSampler{a, e}, Terminator: terminator{a, e}}
	return e
}

// idle returns the idle containers of a pod whose policy terminates idle processes.
func (a *Agent) idle(ctx context.Context, p Pod, again bool) []guard.Idle {
	if a.Idle == nil || p.Limits.IdleTerminate == 0 {
		return nil
	}
	return a.Idle(ctx, p.UID, again)
}

// finalSampler samples once more for a pod, between the pidfd and the signal. The
// samples before that come from Agent.advance, one for all pods.
type finalSampler struct {
	agent *Agent
	pod   *enforced
}

// Sample implements guard.Sampler. It is no evidence where the pod is promised
// something else by then.
func (s finalSampler) Sample(ctx context.Context, maxAge time.Duration) guard.Sample {
	sample := s.agent.sampler.sample(ctx, maxAge).of(s.pod.pod, s.pod.seen)
	if now, promised := s.agent.Pods.Promise(s.pod.pod.UID); sample.Fault == "" && (!promised || !now.gives(s.pod.pod)) {
		sample.Fault = "the pod was promised something else by now"
	}
	sample.Idle = s.agent.idle(ctx, s.pod.pod, true)
	return sample
}

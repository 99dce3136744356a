package main

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/idle"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/status"
)

// reporter reports the agent's work: in the log, in Events on pods, and in metrics.
// It implements node.Reporter.
type reporter struct {
	log        *slog.Logger
	events     *eventWriter
	recorder   *status.Recorder
	node       string
	lateness   node.Lateness
	bystanders node.Bystanders
}

// Pod implements node.Reporter.
func (r *reporter) Pod(p node.Pod) guard.Reporter {
	log := r.log.With("namespace", p.Namespace, "pod", p.Name, "uid", p.UID)
	for _, c := range p.Limits.Containers {
		log.Info("enforcing", "container", c.Name, "sliceBytes", c.SliceBytes,
			"limitBytes", c.LimitBytes, "gpus", c.GPUs, "dryRun", p.Limits.DryRun)
	}
	return &podReporter{reporter: r, pod: p, log: log, record: r.recorder.Add(p)}
}

// Left implements node.Reporter.
func (r *reporter) Left(p node.Pod) {
	r.log.Info("no longer enforcing", "namespace", p.Namespace, "pod", p.Name, "uid", p.UID)
	r.recorder.Remove(p.UID)
}

// Idle reports a slice in which nothing runs.
func (r *reporter) Idle(n idle.Notice) {
	r.log.Warn("idle", "namespace", n.Pod.Namespace, "pod", n.Pod.Name, "container", n.Container.Name, "message", n.Message())
	r.events.Write(referenceTo(n.Pod), corev1.EventTypeWarning, reasonIdle, n.Message())
}

// Sampled implements node.Reporter.
func (r *reporter) Sampled(s node.Sample) {
	if message := r.lateness.Sampled(s.Taken, r.recorder.Sample(s)); message != "" {
		r.log.Warn("late", "message", message)
		r.events.Write(referenceToNode(r.node), corev1.EventTypeWarning, reasonNotEnforcing, message)
	}
	r.bystanders.Find(s, func(p node.Pod, message string) {
		r.log.Warn("a pod without a GPU uses one", "namespace", p.Namespace, "pod", p.Name, "message", message)
		r.events.Write(referenceTo(p), corev1.EventTypeWarning, reasonUnmanaged, message)
	})
}

// podReporter reports on one pod. It implements guard.Reporter.
type podReporter struct {
	*reporter
	pod    node.Pod
	log    *slog.Logger
	record *status.Pod
}

// Report implements guard.Reporter.
func (r *podReporter) Report(e guard.Event) {
	r.log.Log(context.Background(), e.Level(), string(e.Kind), "message", e.Message(), "container", e.Container, "device", e.Device,
		"usedBytes", e.UsedBytes, "limitBytes", e.LimitBytes)
	r.recorder.Count(r.record, e)
	if e.ForOwner() {
		eventType, reason, message := eventOf(e)
		r.events.Write(referenceTo(r.pod), eventType, reason, message)
	}
}

// Ordered implements guard.Reporter.
func (r *podReporter) Ordered(o guard.Order) {
	r.log.Log(context.Background(), o.Level(), string(o.Kind), "message", o.Message(),
		"container", o.Container, "device", o.Device, "pid", o.Process.PID,
		"start", o.Process.Start, "command", o.Process.Command, "usedBytes", o.UsedBytes, "limitBytes", o.LimitBytes)
}

// Observed implements guard.Reporter.
func (r *podReporter) Observed(sample guard.Sample, s guard.State) {
	r.recorder.Observe(r.record, sample.Taken, s)
}

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/record"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader/claimtemplates"
)

// summarize draws the conclusions from facts. It changes nothing.
func summarize(f *facts) status {
	l := status{
		APIVersion: config.APIVersion, Kind: "Explanation", Object: f.subject, State: missing,
		Reasons: []string{}, Nodes: []node{}, Events: relevantEvents(f.events), Pods: []podRow{}, Notes: append([]string{}, f.notes...),
	}
	switch {
	case f.Kind != "pod":
		l.workload(f)
	case f.pod == nil:
		l.missing(f)
	default:
		l.pod(f)
	}
	return l
}

// missing notes where to look for a pod that is not there.
func (l *status) missing(f *facts) {
	l.because("there is no %s %s in namespace %s: it was denied, or it is gone", f.Kind, f.Name, f.Namespace)
	l.note("a denied pod leaves nothing but the answer to its creator: gpuslice explain deployment/NAME -n %s (or job, statefulset, ...) shows what its owner was answered", f.Namespace)
}

// workload summarizes a workload: its pods, and the answers to its controller.
func (l *status) workload(f *facts) {
	if !f.found {
		l.because("there is no %s %s in namespace %s", f.Kind, f.Name, f.Namespace)
		return
	}
	l.State = pending
	for _, p := range f.pods {
		one := podRow{Name: p.Name, State: stateOf(p)}
		if promised, err := record.Promise(p); err == nil && promised != nil {
			one.Slice, one.Enforcement = slicesOf(promised), string(promised.PlannedOn(p).Tier)+" planned"
		}
		if o := record.Observation(p); o != nil && o.Tier != "" {
			one.Enforcement = string(o.Tier)
		}
		if one.Slice == "" {
			for _, warning := range policies.LabelWarnings(p.Labels, p.Annotations) {
				l.because("its pods get no slice: %s", warning)
			}
		}
		if one.State == running {
			l.State = running
		}
		l.Pods = append(l.Pods, one)
	}
	newest := newestPod(f.pods)
	of := slices.DeleteFunc(slices.Clone(f.events), func(e corev1.Event) bool {
		return f.outdated[e.InvolvedObject.UID] || f.atRest[e.InvolvedObject.UID]
	})
	for _, e := range relevantEvents(of) {
		if e.Reason == "FailedCreate" && strings.Contains(e.Text, api.Domain) && !e.At.Before(newest) && !e.At.Before(f.changed) {
			l.denied = true
			l.because("its pods are denied: %s", e.Text)
		}
	}
	l.Reasons = lastOf(l.Reasons)
}

// newestPod is when the newest of the pods was created: earlier denials no longer hold.
func newestPod(pods []*corev1.Pod) (newest time.Time) {
	for _, p := range pods {
		if at := p.CreationTimestamp.Time; at.After(newest) {
			newest = at
		}
	}
	return newest
}

// lastOf keeps the newest of many answers that say the same.
func lastOf(reasons []string) []string {
	out := []string{}
	for _, reason := range slices.Backward(reasons) {
		if !slices.Contains(out, reason) {
			out = append(out, reason)
		}
	}
	return out
}

// pod summarizes a pod.
func (l *status) pod(f *facts) {
	p := f.pod
	l.State, l.Node, l.Observed = stateOf(p), p.Spec.NodeName, record.Observation(p)
	promised, err := record.Promise(p)
	switch {
	case err != nil:
		l.note("what it was given cannot be read: %v", err)
	case promised == nil && len(f.claimed(nil)) > 0:
		l.Claimed = f.claimed(nil)
	case promised == nil:
		l.note("gpuslice wrote nothing on it; to see what it would be given today: kubectl get pod %s -n %s -o yaml | gpuslice explain -f -",
			p.Name, p.Namespace)
		for _, warning := range policies.LabelWarnings(p.Labels, p.Annotations) {
			l.because("%s", warning)
		}
	default:
		l.Requested, l.Claimed = &promised.Request, f.claimed(promised)
		l.Given = &grant{Policy: promised.Policy, Strategy: promised.Strategy,
			Pools: promised.Pools, Containers: promised.Containers, Charge: promised.Charge,
			Planned: promised.PlannedOn(p), Guard: promised.Guard != nil}
		l.holding = f.claims.GPUClaims(f.Namespace, p).Total(promised)
	}
	switch {
	case l.State == pending:
		l.pending(f, promised)
	case l.State == terminated && p.Status.Reason != "":
		l.because("%s: %s", p.Status.Reason, p.Status.Message)
	}
	l.terminations(f)
	if l.Observed != nil {
		l.Reasons = append(l.Reasons, l.Observed.Reasons...)
		for _, better := range l.Observed.Better {
			l.note("better than planned: %s", better)
		}
	}
}

// pending gives the reasons for which a pod does not run.
func (l *status) pending(f *facts, promised *promise.Promise) {
	p := f.pod
	for _, gate := range p.Spec.SchedulingGates {
		l.because("it is held by the scheduling gate %s", gate.Name)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
			l.because("scheduler: %s", c.Message)
		}
	}
	for _, s := range statuses(p) {
		if w := s.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			l.because("%s is waiting (%s): %s", s.Name, w.Reason, w.Message)
		}
	}
	if p.Spec.NodeName != "" || promised == nil {
		return
	}
	if template := promised.Containers[0].Template; template != "" {
		l.template(f, template)
		return
	}
	l.Nodes = candidateNodes(f, promised)
	switch wanted := promised.Containers[0].Count; {
	case len(f.nodes) == 0:
	case len(l.Nodes) == 0:
		l.note("no node offers %s now: a node has to join, or the device plugin has to restart", promised.Containers[0].Resource)
	case !slices.ContainsFunc(l.Nodes, func(n node) bool { return n.Reason == "" }):
		l.note(
			"no node that offers %s can take the pod, for the reasons above: it stays pending until one of them goes away, or another node joins",
			promised.Containers[0].Resource)
	case hasRoom(l.Nodes, wanted):
	case wanted > 1:
		l.note("no node on which it can run has %d free replicas: it stays pending until other pods end", wanted)
	default:
		l.note("no node on which it can run has a free replica: it stays pending until another pod ends")
	}
}

// template describes the missing part of a pending pod whose slice is a claim: its template, its class, or room.
func (l *status) template(f *facts, name string) {
	in := f.pod.Namespace
	spec, written := f.claims.Templates[in+"/"+name]
	switch {
	case f.claimsRead && !written && f.claims.Slices(in) >= claimtemplates.MaxTemplates:
		l.note("template %s is not written: namespace %s has %d of gpuslice's templates, the maximum; delete pods of sizes that are not needed, or use fewer sizes",
			name, in, claimtemplates.MaxTemplates)
	case f.claimsRead && !written:
		l.note("template %s is not written yet: the replica of gpuslice that leads writes it within seconds, and another leads about 20 seconds after that one has ended", name)
	case written && f.claimsRead && len(spec.Devices.Requests) > 0 && spec.Devices.Requests[0].Exactly != nil &&
		f.claims.Classes[spec.Devices.Requests[0].Exactly.DeviceClassName] == nil:
		l.note("template %s names DeviceClass %s, which does not exist", name, spec.Devices.Requests[0].Exactly.DeviceClassName)
	default:
		l.note("the scheduler places it once a device has room for what template %s claims: kubectl get resourceclaims -n %s", name, in)
	}
}

func statuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

func stateOf(p *corev1.Pod) state {
	switch p.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return terminated
	case corev1.PodRunning:
		return running
	}
	return pending
}

// slicesOf lists the sizes that a pod was given.
func slicesOf(p *promise.Promise) string {
	var out []string
	for _, c := range p.Containers {
		out = append(out, c.Slice.Human())
	}
	return strings.Join(out, ", ")
}

func (l *status) because(format string, args ...any) {
	l.Reasons = append(l.Reasons, fmt.Sprintf(format, args...))
}

func (l *status) note(format string, args ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf(format, args...))
}

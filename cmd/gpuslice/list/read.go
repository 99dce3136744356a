package list

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/record"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// slice is the slice of one container: an item of -o json.
type slice struct {
	Namespace string                `json:"namespace"`
	Pod       string                `json:"pod"`
	Container string                `json:"container"`
	Requested *api.ContainerRequest `json:"requested,omitempty"`
	Resource  string                `json:"resource"`
	Count     int64                 `json:"count"`
	Memory    api.MiB               `json:"memory,omitzero"`
	Limit     api.MiB               `json:"memoryLimit,omitzero"`
	Compute   int                   `json:"compute,omitempty"`
	Strategy  api.StrategyName      `json:"strategy"`
	Pool      string                `json:"pool"`
	Policy    string                `json:"policy"`
	Node      string                `json:"node,omitempty"`
	Status    string                `json:"status"`
	Planned   []api.Tier            `json:"planned"`
	Observed  []api.Tier            `json:"observed,omitempty"` // none: nothing is observed yet
	Created   time.Time             `json:"created"`
}

// slicesOf are the slices of a pod.
func slicesOf(p *corev1.Pod) ([]slice, error) {
	given, err := record.Promise(p)
	if given == nil || err != nil {
		return nil, err
	}
	planned := given.PlannedOn(p)
	var all []slice
	for _, c := range given.Containers {
		one := slice{
			Namespace: p.Namespace, Pod: p.Name, Container: c.Name, Resource: cmp.Or(c.Resource, c.Template),
			Count: c.Count, Memory: c.Slice, Limit: c.Limit,
			Strategy: given.Strategy, Pool: planned.Pool, Policy: given.Policy, Node: p.Spec.NodeName, Status: status(p),
			Planned: []api.Tier{}, Observed: record.Observed(p, c.Name), Created: p.CreationTimestamp.UTC(),
		}
		for i := range given.Request.Containers {
			if given.Request.Containers[i].Name == c.Name {
				one.Requested = &given.Request.Containers[i]
			}
		}
		one.plan(planned)
		all = append(all, one)
	}
	return all, nil
}

// plan takes the plan of the container.
func (s *slice) plan(planned promise.Planned) {
	for _, c := range planned.Containers {
		if c.Name == s.Container {
			s.Compute, s.Planned = c.Compute, record.Planned(c)
		}
	}
}

// status is the pod's phase, or that it is being deleted, or why a container of it waits or has ended: as kubectl shows it.
func status(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	out := cmp.Or(p.Status.Reason, string(p.Status.Phase))
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch w, end := s.State.Waiting, s.State.Terminated; {
		case w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
			return w.Reason
		case end != nil && end.ExitCode != 0 && p.Status.Phase == corev1.PodRunning:
			out = cmp.Or(end.Reason, "Error")
		}
	}
	return out
}

// listed is the list at one version of the cluster.
type listed struct {
	slices  []slice
	unread  []cli.Error // pods of which the record cannot be read
	version string
}

// add adds the slices of a pod.
func (l *listed) add(p *corev1.Pod) {
	all, err := slicesOf(p)
	if err != nil {
		l.unread = append(l.unread, unread(p, err))
	}
	l.slices = append(l.slices, all...)
}

func unread(p *corev1.Pod, err error) cli.Error {
	return cli.Error{Place: cli.Place{Source: "pod " + p.Namespace + "/" + p.Name},
		Message: fmt.Sprintf("what it was given cannot be read: %v", err)}
}

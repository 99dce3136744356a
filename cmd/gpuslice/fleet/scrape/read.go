package scrape

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/record"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Usage is a container's use of one device: an item of -o json.
type Usage struct {
	Namespace   string   `json:"namespace"`
	Pod         string   `json:"pod"`
	Container   string   `json:"container"`
	Node        string   `json:"node,omitempty"`
	Device      string   `json:"device,omitempty"`
	Memory      api.MiB  `json:"memory,omitzero"`
	UsedBytes   *int64   `json:"usedBytes,omitempty"`
	UsedRatio   *float64 `json:"usedRatio,omitempty"`
	PeakBytes   *int64   `json:"peakBytes,omitempty"`
	Utilization *float64 `json:"utilizationRatio,omitempty"`
	Source      string   `json:"source,omitempty"`
	Unknown     string   `json:"unknown,omitempty"` // why there is no UsedBytes
}

// Sources.
const (
	agent   = "agent"
	sidecar = "guard"
)

// tenant is a pod with slices.
type tenant struct {
	pod   *corev1.Pod
	given *promise.Promise
}

// Pods is the result on pods.
type Pods struct {
	Usages []Usage
	Unread []cli.Error // pods of which the record cannot be read

	tenants []tenant
}

// Add adds a pod; one without a slice counts for nothing.
func (m *Pods) Add(p *corev1.Pod) {
	given, err := record.Promise(p)
	if err != nil {
		m.Unread = append(m.Unread, cli.Error{Place: cli.Place{Source: "pod " + p.Namespace + "/" + p.Name},
			Message: fmt.Sprintf("what it was given cannot be read: %v", err)})
	} else if given != nil {
		m.tenants = append(m.tenants, tenant{p, given})
	}
}

// atOnce is how many scrapes run at a time.
const atOnce = 16

// Measure adds the usages of the pods. It scrapes every agent and guard that measures one of them, each once.
func (m *Pods) Measure(ctx context.Context, client Client, system string) {
	agents := sync.OnceValue(func() agentsByNode { return findAgents(ctx, client, system) })
	scrapes := map[string]func() scraped{}
	byTenant := make([]func() scraped, len(m.tenants))
	for i, t := range m.tenants {
		key, read := t.scrape(ctx, client, agents)
		if scrapes[key] == nil {
			scrapes[key] = sync.OnceValue(read)
		}
		byTenant[i] = scrapes[key]
	}
	var running sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, read := range scrapes {
		running.Go(func() {
			free <- struct{}{}
			read()
			<-free
		})
	}
	running.Wait()
	for i, t := range m.tenants {
		m.Usages = append(m.Usages, t.usages(byTenant[i]())...)
	}
}

// scraped are metrics, or why there are none.
type scraped struct {
	series series
	source string
	reason string
}

// scrape returns how the metrics of a pod are read, and a key that is the same for pods of one agent.
func (t tenant) scrape(ctx context.Context, client Client, agents func() agentsByNode) (key string, read func() scraped) {
	without := func(source, reason string) (string, func() scraped) {
		return "without/" + source + reason, func() scraped { return scraped{source: source, reason: reason} }
	}
	guard, p := t.given.Guard, t.pod
	switch {
	case guard == nil:
		return without("", "nothing measures it: the pod has no guard")
	case p.Status.Phase != corev1.PodRunning:
		return without("", "the pod is "+cmp.Or(string(p.Status.Phase), "not running"))
	case guard.Agent:
		return "agent/" + p.Spec.NodeName, func() scraped { return agents().scrape(ctx, client, p.Spec.NodeName) }
	}
	limits, err := guard.Limits()
	if err != nil {
		return without(sidecar, "the limits of its guard cannot be read: "+short(err))
	}
	if limits.MetricsPort == 0 {
		return without(sidecar, "its guard serves no metrics: set guard.metricsPort in the policy, for new pods")
	}
	return "guard/" + p.Namespace + "/" + p.Name, func() scraped {
		found, err := client.scrape(ctx, p.Namespace, p.Name, limits.MetricsPort, maxOfGuard)
		return answer(found, sidecar, "its guard", err)
	}
}

// answer is a scrape with its error.
func answer(found series, source, whose string, err error) scraped {
	if err != nil {
		return scraped{source: source, reason: whose + " cannot be read: " + short(err)}
	}
	age, sampled := found.value("gpuslice_"+source+"_sample_age_seconds", nil)
	switch {
	case !sampled:
		return scraped{source: source, reason: whose + " has not sampled the devices, or is of an older release"}
	case age > staleSeconds:
		return scraped{source: source,
			reason: fmt.Sprintf("%s has not sampled the devices for %s", whose, time.Duration(min(age, math.MaxInt32))*time.Second)}
	}
	return scraped{series: found, source: source}
}

// staleSeconds is how old a sample may be.
const staleSeconds = 30

// agentsByNode are the agents, or why they are unknown.
type agentsByNode struct {
	system string
	pods   map[string]*corev1.Pod // by node
	reason string
}

func findAgents(ctx context.Context, client Client, system string) agentsByNode {
	found := agentsByNode{system: system, pods: map[string]*corev1.Pod{}}
	list, err := client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=gpuslice,app.kubernetes.io/component=agent", FieldSelector: "status.phase=Running"})
	if err != nil {
		found.reason = "the agents are unknown: " + short(err)
		return found
	}
	for i := range list.Items {
		p := &list.Items[i]
		if other := found.pods[p.Spec.NodeName]; other == nil || other.DeletionTimestamp != nil { // an update has two on a node for a moment
			found.pods[p.Spec.NodeName] = p
		}
	}
	return found
}

// metricsPort is the number of the port that the agent names metrics, or 0: the API server's proxy to pods knows no names.
func metricsPort(agent *corev1.Pod) int {
	for _, c := range agent.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == "metrics" {
				return int(port.ContainerPort)
			}
		}
	}
	return 0
}

func (a agentsByNode) scrape(ctx context.Context, client Client, node string) scraped {
	pod := a.pods[node]
	switch {
	case a.reason != "":
		return scraped{source: agent, reason: a.reason}
	case pod == nil:
		return scraped{source: agent, reason: "no agent runs on node " + node}
	case metricsPort(pod) == 0:
		return scraped{source: agent, reason: "the agent of node " + node + " has no port named metrics"}
	}
	found, err := client.scrape(ctx, a.system, pod.Name, metricsPort(pod), maxOfAgent)
	return answer(found, agent, "the agent of node "+node, err)
}

// usages are those of the pod's containers.
func (t tenant) usages(found scraped) (all []Usage) {
	for _, c := range t.given.Containers {
		one := Usage{Namespace: t.pod.Namespace, Pod: t.pod.Name, Container: c.Name,
			Node: t.pod.Spec.NodeName, Memory: c.Slice, Source: found.source, Unknown: found.reason}
		if found.reason != "" {
			all = append(all, one)
			continue
		}
		own := labels{}
		if found.source == agent { // a guard knows its own pod alone
			own = labels{"namespace": t.pod.Namespace, "pod": t.pod.Name}
		}
		all = append(all, one.measure(found.series, own)...)
	}
	return all
}

// maxDevices is how many devices of a container are shown: answers may be a tenant's.
const maxDevices = 32

// measure has an item for each device that the container has used.
func (u Usage) measure(found series, own labels) (all []Usage) {
	metric := func(name string) string { return "gpuslice_" + u.Source + "_" + name }
	of := labels{"container": u.Container}
	maps.Copy(of, own)
	found.each(metric("memory_peak_bytes"), of, func(at labels, peak float64) {
		if len(all) == maxDevices {
			return
		}
		one, here, highest := u, labels{"device": at["device"]}, int64(peak)
		maps.Copy(here, of)
		one.Device, one.PeakBytes = at["device"], &highest
		used, known := found.value(metric("memory_used_bytes"), here)
		if known {
			one.use(used)
		} else {
			one.Unknown = "its use of the device cannot be read at present"
		}
		for _, name := range []string{"gpuslice_tenant_utilization_ratio", metric("utilization_ratio")} {
			if busy, known := found.value(name, here); known {
				one.Utilization = &busy
			}
		}
		all = append(all, one)
	})
	if len(all) > 0 {
		return all
	}
	_, known := found.value(metric("memory_slice_bytes"), of)
	switch notEnforcing, sampled := found.value(metric("not_enforcing"), own); {
	case !known || !sampled:
		u.Unknown = "the " + u.Source + " does not measure the container yet"
	case notEnforcing != 0:
		u.Unknown = "the " + u.Source + " cannot read what the pod uses"
	default:
		u.use(0)
	}
	return []Usage{u}
}

// use sets the use.
func (u *Usage) use(bytes float64) {
	n := int64(bytes)
	u.UsedBytes = &n
	if slice := u.Memory.Bytes(); slice > 0 {
		ratio := math.Round(1e4*bytes/float64(slice)) / 1e4
		u.UsedRatio = &ratio
	}
}

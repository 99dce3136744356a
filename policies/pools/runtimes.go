package pools

import (
	"cmp"
	"slices"

	nodev1 "k8s.io/api/node/v1"
)

// Runtimes are a cluster's facts about how a container that requests no GPU reaches NVIDIA's driver.
type Runtimes struct {
	// Classes are the RuntimeClasses of NVIDIA's handlers, the one to prefer first.
	Classes []runtimeClass `json:"classes,omitempty"`
	// Operator holds the GPU Operator's settings from its ClusterPolicy; nil: there is none, or it may not be read.
	Operator *Operator `json:"operator,omitempty"`
}

// runtimeClass is a RuntimeClass whose handler is NVIDIA's.
type runtimeClass struct {
	Name         string            `json:"name"`
	Handler      string            `json:"handler"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// Operator is how the GPU Operator has devices passed to containers.
type Operator struct {
	CDI       bool `json:"cdi,omitempty"`
	NRIPlugin bool `json:"nriPlugin,omitempty"` // the operator creates no RuntimeClass then
	// ManagementNamespaces are those in which the NRI plugin gives a pod the device of all GPUs.
	ManagementNamespaces []string `json:"managementNamespaces,omitempty"`
	IgnoresVariable      bool     `json:"ignoresVariable,omitempty"` // NVIDIA_VISIBLE_DEVICES of unprivileged containers
	AcceptsMounts        bool     `json:"acceptsMounts,omitempty"`   // in its place
}

// nvidiaHandlers are the names under which NVIDIA's toolkit installs its runtimes, the one to prefer first.
var nvidiaHandlers = []string{"nvidia", "nvidia-cdi", "nvidia-legacy"}

// maxRuntimeClasses bounds the list.
const maxRuntimeClasses = 16

// RuntimesOf reads the RuntimeClasses of a cluster.
func RuntimesOf(classes []*nodev1.RuntimeClass, operator *Operator) Runtimes {
	out := Runtimes{Operator: operator}
	for _, c := range classes {
		if !slices.Contains(nvidiaHandlers, c.Handler) {
			continue
		}
		class := runtimeClass{Name: c.Name, Handler: c.Handler}
		if c.Scheduling != nil {
			class.NodeSelector = c.Scheduling.NodeSelector
		}
		out.Classes = append(out.Classes, class)
	}
	slices.SortFunc(out.Classes, func(a, b runtimeClass) int {
		return cmp.Or(cmp.Compare(slices.Index(nvidiaHandlers, a.Handler), slices.Index(nvidiaHandlers, b.Handler)), cmp.Compare(a.Name, b.Name))
	})
	out.Classes = out.Classes[:min(len(out.Classes), maxRuntimeClasses)]
	return out
}

// OnPool are the names of the classes that pods on the pool's nodes can have.
func (r Runtimes) OnPool(p *Pool) (usable []string) {
	for _, c := range r.Classes {
		absent := len(p.Handlers) > 0 && !slices.Contains(p.Handlers, c.Handler)
		view := nodeView{labels: p.Labels, partial: true}
		for key, value := range c.NodeSelector {
			absent = absent || !view.is(key, value)
		}
		if !absent {
			usable = append(usable, c.Name)
		}
	}
	return usable
}

// labelGKENoPlugin is on nodes of GKE on which somebody else's device plugin runs: the GPU Operator's, for instance.
const labelGKENoPlugin = "gke-no-default-nvidia-gpu-device-plugin"

// GKEPlugin reports whether GKE's own device plugin serves the pool's nodes. It mounts the driver into containers that request
// a GPU, and no runtime of NVIDIA's is there.
func (p *Pool) GKEPlugin() bool {
	byGKE := func(labels map[string]string) bool {
		return labels[labelGKEAccelerator] != "" && labels[labelGKENoPlugin] != "true"
	}
	return byGKE(p.Labels) || slices.ContainsFunc(p.Nodes, func(n nodeKind) bool { return byGKE(n.Labels) })
}

package spellings

import (
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Spelling is how the users of another system request a part of a GPU, read where a policy lists its name under accept.
type Spelling struct {
	Name   string
	System string // for people
	Doc    string
	// Resources are resources of containers, Words annotations and labels of pods, Selectors keys of a pod's node selector.
	Resources, Words, Selectors map[string]reading
	// Sized are beginnings of resources, and Named of annotations, that go on with a size or with a container's name. Find
	// knows one of each: nos's and NVIDIA's.
	Sized map[string]sized
	Named map[string]named
	// Schedulers are the system's own: a pod that names one waits for it.
	Schedulers []string
	// Ignore is the label by which the system's webhook leaves a pod alone; "": there is none.
	Ignore string
	// FirstContainer reports whether a request that names no container is for the first one.
	FirstContainer bool
	// Unit is that of amounts of memory, unless the system's device plugin is configured with another; 0: it cannot be.
	Unit quantity.MiB

	complete func(*collected) error // nil: each amount is of each device
}

// Part is the request for one container, or by the pod's words.
type Part struct {
	Size      api.Size
	GPUs      int64 // 0: not named
	Strategy  api.StrategyName
	Container string // that a word of the pod names
}

// Empty reports whether nothing is requested.
func (p Part) Empty() bool {
	return !p.Size.Named() && p.Size.MemoryLimit == 0 && p.Size.Compute == 0 && p.GPUs == 0 && p.Strategy == ""
}

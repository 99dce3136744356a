package policies

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
)

// StrategyName is a way to share a device, in NVIDIA's own words.
type StrategyName string

// Strategy is one way to share a device: what it offers and what a container under it must carry.
type Strategy struct {
	Name StrategyName
	// Doc is one line for people.
	Doc string
	// Several says that a container may ask for more than one unit of the pool's resource.
	Several bool
	// View is what a framework sees of the device's memory under this strategy.
	View frameworks.View
	// Tier is the enforcement that the strategy itself brings, before driver, guard and framework.
	Tier Tier
	// Inject returns what a container in a slice must carry beyond the resource: variables, mounts and volumes.
	Inject func(SliceGrant) Injection
	// Requires returns why a container of the pod may not use the strategy on a pool, or nil.
	Requires func(*Input, *Pool, *corev1.Container) *Violation
	// Note says what the strategy does not hold on a pool, for the enforcement planned; "" or nil: nothing to say.
	Note func(*Input, *Pool) string
}

// SliceGrant is one container's slice on the pool it was planned for.
type SliceGrant struct {
	Pool      *Pool
	MPS       MPSSpec
	Slice     MiB
	Limit     MiB
	GPUs      int64
	Processes int
	Compute   int // percent; 0: not asked
	HasShm    bool
}

// Injection is what a strategy adds to a container, and the volumes that its mounts name.
type Injection struct {
	Env     []Variable
	Mounts  []corev1.VolumeMount
	Volumes []corev1.Volume
}

// Variable is an environment variable with a literal value.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Strategies lists the strategies. Policy documents, plans and scenarios take their names from here.
func Strategies() []Strategy {
	return []Strategy{timeSlicing(), mps(), mig(), exclusive()}
}

// strategyNamed returns the strategy of that name.
func strategyNamed(name StrategyName) (Strategy, bool) {
	for _, s := range Strategies() {
		if s.Name == name {
			return s, true
		}
	}
	return Strategy{}, false
}

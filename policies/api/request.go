package api

import "github.com/gpuslice/gpuslice/policies/internal/size"

// Request is what a pod requests of its GPUs, whatever the spelling. It is recorded in the Promise, since the rewritten
// pod no longer says it.
type Request struct {
	Share      string             `json:"share,omitempty"`
	Strategy   StrategyName       `json:"strategy,omitempty"`
	Framework  string             `json:"framework,omitempty"`
	Explicit   bool               `json:"explicit,omitempty"`  // the pod itself requests a slice; else policy gives it one
	Spellings  []string           `json:"spellings,omitempty"` // of other systems, that requested it
	Containers []ContainerRequest `json:"containers,omitempty"`
}

// ContainerRequest is what one container requests. Only containers that get GPUs have one, init containers first.
type ContainerRequest struct {
	Name     string    `json:"name"`
	Resource string    `json:"resource,omitempty"` // the GPU resource it named; empty: none
	GPUs     int64     `json:"gpus"`               // whole units of it; 1 where a fraction or no resource was written
	Quantity string    `json:"quantity,omitempty"` // the fraction as written, where it was one
	Threads  int       `json:"threads,omitempty"`  // the share of compute that its variable for MPS said, where no label did
	Size     size.Size `json:"size,omitzero"`
	// Foreign are the quantities of another system's resources that requested it, which no node may offer.
	Foreign map[string]string `json:"foreign,omitempty"`
}

// Of returns what a container, by name, requested; a zero request where it requested nothing.
func (r Request) Of(container string) ContainerRequest {
	for i := range r.Containers {
		if r.Containers[i].Name == container {
			return r.Containers[i]
		}
	}
	return ContainerRequest{}
}

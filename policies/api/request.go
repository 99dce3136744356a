package api

// Request is a pod's request for GPUs, whatever the spelling. It is recorded in the Promise, since the rewritten pod no
// longer holds it.
type Request struct {
	Share      string             `json:"share,omitempty"`
	Strategy   StrategyName       `json:"strategy,omitempty"`
	Framework  string             `json:"framework,omitempty"`
	Explicit   bool               `json:"explicit,omitempty"`  // the pod itself requests a slice; else policy gives it one
	Spellings  []string           `json:"spellings,omitempty"` // of other systems, that requested it
	Containers []ContainerRequest `json:"containers,omitempty"`
}

// ContainerRequest is the request of one container. Only containers that get GPUs have one, init containers first.
type ContainerRequest struct {
	Name     string `json:"name"`
	Resource string `json:"resource,omitempty"` // the GPU resource it named; empty: none
	GPUs     int64  `json:"gpus"`               // whole units of it; 1 where a fraction or no resource was written
	Quantity string `json:"quantity,omitempty"` // the fraction as written, where it was one
	Threads  int    `json:"threads,omitempty"`  // the share of compute that its variable for MPS said, where no label did
	Size     Size   `json:"size,omitzero"`
	// Foreign are the quantities of another system's resources that requested it, which no node may offer.
	Foreign map[string]string `json:"foreign,omitempty"`
}

// Of returns a container's request, by name; zero if it requested nothing.
func (r Request) Of(container string) ContainerRequest {
	for i := range r.Containers {
		if r.Containers[i].Name == container {
			return r.Containers[i]
		}
	}
	return ContainerRequest{}
}

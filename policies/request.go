package policies

// Request is what a pod asks of its GPUs, whatever the spelling. It is recorded in the Promise, since the rewritten
// pod no longer says it.
type Request struct {
	Share      string             `json:"share,omitempty"`
	Strategy   StrategyName       `json:"strategy,omitempty"`
	Framework  string             `json:"framework,omitempty"`
	Containers []ContainerRequest `json:"containers,omitempty"` // those that get GPUs, in pod order, init containers first
}

// ContainerRequest is what one container asks.
type ContainerRequest struct {
	Name     string `json:"name"`
	Resource string `json:"resource,omitempty"` // the GPU resource it named; empty: none
	GPUs     int64  `json:"gpus"`               // whole units of it; 1 where a fraction or no resource was written
	Quantity string `json:"quantity,omitempty"` // as written, where it was a fraction
	Ask      Ask    `json:"ask"`
}

// Ask is the size of a slice: at most one of Memory, Fraction and Class. The zero Ask leaves it to policy.
type Ask struct {
	Memory      MiB      `json:"memory,omitzero"`
	MemoryLimit MiB      `json:"memoryLimit,omitzero"`
	Fraction    Fraction `json:"fraction,omitzero"`
	Class       string   `json:"class,omitempty"`
	Compute     int      `json:"compute,omitempty"`
	Processes   int      `json:"processes,omitempty"`
}

package policies

// StrategyName is a way to share a device, in NVIDIA's own words.
type StrategyName string

// MPSProviderName names who runs the MPS daemon of a pool and brings its mounts.
type MPSProviderName string

// MPSSpec says where a host daemon's directories are. Defaults: /run/nvidia-mps and /var/log/nvidia-mps.
type MPSSpec struct {
	PipeDirectory string   `json:"pipeDirectory,omitempty"` // on the host and in the container
	LogDirectory  string   `json:"logDirectory,omitempty"`
	ShmDirectory  string   `json:"shmDirectory,omitempty"` // mounted on /dev/shm where set and the container has none
	Users         []int64  `json:"users,omitempty"`        // UIDs that the daemon serves; empty: any
	TrustDomains  []string `json:"trustDomains,omitempty"` // trust domains that the namespace belongs to; empty: it may share the daemons of any
}

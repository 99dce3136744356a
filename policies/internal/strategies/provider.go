package strategies

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Provider runs the MPS daemon of a pool and brings its mounts. Differences between providers follow from these
// properties: only a provider's own file knows its name.
type Provider struct {
	Name MPSProviderName
	// Plugin and Daemon name for people who runs the daemon, and the daemon.
	Plugin, Daemon string
	// LabeledBy is the source of node labels that show such a daemon; 0: a pool has to be declared.
	LabeledBy LabelSource
	// HoldsToReplica reports whether the daemon holds each client to a replica's part of the device.
	HoldsToReplica bool
	// TerminatesSafely reports whether a guard in the pod can terminate a client without harm to its neighbors.
	TerminatesSafely bool
	// HostIPC reports whether clients have to share the node's IPC namespace.
	HostIPC bool
	// Pipe is where a container that uses the pool's resource finds the daemon's pipe.
	Pipe func(m MPSSpec, resource string) string
	// Client returns the settings by which a container reaches the daemon (nil: the guard, which shares no memory); nil: the plugin
	// brings them all, and none may be written (a wrong pipe makes the client fall back to the whole card without an error).
	Client func(MPSSpec, *corev1.Container) Injection
	// NoParts is the reason why replicas of a device are never parts of it, though its plugin gives a container
	// several, and the remedy; "": it gives one.
	NoParts string
	// Requires returns why a container of the pod may not be a client; nil: it always may.
	Requires func(*Placement) *api.Violation
}

// ChangesPods reports whether a pod's content depends on the provider.
func (p *Provider) ChangesPods() bool { return p.HostIPC || p.Client != nil }

// MPSProviderName names who runs the MPS daemon of a pool and brings its mounts.
type MPSProviderName string

// MPSSpec is the location of a host daemon's directories. Defaults: /run/nvidia-mps and /var/log/nvidia-mps.
type MPSSpec struct {
	PipeDirectory string  `json:"pipeDirectory,omitempty"` // on the host and in the container; default: /run/nvidia-mps
	LogDirectory  string  `json:"logDirectory,omitempty"`  // default: /var/log/nvidia-mps
	ShmDirectory  string  `json:"shmDirectory,omitempty"`  // mounted on /dev/shm where set and the container has none
	Users         []int64 `json:"users,omitempty"`         // UIDs that the daemon serves; empty: any
	// trust domains that the namespace belongs to; empty: it may share the daemons of any
	TrustDomains []string `json:"trustDomains,omitempty"`
}

package promise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// Guard is the pod's part of the guard: the check before the first container that can reach a GPU, the sidecar after
// it, and their needs of the pod. The containers follow from it.
type Guard struct {
	Image      string             `json:"image"`
	PullPolicy corev1.PullPolicy  `json:"pullPolicy"`
	PullSecret string             `json:"pullSecret,omitempty"`
	CPU        string             `json:"cpu"`
	Memory     string             `json:"memory"`
	Storage    string             `json:"storage,omitempty"` // on the node's disk, where a LimitRange bounds it
	User       int64              `json:"user"`
	Kill       bool               `json:"kill,omitempty"`   // CAP_KILL
	Shares     bool               `json:"shares,omitempty"` // the process namespace is shared for the guard, not by the author
	Agent      bool               `json:"agent,omitempty"`  // the node's agent enforces the slices, so that there is a check and no sidecar
	Shim       bool               `json:"shim,omitempty"`   // the check brings the shim
	Resource   string             `json:"resource"`         // the GPU resource that the check requests; "": it has a claim
	Count      int64              `json:"count"`
	Claims     []string           `json:"claims,omitempty"` // of the slices: the check has the first, the sidecar all
	Env        []podspec.Variable `json:"env"`              // of check and sidecar
	CheckEnv   []podspec.Variable `json:"checkEnv,omitempty"`
	SidecarEnv []podspec.Variable `json:"sidecarEnv,omitempty"`
	// Mounts are the mounts of check and sidecar, SidecarMounts of the sidecar alone.
	Mounts        []corev1.VolumeMount `json:"mounts,omitempty"`
	SidecarMounts []corev1.VolumeMount `json:"sidecarMounts,omitempty"`
	Annotations   map[string]string    `json:"annotations,omitempty"`
}

// Limits are the limits that the guard enforces.
func (g *Guard) Limits() (limits.Limits, error) {
	return limits.FromEnv(func(name string) (string, bool) {
		i := slices.IndexFunc(g.Env, func(v podspec.Variable) bool { return v.Name == name })
		if i < 0 {
			return "", false
		}
		return g.Env[i].Value, true
	})
}

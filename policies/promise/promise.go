package promise

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// Version is the version of the rules by which this build plans and applies.
const Version = 1

// MaxText is the longest annotation that is parsed, in bytes.
const MaxText = 64 << 10

// Promise records a pod's slices and edits. It is stored on the pod, so that they can be judged later without the
// policy and pools of the plan.
type Promise struct {
	Version     int                       `json:"v"`
	Namespace   string                    `json:"namespace"`
	Policy      string                    `json:"policy"`
	Request     api.Request               `json:"request"`
	Strategy    api.StrategyName          `json:"strategy"`
	Pools       []string                  `json:"pools"` // the chosen one first, then its equals
	Containers  []Container               `json:"containers"`
	Volumes     []corev1.Volume           `json:"volumes,omitempty"`
	Affinity    []corev1.NodeSelectorTerm `json:"affinity,omitempty"` // any of these, and all that the pod requests
	Tolerations []corev1.Toleration       `json:"tolerations,omitempty"`
	// Hidden are the containers without a GPU, from which the node's devices are hidden.
	Hidden  []string     `json:"hiddenDevices,omitempty"`
	Guard   *Guard       `json:"guard,omitempty"`
	Pod     written      `json:"pod,omitzero"`
	Charge  quota.Charge `json:"charge"`
	Planned Planned      `json:"planned"`
	// Slice is the pod's slice, in words: "8Gi of NVIDIA A100". A Promise of an earlier build has none, and the pod
	// then neither summary nor label of the tier.
	Slice string `json:"slice,omitempty"`
	// Signature is over all the words before it, so it stays the last field.
	Signature string `json:"sig,omitempty"`

	signed string // the text, of one that was signed here: encoding costs as much as all edits of the pod together
}

// Container is one container's slice and all that it carries for it.
type Container struct {
	Name     string               `json:"name"`
	Resource string               `json:"resource"`
	Count    int64                `json:"count"`              // of the resource
	Granule  quantity.MiB         `json:"granule,omitzero"`   // of a granular pool: the memory of one of the resource
	Replicas int                  `json:"replicas,omitempty"` // of a granular pool: how many its devices have
	Class    string               `json:"class,omitempty"`    // the class of policy that the slice was sized by
	Devices  quantity.Devices     `json:"devices,omitzero"`   // GPU equivalents, of all its GPUs; 0: an earlier build did not count them
	Slice    quantity.MiB         `json:"slice,omitzero"`
	Limit    quantity.MiB         `json:"limit,omitzero"`
	Env      []podspec.Variable   `json:"env,omitempty"`
	Mounts   []corev1.VolumeMount `json:"mounts,omitempty"`
	Args     []string             `json:"args,omitempty"` // at the end of its arguments
	Shim     string               `json:"shim,omitempty"` // how its Python loads the shim
	// Claim is the pod's name for the claim of the slice, and Template the ResourceClaimTemplate that it is made of; "": the
	// slice is so many of Resource.
	Claim    string `json:"claim,omitempty"`
	Template string `json:"template,omitempty"`
	// Charged is the memory that the container counts for, where it may get an instance instead that has more than the slice.
	Charged quantity.MiB `json:"charged,omitzero"`
}

// UsesMPS reports whether the container has the pipe of an MPS daemon.
func (c *Container) UsesMPS() bool {
	return slices.ContainsFunc(c.Env, func(v podspec.Variable) bool { return v.Name == nvidia.EnvMPSPipe })
}

// written records the edits of the pod itself.
type written struct {
	PriorityClassName string `json:"priorityClassName,omitempty"`
	SchedulerName     string `json:"schedulerName,omitempty"`
	RuntimeClassName  string `json:"runtimeClassName,omitempty"`
	HostIPC           bool   `json:"hostIPC,omitempty"`
	// NeedsHostIPC reports that the slice needs the node's IPC namespace, which the author wrote.
	NeedsHostIPC bool `json:"needsHostIPC,omitempty"`
}

// TooLong denies a Promise that could not be read back from its annotation. Most are a few kilobytes: only large
// ones are written out to be measured.
func (p *Promise) TooLong() *api.Violation {
	const each = 1 << 10 // a container's needs beside its variables, generously
	size := 0
	for i := range p.Containers {
		size += each
		for _, v := range p.Containers[i].Env {
			size += 2 * (len(v.Name) + len(v.Value))
		}
	}
	if size < MaxText/2 || len(p.Encode())+maxSignature <= MaxText {
		return nil
	}
	return &api.Violation{Rule: api.RuleSize, Reason: "the pod is too large", Field: "spec.containers", Detail: fmt.Sprintf(
		"what its %d containers would be given does not fit the %d bytes that are recorded on it; give a GPU to fewer containers, or shorten policy's env",
		len(p.Containers), MaxText)}
}

// Container returns the Promise's record of a container; a nil Promise has none.
func (p *Promise) Container(name string) *Container {
	if p == nil {
		return nil
	}
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

// HasVolume reports whether the Promise gives the pod a volume of that name; a nil Promise gives none.
func (p *Promise) HasVolume(name string) bool {
	return p != nil && slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

// Encode is the annotation's text.
func (p *Promise) Encode() string {
	if p.signed != "" {
		return p.signed
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic("encode promise: " + err.Error()) // every field is plain data
	}
	return string(b)
}

// Decode reads the annotation gpuslice.dev/promise. It denies text that is too long, malformed, or of a version that
// this build does not know (it reads its own version and the one before).
func Decode(text string) (*Promise, error) { return decodeAny(text, false) }

// DecodeNewer is Decode that also reads a newer version, as far as this build knows it: for callers that trust the text.
func DecodeNewer(text string) (*Promise, error) { return decodeAny(text, true) }

// decodeAny reads the annotation. A newer version is read as far as it is known, for callers that trust the text. The volumes, which
// alone have quantities, are read last: whoever writes a pod writes the annotation, and "1e-10000000" takes seconds. Names in a promise are the
// author's, and a container may be called 1e1000.
func decodeAny(text string, newer bool) (*Promise, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("the promise is longer than %d bytes", MaxText)
	}
	var p Promise
	given := struct {
		*Promise
		Volumes jsontext.Value `json:"volumes"`
	}{Promise: &p}
	err := jsonv2.Unmarshal([]byte(text), &given)
	switch {
	case err == nil && !quantity.AllCheap(given.Volumes):
		return nil, errors.New("read promise: it holds a quantity that is not read")
	case err == nil && len(given.Volumes) > 0:
		err = jsonv2.Unmarshal(given.Volumes, &p.Volumes)
	}
	if err != nil { // the decoder's words vary for one cause
		return nil, errors.New("read promise: it is not a promise as gpuslice writes it")
	}
	if newer && p.Newer() {
		return &p, nil
	}
	if p.Version < Version-1 || p.Version > Version || p.Version < 1 {
		return nil, fmt.Errorf("promise of version %d: this build reads version %d", p.Version, Version)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("read promise: %w", err)
	}
	return &p, nil
}

// check denies promises that no build of ours writes. Whoever writes a pod can write a promise too, and a pod is read
// in the state that the promise records as its earlier one.
func (p *Promise) check() error {
	for _, r := range p.Request.Containers {
		if err := r.Size.Bounded(); err != nil {
			return fmt.Errorf("request of container %s: %w", message.Quote(r.Name), err)
		}
	}
	for at, c := range p.Containers {
		i := slices.IndexFunc(p.Request.Containers, func(r api.ContainerRequest) bool { return r.Name == c.Name })
		switch {
		case i >= 0 && p.Request.Containers[i].Resource == "" && !p.Request.Explicit:
			return fmt.Errorf("container %s did not request anything", message.Quote(c.Name))
		case c.Claim+c.Template != "" && !c.soundClaim():
			return fmt.Errorf("container %s was promised a claim that is none of gpuslice's", message.Quote(c.Name))
		case c.Claim != "" && !c.ClaimsAlone(p.Containers[:at]):
			return fmt.Errorf("container %s was promised another container's claim", message.Quote(c.Name))
		case i >= 0 && c.Granule > 0 && p.Request.Containers[i].GPUs == 1 && c.holdsSlice():
		case i < 0, c.Granule != 0, c.Replicas != 0, p.Request.Containers[i].GPUs != c.Count, c.Count < 1, c.Count > quantity.MaxGPUs:
			return fmt.Errorf("container %s was not promised what it requested", message.Quote(c.Name))
		}
	}
	return nil
}

// Place names the pool that the promise was planned for.
func (p *Promise) Place() string { return "pool " + p.Planned.Pool }

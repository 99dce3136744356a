package promise

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Planned is the enforcement planned at admission: the annotation gpuslice.dev/planned.
type Planned struct {
	Strategy   api.StrategyName   `json:"strategy"`
	Pool       string             `json:"pool"`
	Tier       api.Tier           `json:"tier"` // the strongest that applies to every container
	Containers []PlannedContainer `json:"containers"`
	Notes      []string           `json:"notes,omitempty"` // limits that are not enforced, with reasons
}

// PlannedContainer lists the tiers of one container's slice.
type PlannedContainer struct {
	Name      string     `json:"name"`
	Memory    string     `json:"memory"`
	SizedBy   string     `json:"sizedBy,omitempty"` // what builds before v0.1.0 wrote of a size that they took from the workload's history
	Limit     string     `json:"limit,omitempty"`   // where it differs from memory
	Compute   int        `json:"compute,omitempty"`
	Tiers     []api.Tier `json:"tiers"`
	Framework string     `json:"framework,omitempty"` // "pytorch 2.4 (image tag)"
	Cap       string     `json:"cap,omitempty"`       // the framework's cap in force
}

// PlannedOn is the present plan of the pod: other images than at its creation mean another enforcement.
func (p *Promise) PlannedOn(pod *corev1.Pod) Planned {
	var now Planned
	if json.Unmarshal([]byte(pod.Annotations[api.AnnotationPlanned]), &now) != nil || len(now.Containers) != len(p.Planned.Containers) {
		return p.Planned
	}
	return now
}

// WritePlanned writes the present plan of the pod. The summary of a live pod, which may include observed tiers, stays
// if the plan does.
func (p *Promise) WritePlanned(pod *corev1.Pod, now Planned) {
	text, err := json.Marshal(now)
	if err != nil {
		panic("encode plan: " + err.Error()) // plain data only
	}
	if pod.Annotations[api.AnnotationPlanned] == string(text) && pod.Annotations[api.AnnotationObserved] != "" {
		return
	}
	pod.Annotations[api.AnnotationPlanned] = string(text)
	if p.Slice == "" {
		delete(pod.Annotations, api.AnnotationSummary)
		delete(pod.Labels, api.LabelTier)
		return
	}
	pod.Annotations[api.AnnotationSummary] = p.Summary(now.Tier)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, api.LabelTier, string(now.Tier))
}

// Summary is the slice, and the tier that enforces it, for people: "8Gi of NVIDIA A100, enforced by guard". "": an earlier build
// gave the slice.
func (p *Promise) Summary(tier api.Tier) string {
	switch {
	case p.Slice == "":
		return ""
	case tier == api.TierNone:
		return p.Slice + ", not enforced"
	}
	return p.Slice + ", enforced by " + string(tier)
}

package pools

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// nodeView is a node as the scheduler's constraints see it. Matching follows the scheduler's own
// (k8s.io/component-helpers/scheduling/corev1/nodeaffinity); it is written again because it must not allocate, and
// because of nodes to come only some labels are known.
type nodeView struct {
	labels  map[string]string
	partial bool // a label that is not among labels may have any value
	named   bool // name is the node's
	name    nodeName
}

// label is the value of a label; known is false where it may have any, and has where the node carries it.
func (v *nodeView) label(key string) (value string, has, known bool) {
	if key == corev1.LabelHostname && v.named {
		return v.name.Hostname, v.name.Hostname != "", true
	}
	value, has = v.labels[key]
	return value, has, has || !v.partial && !namesNode(key)
}

// is reports whether the label may have the value.
func (v *nodeView) is(key, value string) bool {
	got, has, known := v.label(key)
	return !known || has && got == value
}

// matches reports whether the node may satisfy all of a term. A term without any demand matches no node.
func (v *nodeView) matches(term *corev1.NodeSelectorTerm) bool {
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		return false
	}
	for i := range term.MatchExpressions {
		if !v.satisfies(&term.MatchExpressions[i]) {
			return false
		}
	}
	for i := range term.MatchFields {
		if !v.satisfiesField(&term.MatchFields[i]) {
			return false
		}
	}
	return true
}

func (v *nodeView) satisfies(r *corev1.NodeSelectorRequirement) bool {
	value, has, known := v.label(r.Key)
	if !known {
		return true
	}
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return has
	case corev1.NodeSelectorOpDoesNotExist:
		return !has
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		return has && len(r.Values) == 1 && podspec.NumberBeyond(value, r.Values[0], r.Operator == corev1.NodeSelectorOpGt)
	}
	return false
}

// satisfiesField knows metadata.name, the one field that the API server takes, with exactly one value.
func (v *nodeView) satisfiesField(r *corev1.NodeSelectorRequirement) bool {
	if v.partial || !v.named {
		return true
	}
	if r.Key != "metadata.name" || len(r.Values) != 1 {
		return false
	}
	same := r.Values[0] == v.name.Name
	return r.Operator == corev1.NodeSelectorOpIn && same || r.Operator == corev1.NodeSelectorOpNotIn && !same
}

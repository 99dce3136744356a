package pools

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// Reach reports whether pod's own nodeSelector, required affinity and tolerations leave a node of the pool, and if not,
// which of them excludes it, for people. Tolerations that admission adds by itself for the pool's resource name
// (ExtendedResourceToleration: key = resource) count as present, and so do extra.
//
// Of a pool without nodes, and of nodes that an autoscaler would add, only the labels of Pool.Labels are known: another
// value of one of those excludes, a key that is not among them does not.
func (p *Pool) Reach(pod *corev1.Pod, extra []corev1.Toleration) (ok bool, why string) {
	c := constraintsOf(pod)
	best, taint := stageSelector, (*corev1.Taint)(nil)
	for i := range p.Nodes {
		stage, t := c.stageOf(&p.Nodes[i], false, p.Resource, extra)
		if stage == stageReached {
			return true, ""
		}
		if stage >= best {
			best, taint = stage, t
		}
	}
	if len(p.Nodes) == 0 || p.ScalesFromZero {
		stage, t := c.stageOf(&nodeKind{Labels: p.Labels, Taints: p.Taints}, true, p.Resource, extra)
		if stage == stageReached {
			return true, ""
		}
		if stage >= best {
			best, taint = stage, t
		}
	}
	return false, c.why(best, taint)
}

// stage is how far a pod comes towards a node.
type stage int

const (
	stageSelector stage = iota // stopped by its nodeSelector
	stageAffinity              // stopped by its required node affinity
	stageTaint                 // stopped by a taint
	stageReached
)

// maxTermChecks bounds the cost of a pod's affinity on a pool of many kinds of nodes; beyond it, nothing excludes.
const maxTermChecks = 1 << 18

// constraints are a pod's demands on its node.
type constraints struct {
	pod     *corev1.Pod
	terms   *corev1.NodeSelector // nil: none
	byName  bool                 // they can distinguish nodes by name
	patient int                  // checks left, see maxTermChecks
}

func constraintsOf(pod *corev1.Pod) *constraints {
	c := &constraints{pod: pod, patient: maxTermChecks}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		c.terms = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	_, c.byName = pod.Spec.NodeSelector[corev1.LabelHostname]
	if c.terms != nil {
		c.byName = c.byName || slices.ContainsFunc(c.terms.NodeSelectorTerms, termNames)
	}
	return c
}

// termNames reports whether a term can distinguish nodes by name.
func termNames(term corev1.NodeSelectorTerm) bool {
	hostname := func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelHostname }
	return len(term.MatchFields) > 0 || slices.ContainsFunc(term.MatchExpressions, hostname)
}

// stageOf is the furthest that the pod comes with nodes of one kind, and the taint that stops it there. toCome reports whether
// the kind stands for nodes of which only some labels are known.
func (c *constraints) stageOf(kind *nodeKind, toCome bool, resource string, extra []corev1.Toleration) (stage, *corev1.Taint) {
	view := nodeView{labels: kind.Labels, partial: toCome}
	best := stageSelector
	if c.byName && len(kind.Named) > 0 {
		for _, name := range kind.Named {
			view.named, view.name = true, name
			if best = max(best, c.stageOfView(&view)); best == stageTaint {
				break
			}
		}
	} else {
		best = c.stageOfView(&view)
	}
	if best < stageTaint {
		return best, nil
	}
	for i := range kind.Taints {
		if !c.tolerates(&kind.Taints[i], resource, extra) {
			return stageTaint, &kind.Taints[i]
		}
	}
	return stageReached, nil
}

// stageOfView is how far selector and affinity let the pod come, taints left aside.
func (c *constraints) stageOfView(view *nodeView) stage {
	for key, value := range c.pod.Spec.NodeSelector {
		if c.patient--; c.patient > 0 && !view.is(key, value) {
			return stageSelector
		}
	}
	if c.terms == nil {
		return stageTaint
	}
	for i := range c.terms.NodeSelectorTerms {
		if c.patient -= 1 + len(c.terms.NodeSelectorTerms[i].MatchExpressions); c.patient <= 0 {
			return stageTaint
		}
		if view.matches(&c.terms.NodeSelectorTerms[i]) {
			return stageTaint
		}
	}
	return stageAffinity
}

func (c *constraints) tolerates(taint *corev1.Taint, resource string, extra []corev1.Toleration) bool {
	if taint.Effect == corev1.TaintEffectPreferNoSchedule {
		return true
	}
	if taint.Key == resource && taint.Effect == corev1.TaintEffectNoSchedule {
		return true // ExtendedResourceToleration
	}
	return podspec.AnyTolerates(c.pod.Spec.Tolerations, taint) || podspec.AnyTolerates(extra, taint)
}

// why names the constraint that excludes the pool.
func (c *constraints) why(at stage, taint *corev1.Taint) string {
	switch {
	case at == stageTaint && taint != nil:
		return fmt.Sprintf("taint %s is not tolerated", message.Quote(taint.ToString()))
	case at == stageAffinity:
		return "the pod's required node affinity matches none of its nodes"
	}
	return "the pod's nodeSelector matches none of its nodes"
}

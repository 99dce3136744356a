package policies_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
)

// TestFieldOfPodWithGuard looks at a pod with the guard's init containers, which the rules do not see: a container that another
// webhook made privileged has its place among all of them.
func TestFieldOfPodWithGuard(t *testing.T) {
	t.Parallel()
	guarded := 0
	for _, c := range created(t) {
		if c.d.Outcome != policies.Mutated {
			continue
		}
		in := c.in
		in.Pod = c.d.Rewrite(c.in.Pod).DeepCopy()
		list := &in.Pod.Spec.InitContainers
		if !slices.ContainsFunc(*list, func(c corev1.Container) bool { return c.Name == limits.GuardContainer }) {
			continue
		}
		guarded++
		*list = append(*list, corev1.Container{Name: "late", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}})
		d := policies.Verify(in, c.d.Promise)
		want := fmt.Sprintf("spec.initContainers[%d].securityContext.privileged", len(*list)-1)
		if d.IfEnforced != policies.Denied || d.Violations[0].Field != want {
			t.Errorf("%s: %s: %+v, want the field %s", c.s.Name, d.Outcome, d.Violations, want)
		}
	}
	if guarded < 10 {
		t.Errorf("only %d scenarios have a guard in the pod", guarded)
	}
}

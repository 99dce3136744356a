package rules

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// privileged denies containers that have every device of the node, whatever they requested.
func privileged() Rule {
	return Rule{Reason: "a privileged container in a slice", Find: func(s Subject) (found []string) {
		for c := range podspec.EveryContainer(&s.Pod.Spec) {
			if IsPrivileged(c.SecurityContext) {
				found = append(found, fmt.Sprintf("container %q sets securityContext.privileged, which gives it every GPU of the node", c.Name))
			}
		}
		return found
	}, Instead: "remove it"}
}

func IsPrivileged(s *corev1.SecurityContext) bool {
	return s != nil && s.Privileged != nil && *s.Privileged
}

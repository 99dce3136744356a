package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// privileged denies containers that have every device of the node, whatever they asked for.
func privileged() TamperRule {
	return TamperRule{Reason: "a privileged container in a slice", Find: func(s Subject) (found []string) {
		for c := range everyContainer(&s.Pod.Spec) {
			if isPrivileged(c.SecurityContext) {
				found = append(found, fmt.Sprintf("container %q sets securityContext.privileged, which gives it every GPU of the node", c.Name))
			}
		}
		return found
	}, Instead: "remove it"}
}

func isPrivileged(s *corev1.SecurityContext) bool {
	return s != nil && s.Privileged != nil && *s.Privileged
}

package rules

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// privileged denies containers that have every device of the node, whatever they requested.
var privileged = Rule{Reason: "a privileged container in a slice", Find: func(s Subject) (found []Part) {
	for c := range podspec.EveryContainer(&s.Pod.Spec) {
		if IsPrivileged(c.SecurityContext) {
			found = append(found, Part{c.Name, "securityContext.privileged",
				fmt.Sprintf("container %q sets securityContext.privileged, which gives it every GPU of the node", c.Name)})
		}
		if c.SecurityContext != nil && Unconfined(c.SecurityContext.SELinuxOptions) {
			found = append(found, Part{c.Name, "securityContext.seLinuxOptions.type", fmt.Sprintf(
				"container %q sets securityContext.seLinuxOptions.type %q, by which SELinux confines nothing",
				c.Name, c.SecurityContext.SELinuxOptions.Type)})
		}
	}
	if pod := s.Pod.Spec.SecurityContext; pod != nil && Unconfined(pod.SELinuxOptions) {
		found = append(found,
			Part{Field: "spec.securityContext.seLinuxOptions.type", Text: fmt.Sprintf(
				"spec.securityContext.seLinuxOptions.type is %q, by which SELinux confines nothing", pod.SELinuxOptions.Type)})
	}
	return found
}, Instead: "remove it"}

// Unconfined reports whether SELinux lets a process of the type reach the node's own files: the types of the node's own
// services, under which no container runs by itself.
func Unconfined(o *corev1.SELinuxOptions) bool {
	return o != nil && slices.Contains(
		[]string{"spc_t", "container_runtime_t", "kubelet_t", "init_t", "initrc_t", "kernel_t", "unconfined_t", "unconfined_service_t"}, o.Type)
}

func IsPrivileged(s *corev1.SecurityContext) bool {
	return s != nil && s.Privileged != nil && *s.Privileged
}

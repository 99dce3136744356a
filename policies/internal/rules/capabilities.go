package rules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// capabilities denies rights by which a container could stop or read its guard, mount the node's devices, or load code
// into its kernel.
var capabilities = Rule{Reason: "a capability that reaches out of a slice", Find: func(s Subject) (found []Part) {
	for c := range podspec.EveryContainer(&s.Pod.Spec) {
		if names := BeyondSlice(c.SecurityContext); len(names) > 0 {
			found = append(found, Part{c.Name, "securityContext.capabilities.add",
				fmt.Sprintf("container %q adds %s in securityContext.capabilities", c.Name, strings.Join(names, ", "))})
		}
	}
	return found
}, Instead: "remove what is named"}

// BeyondSlice lists added capabilities that a slice does not go with, as they are written. Container runtimes take them
// in any case, with and without the prefix.
func BeyondSlice(s *corev1.SecurityContext) (names []string) {
	if s == nil || s.Capabilities == nil {
		return nil
	}
	denied := []string{"ALL", "SYS_ADMIN", "SYS_PTRACE", "KILL", "SYS_MODULE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF", "PERFMON"}
	for _, c := range s.Capabilities.Add {
		if slices.Contains(denied, strings.TrimPrefix(strings.ToUpper(string(c)), "CAP_")) {
			names = append(names, message.Quote(string(c)))
		}
	}
	return names
}

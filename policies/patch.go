package policies

import (
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
)

// Patch returns the operations that turn raw, the tree that before was read from, into after. Containers, volumes and
// variables are matched by name and changed where they stand, so fields that this build does not know stay on the
// object they belong to. Equal pods give no operation.
func Patch(raw map[string]any, before, after *corev1.Pod) []jsonpatch.Operation {
	return nil
}

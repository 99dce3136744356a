package podedit

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestOperationsOfManyArguments ends in time only where no argument is looked up among all others.
func TestOperationsOfManyArguments(t *testing.T) {
	before := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Args: make([]string, 1<<20)}}}}
	raw, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	if ops := Operations(raw, before, before.DeepCopy()); len(ops) != 0 {
		t.Errorf("%d operations where nothing changed", len(ops))
	}
	after := before.DeepCopy()
	after.Spec.Containers[0].Args = append(after.Spec.Containers[0].Args, "--last")
	ops := Operations(raw, before, after)
	if len(ops) != 1 || ops[0].Operation != "add" || ops[0].Path != "/spec/containers/0/args/1048576" {
		t.Errorf("operations %.200v", ops)
	}
}

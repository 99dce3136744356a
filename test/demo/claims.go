package demo

import (
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// sharedByMemory is a node whose driver shares out the memory of its devices.
func sharedByMemory() (pools.Source, error) {
	return scenarios.Published([]string{"dra-h100"}, []string{"nvidia-h100-shares-memory"})
}

// claimTotals adds up what pods claim of a device.
type claimTotals struct {
	count int
	total resource.Quantity
}

// add reads the claims of a pod, and describes them.
func (c *claimTotals) add(object *unstructured.Unstructured) (text string, err error) {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		return "", err
	}
	for _, template := range claims.Named(&pod) {
		for _, r := range template.Spec.Spec.Devices.Requests {
			amount := r.Exactly.Capacity.Requests["memory"]
			c.total.Add(amount)
			c.count++
			text += fmt.Sprintf(", by a claim of %s (%s)", amount.String(), template.Name)
		}
	}
	return text, nil
}

// print prints the total of the claims, and which part of it is real.
func (c *claimTotals) print(published pools.Source, w io.Writer) {
	device := published.Slices[0].Spec.Devices[0]
	memory := device.Capacity["memory"].Value
	fmt.Fprintf(w, "\n%d claims of unequal sizes: %s of the %s of one device. The decisions are real; the ResourceSlices are documents, and neither a webhook nor a scheduler runs.\n",
		c.count, c.total.String(), memory.String())
}

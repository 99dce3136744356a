package pools

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestClaimableOf: where Kubernetes would round a claim up, the device takes none, since more would be gone than is charged.
func TestClaimableOf(t *testing.T) {
	t.Parallel()
	quantityOf := func(text string) *resource.Quantity {
		if text == "" {
			return nil
		}
		q := resource.MustParse(text)
		return &q
	}
	for name, c := range map[string]struct {
		least, step, leastShares string
		want                     bool
	}{
		"by the mebibyte":            {"1Mi", "1Mi", "1", true},
		"by the byte":                {"1", "", "1", true},
		"of no least amount":         {"", "", "", true},
		"from far above":             {"40Gi", "10Gi", "1", false},
		"in steps of two mebibytes":  {"1Mi", "2Mi", "1", false},
		"in steps beside a mebibyte": {"1000", "1Mi", "1", false},
		"two shares at least":        {"1Mi", "1Mi", "2", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := resource.MustParse("80Gi")
			got := claimableOf("gpu.nvidia.com",
				&resourcev1.Device{AllowMultipleAllocations: new(true), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
					"memory": {Value: all, RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &all,
						ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: quantityOf(c.least), Max: &all, Step: quantityOf(c.step)}}},
					"shares": {Value: resource.MustParse("8"), RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: quantityOf("1"),
						ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: quantityOf(c.leastShares), Max: quantityOf("8")}}},
				}})
			if (got.largest > 0) != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

package pools

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

func TestClassOf(t *testing.T) {
	t.Parallel()
	const ours, own = "device.driver == 'gpu.nvidia.com'", "device.attributes['gpu.nvidia.com']"
	for _, tt := range []struct{ name, expression, why string }{
		{"driver and type", ours + " && " + own + ".type == 'gpu'", ""},
		{"in other quotes and parentheses", `(device.driver == "gpu.nvidia.com") && ("type" in device.attributes["gpu.nvidia.com"] && device.attributes["gpu.nvidia.com"].type == "gpu")`, ""},
		{"another driver", "device.driver == 'gpu.example.com'", "do not name driver"},
		{"another type", ours + " && " + own + ".type == 'mig'", "of type \"gpu\" is not known"},
		{"a product", ours + " && " + own + ".type == 'gpu' && " + own + ".productName == 'NVIDIA H100'", "more than driver, type and profile"},
		{"a product in brackets", ours + " && " + own + "['productName'] == 'NVIDIA H100'", "more than driver, type and profile"},
		{"an architecture", ours + " && " + own + ".architecture == 'Hopper'", "more than driver, type and profile"},
		{"memory", ours + " && device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0", "more than driver, type and profile"},
		{"all but a type", ours + " && " + own + ".type != 'gpu'", "more than driver, type and profile"},
		{"one of two drivers", ours + " || " + own + ".type == 'gpu'", "more than driver, type and profile"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name, class := api.ResourceGPU, &resourcev1.DeviceClass{}
			class.Spec.ExtendedResourceName = &name
			class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: tt.expression}}}
			s := Source{Classes: map[string]*resourcev1.DeviceClass{"gpus": class}}
			found, why := s.classOf("gpu.nvidia.com", name, &device{kind: "gpu"})
			if (found == "gpus") != (tt.why == "") || !strings.Contains(why, tt.why) {
				t.Errorf("%q: %q lacks %q", found, why, tt.why)
			}
		})
	}
}

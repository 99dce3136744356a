package rules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// deviceAnnotation denies annotations by which a container runtime, or a plugin of one, gives a pod devices.
var deviceAnnotation = Rule{Reason: "an annotation that takes devices", Everywhere: true, Find: func(s Subject) (found []Part) {
	for key, value := range s.Pod.Annotations {
		if injectsDevices(key, value) {
			found = append(found,
				Part{Field: api.AnnotationField(key), Text: fmt.Sprintf(
					"annotation %s: %s injects devices past what the pod requests", message.Quote(key), message.Quote(value))})
		}
	}
	slices.SortFunc(found, func(a, b Part) int { return strings.Compare(a.Text, b.Text) })
	return found
}, Instead: "remove it, and request " + api.ResourceGPU + ": 1"}

// AddedDevices denies annotations that take devices and that an update adds to a live pod or changes.
func AddedDevices(old, updated *corev1.Pod) []api.Violation {
	added := map[string]string{}
	for key, value := range updated.Annotations {
		if was, there := old.Annotations[key]; !there || was != value {
			added[key] = value
		}
	}
	found := deviceAnnotation.Find(Subject{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: added}}})
	if len(found) == 0 {
		return nil
	}
	return []api.Violation{deviceAnnotation.deny(found, "leave it out of the change")}
}

// injector is a kind of annotation that gives a pod devices.
type injector struct {
	name  string // part of its key
	takes func(key, value string) bool
}

// injectors are the annotations that are known: of CDI, of the NRI plugins of NVIDIA's toolkit and KAI, of NRI's and GKE's
// device injectors, and of CRI-O.
var injectors = []injector{
	{"cdi.k8s.io/", func(key, value string) bool { return strings.HasPrefix(key, "nvidia.") || namesNVIDIA(key, value) }},
	{"cdi-devices.nri.io", namesNVIDIA},
	{"cdi-devices.noderesource.dev", namesNVIDIA},
	{"gpus.devices", func(key, _ string) bool { return strings.HasPrefix(key, "nvidia.com/") }},
	{"devices.nri.io", numbersNVIDIA},
	{"devices.noderesource.dev", numbersNVIDIA},
	{"devices.gke.io", numbersNVIDIA},
	{"cri-o.Devices", namesNVIDIA},
	{"devices.crio.io", namesNVIDIA},
}

// DeviceAnnotations are parts of keys of which every annotation that takes devices has one.
func DeviceAnnotations() (names []string) {
	for _, i := range injectors {
		names = append(names, i.name)
	}
	return names
}

// injectsDevices reports whether an annotation gives NVIDIA devices.
func injectsDevices(key, value string) bool {
	for _, i := range injectors {
		if strings.Contains(key, i.name) {
			return i.takes(key, value)
		}
	}
	return false
}

// namesNVIDIA reports whether the devices have NVIDIA in their names: every CDI specification that NVIDIA's tools write has
// nvidia.com in its name, and every device node nvidia.
func namesNVIDIA(_, value string) bool { return strings.Contains(value, "nvidia") }

// numbersNVIDIA reports whether a list of device nodes, which may have any name, has one of NVIDIA's in it, or cannot be read.
func numbersNVIDIA(_, value string) bool {
	const nvidiaMajor = 195
	var nodes []struct {
		Path     string `json:"path"`
		Type     string `json:"type"`
		Major    int64  `json:"major"`
		Minor    int64  `json:"minor"`
		FileMode any    `json:"file_mode"`
		UID      any    `json:"uid"`
		GID      any    `json:"gid"`
	}
	if yaml.UnmarshalStrict([]byte(value), &nodes) != nil {
		return true
	}
	for _, n := range nodes {
		if n.Major == nvidiaMajor || strings.Contains(n.Path, "nvidia") || strings.Contains(n.Path, "195:") {
			return true
		}
	}
	return false
}

package manifest

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Readable reports whether the fields of the template have the shapes of a pod's.
func (t Template) Readable() bool {
	var spec corev1.PodSpec
	_, other := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(t.spec, &spec))
	return !other
}

// NamesGPU reports whether a GPU is named somewhere in the object: by a resource, or as a device of a virtual machine. Kinds that only
// count or allow resources are left out.
func NamesGPU(o Object) bool {
	if slices.Contains(resourceKinds(), o.Kind) {
		return false
	}
	var root map[string]any
	return json.Unmarshal(o.Raw, &root) == nil && namesGPU(root, "", 0)
}

// resourceKinds are kinds that NamesGPU leaves out: they count or allow resources, or are judged elsewhere.
func resourceKinds() []string {
	return []string{"Pod", "Node", "ConfigMap", "Secret", "ResourceQuota", "LimitRange", "CustomResourceDefinition", "PersistentVolumeClaim",
		"DeviceClass", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "ResourceFlavor", "ClusterQueue", "LocalQueue", "Queue",
		"Workload", "PodGroup", "NodePool", "NodeOverlay", "NodeFeature", "NodeFeatureRule", "ClusterPolicy", "Event", "PriorityClass",
		"HorizontalPodAutoscaler", "VerticalPodAutoscaler", "ElasticQuota", "NVIDIADriver", "KubeVirt", "List"}
}

func namesGPU(value any, key string, depth int) bool {
	if depth > maxTemplateDepth {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if (key == "limits" || key == "requests") && isGPUName(name) || namesGPU(v[name], name, depth+1) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			device, _ := item.(map[string]any)
			if name, _ := device["deviceName"].(string); key == "gpus" && name != "" || namesGPU(item, key, depth+1) {
				return true
			}
		}
	}
	return false
}

// isGPUName reports whether a resource is most likely a GPU, or a part of one, whoever offers it.
func isGPUName(name string) bool {
	domain, rest, found := strings.Cut(strings.ToLower(name), "/")
	return found && (strings.Contains(rest, "gpu") || strings.HasPrefix(rest, "mig-") && domain == "nvidia.com")
}

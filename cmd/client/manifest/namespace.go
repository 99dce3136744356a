package manifest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Namespaces are the namespaces among objects.
func Namespaces(objects []Object) []api.Namespace {
	var all []api.Namespace
	for _, o := range objects {
		if o.Kind == "Namespace" && o.APIVersion == "v1" {
			all = append(all, Namespace(o.Name, o.Labels))
		}
	}
	return all
}

// Namespace is a namespace with the label that every one has.
func Namespace(name string, own map[string]string) api.Namespace {
	all := map[string]string{corev1.LabelMetadataName: name}
	maps.Copy(all, own)
	return api.Namespace{Name: name, Labels: all}
}

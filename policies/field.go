package policies

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
)

// locate completes the field at fault: within a container it becomes one of the pod, and where the request as a whole does not do,
// it is the field that makes the request.
func (in *Input) locate(v *api.Violation) {
	switch {
	case in.Pod == nil || in.PolicyError != nil: // no field that an author could change is at fault
	case v.Container != "":
		v.Field = containerField(&in.Pod.Spec, v.Container, v.Field)
	case v.Field == "" && v.Rule != api.RuleUndone && v.Rule != api.RuleSize:
		v.Field = in.requestField()
	}
	v.Container = ""
}

// containerField is the path of a container's field in the pod; at is the path in the container, "" for all of it.
func containerField(spec *corev1.PodSpec, name, at string) string {
	path := field.NewPath("spec")
	named := func(c corev1.Container) bool { return c.Name == name }
	if i := slices.IndexFunc(spec.Containers, named); i >= 0 {
		return join(path.Child("containers").Index(i), at)
	}
	if i := slices.IndexFunc(spec.InitContainers, named); i >= 0 {
		return join(path.Child("initContainers").Index(i), at)
	}
	for i := range spec.EphemeralContainers {
		if spec.EphemeralContainers[i].Name == name {
			return join(path.Child("ephemeralContainers").Index(i), at)
		}
	}
	return path.Child("containers").String() // it is missing
}

func join(container *field.Path, at string) string {
	if at == "" {
		return container.String()
	}
	return container.String() + "." + at
}

// requestField is the path of the label or annotation by which the pod requests a slice, or else of the first container's resources
// that name a GPU, here or to another system; "" where nothing does.
func (in *Input) requestField() string {
	name := request.SliceLabel(in.Pod)
	switch {
	case name == api.AnnotationContainers:
		return api.AnnotationField(name)
	case name != "":
		return api.LabelField(name)
	}
	for c := range podspec.EveryContainer(&in.Pod.Spec) {
		if request.RequestsGPU(c, in.Pools) {
			return containerField(&in.Pod.Spec, c.Name, "resources")
		}
	}
	for _, f := range spellings.Find(in.Pod, nil) {
		if f.Container != "" {
			return containerField(&in.Pod.Spec, f.Container, "resources")
		}
		for _, name := range f.Names {
			if _, there := in.Pod.Annotations[name]; there {
				return api.AnnotationField(name)
			}
		}
	}
	return ""
}

// fieldOfChange returns the field of a path for people (podedit.ChangedPaths): a container's is the container as a whole, since the parts
// of a list have names there.
func fieldOfChange(path string) (container, at string) {
	for _, list := range []string{"initContainers", "containers"} {
		if rest, ok := strings.CutPrefix(path, "spec."+list+"["); ok {
			container, _, _ = strings.Cut(rest, "]")
			return container, ""
		}
	}
	if strings.HasPrefix(path, "metadata.") {
		return "", path
	}
	return "", "spec"
}

// metadataField is the path of "label NAME" or "annotation NAME".
func metadataField(text string) string {
	kind, name, _ := strings.Cut(text, " ")
	return field.NewPath("metadata", kind+"s").Key(name).String()
}

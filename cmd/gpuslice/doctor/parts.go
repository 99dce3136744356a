package doctor

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// parts are the DaemonSets that are a part of NVIDIA's.
func parts(f *Facts, name string) []*appsv1.DaemonSet {
	var out []*appsv1.DaemonSet
	for _, d := range f.DaemonSets {
		if nvidia.PartOf(d) == name {
			out = append(out, d)
		}
	}
	return out
}

// variable is the value of an environment variable in a DaemonSet's containers.
func variable(d *appsv1.DaemonSet, name string) (value, container string, set bool) {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, e := range c.Env {
			if e.Name == name && e.ValueFrom == nil {
				return e.Value, c.Name, true
			}
		}
	}
	return "", "", false
}

// argument is the value of a flag of a DaemonSet's containers.
func argument(d *appsv1.DaemonSet, flag string) (string, bool) {
	for _, c := range d.Spec.Template.Spec.Containers {
		if value, ok := installed.Argument(c, flag); ok {
			return value, true
		}
	}
	return "", false
}

// image is that of the first container that one of the words names.
func image(d *appsv1.DaemonSet, words ...string) string {
	all := d.Spec.Template.Spec.Containers
	for _, c := range all {
		for _, w := range words {
			if strings.Contains(c.Image, w) || strings.Contains(c.Name, w) {
				return c.Image
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[0].Image
}

// daemonSet names one as kubectl does.
func daemonSet(d *appsv1.DaemonSet) string { return object("daemonset", d.Namespace, d.Name) }

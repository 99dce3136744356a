package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
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

// wholeGPU is the only resource that Cluster Autoscaler takes for a GPU (kubernetes/autoscaler #8095).
const wholeGPU corev1.ResourceName = "nvidia.com/gpu"

// sharedGPU is the resource of which the units are parts on a granular pool.
const sharedGPU = corev1.ResourceName("nvidia.com/gpu.shared")

// migResources begins the names of MIG instances that have names of their own.
const migResources = nvidia.ResourcePrefix + "mig-"

// offered are the resources of NVIDIA's that a node offers.
func offered(n *corev1.Node) (names []string) {
	for name, q := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), nvidia.ResourcePrefix) && !q.IsZero() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

func offersWholeGPUs(n *corev1.Node) bool { return slices.Contains(offered(n), string(wholeGPU)) }

// offersInstances reports whether a node offers MIG instances under names of their own.
func offersInstances(n *corev1.Node) bool {
	return slices.ContainsFunc(offered(n), func(name string) bool { return strings.HasPrefix(name, migResources) })
}

// offersParts reports whether a node offers parts of GPUs.
func offersParts(n *corev1.Node) bool {
	return slices.Contains(offered(n), string(sharedGPU)) || offersInstances(n)
}

// limitedByDriver reports whether a container of a pod carries a variable of the driver's own limit.
func limitedByDriver(p *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.Name == nvidia.VarMemoryLimit || e.Name == nvidia.VarMemoryRequest
		})
	})
}

// sharesGPU reports whether a pod that has not ended requests a replica of a GPU under the name of such.
func sharesGPU(p *corev1.Pod) bool {
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return !ended && slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		units := c.Resources.Limits[sharedGPU]
		return !units.IsZero()
	})
}

// held is a resource of GPUs that a pod holds on a node, or waits for: node "".
type held struct {
	node     string
	resource corev1.ResourceName
}

// addHeld keeps what a pod holds of GPUs until it ends.
func (f *Facts) addHeld(p *corev1.Pod) {
	if f.Held == nil {
		f.Held = map[held]bool{}
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for name, units := range c.Resources.Limits {
			if strings.HasPrefix(string(name), nvidia.ResourcePrefix) && !units.IsZero() {
				f.Held[held{p.Spec.NodeName, name}] = true
			}
		}
	}
}

// isAPIServer reports whether a pod is an API server, as kubeadm runs it.
func isAPIServer(p *corev1.Pod) bool {
	return p.Namespace == "kube-system" && (p.Labels["component"] == "kube-apiserver" || strings.HasPrefix(p.Name, "kube-apiserver-"))
}

// isWebhook reports whether a pod is a replica of the webhook.
func isWebhook(p *corev1.Pod, system string) bool {
	return p.Namespace == system && p.DeletionTimestamp == nil &&
		p.Labels["app.kubernetes.io/name"] == "gpuslice" && p.Labels["app.kubernetes.io/component"] == "webhook"
}

// Setting is one configuration of NVIDIA's software: a key of a ConfigMap, or a file.
type Setting struct {
	Object string // "configmap/gpu-operator/sharing"
	Key    string // "": the object itself
	Text   string
}

// field names a field of the setting as evidence.
func (s Setting) field(path string) string {
	if s.Key == "" {
		return path
	}
	if path == "" {
		return "data[" + s.Key + "]"
	}
	return "data[" + s.Key + "] " + path
}

// settings are the configurations of which is reports that they are meant.
func (f *Facts) settings(is func(string) bool) []Setting {
	all := slices.Clone(f.Settings)
	for _, m := range f.Configs {
		all = append(all, settingsOf(m)...)
	}
	all = slices.DeleteFunc(all, func(s Setting) bool { return !is(s.Text) })
	slices.SortFunc(all, func(a, b Setting) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Key, b.Key)) })
	return all
}

func settingsOf(m *corev1.ConfigMap) (all []Setting) {
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		all = append(all, Setting{Object: object("configmap", m.Namespace, m.Name), Key: key, Text: m.Data[key]})
	}
	return all
}

// isSetting reports whether a ConfigMap holds a configuration of NVIDIA's software.
func isSetting(m *corev1.ConfigMap) bool {
	return slices.ContainsFunc(settingsOf(m), func(s Setting) bool { return nvidia.IsPluginConfig(s.Text) || nvidia.IsMIGConfig(s.Text) })
}

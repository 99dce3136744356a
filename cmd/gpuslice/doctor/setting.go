package doctor

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

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

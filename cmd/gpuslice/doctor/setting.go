package doctor

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// Setting is one configuration of NVIDIA's software: a key of a ConfigMap, a file, or a part of the values of a Helm chart.
type Setting struct {
	Object string // "configmap/gpu-operator/sharing"
	Key    string // the name of the configuration; "": a file is all of it
	Place  string // in the object: "data[any]", "config.map.any"; "": all of it
	Text   string

	asFields bool     // where a chart wants a text
	strategy Evidence // the MIG strategy that values set beside it; Value "": none
}

// field names a field of the setting as evidence.
func (s Setting) field(path string) string { return strings.TrimSpace(s.Place + " " + path) }

// isDefaultsName reports whether the setting stands where the device plugin's chart wants the name of one.
func (s Setting) isDefaultsName() bool { return defaultsName.MatchString(s.Place) }

var defaultsName = regexp.MustCompile(`(^|[ .])config\.default$`)

// settings are the configurations of which is reports that they are meant.
func (f *Facts) settings(is func(string) bool) []Setting {
	all := slices.Clone(f.Settings)
	for _, m := range f.Configs {
		all = append(all, settingsOf(m)...)
	}
	for _, s := range all {
		for _, c := range nvidia.CarriedConfigs(s.Text) {
			all = append(all, Setting{s.Object, c.Key, s.field(c.Path), c.Text, c.AsFields,
				Evidence{s.Object, s.field(c.MIGStrategyAt), c.MIGStrategy}})
		}
	}
	all = slices.DeleteFunc(all, func(s Setting) bool { return !is(s.Text) })
	slices.SortFunc(all, func(a, b Setting) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Place, b.Place)) })
	return all
}

func settingsOf(m *corev1.ConfigMap) (all []Setting) {
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		all = append(all, Setting{Object: object("configmap", m.Namespace, m.Name), Key: key, Place: "data[" + key + "]", Text: m.Data[key]})
	}
	return all
}

// isSetting reports whether a ConfigMap holds a configuration of NVIDIA's software.
func isSetting(m *corev1.ConfigMap) bool {
	return slices.ContainsFunc(settingsOf(m), func(s Setting) bool { return isConfig(s.Text) })
}

// isConfig reports whether a text is, or carries, a configuration of NVIDIA's software.
func isConfig(text string) bool {
	return nvidia.IsPluginConfig(text) || nvidia.IsMIGConfig(text) || len(nvidia.CarriedConfigs(text)) > 0
}

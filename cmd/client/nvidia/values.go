package nvidia

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// CarriedConfig is a configuration that is a text in the values of a Helm chart.
type CarriedConfig struct {
	Path string // "config.map.label1"
	Key  string // the last part of Path: the name of the configuration
	Text string
}

// maxValues bounds a text in which configurations are looked for, in bytes.
const maxValues = 1 << 20

// CarriedConfigs are the configurations of NVIDIA's software that a text carries as the values of a Helm chart, by path: those of the device
// plugin's chart under config.map, and of the GPU Operator's under devicePlugin.config.data and migManager.config.data. A
// configuration carries none.
func CarriedConfigs(text string) (all []CarriedConfig) {
	if len(text) > maxValues || IsPluginConfig(text) || IsMIGConfig(text) ||
		!strings.Contains(text, "version") && !strings.Contains(text, "sharing") && !strings.Contains(text, "flags") {
		return nil
	}
	var values map[string]any
	if yaml.Unmarshal([]byte(text), &values) != nil {
		return nil
	}
	carried(values, "", "", &all)
	slices.SortFunc(all, func(a, b CarriedConfig) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

func carried(value any, path, key string, all *[]CarriedConfig) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			carried(below, strings.TrimPrefix(path+"."+name, "."), name, all)
		}
	case []any:
		for _, item := range v {
			carried(item, path+"[]", key, all)
		}
	case string:
		if IsPluginConfig(v) || IsMIGConfig(v) {
			*all = append(*all, CarriedConfig{path, key, v})
		}
	}
}

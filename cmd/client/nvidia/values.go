package nvidia

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// CarriedConfig is a configuration in the values of a Helm chart.
type CarriedConfig struct {
	Path string // "config.map.label1", "spec.values.config.map.label1"
	Key  string // the last part of Path: the name of the configuration
	Text string
	// AsFields is true where the values have fields in the place of a text, which the chart cannot use.
	AsFields bool
	// MIGStrategy is the MIG strategy that the values set beside the configuration, and MIGStrategyAt its path; "": none.
	MIGStrategy, MIGStrategyAt string
}

// Bounds on a text in which configurations are looked for.
const (
	maxValues  = 1 << 20 // bytes
	maxNesting = 3       // texts in texts: a configuration in the values of an Application in an "app of apps"
)

// CarriedConfigs are the configurations of NVIDIA's software that a text carries as the values of a Helm chart, by path: those of the device
// plugin's chart under config.map, of the GPU Operator's under devicePlugin.config.data and migManager.config.data, and both inside of
// objects that hold values, such as a HelmRelease of Flux or an Application of Argo CD. A configuration carries none.
func CarriedConfigs(text string) (all []CarriedConfig) {
	w := valuesWalk{}
	w.text(text, CarriedConfig{}, 0)
	slices.SortFunc(w.all, func(a, b CarriedConfig) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Text, b.Text)) })
	return w.all
}

type valuesWalk struct{ all []CarriedConfig }

// text walks a text that may be values. At is what is known of its place.
func (w *valuesWalk) text(text string, at CarriedConfig, nesting int) {
	if len(text) > maxValues || nesting > maxNesting || IsPluginConfig(text) || IsMIGConfig(text) ||
		!strings.Contains(text, "version") && !strings.Contains(text, "sharing") && !strings.Contains(text, "flags") {
		return
	}
	var values map[string]any
	if yaml.Unmarshal([]byte(text), &values) == nil {
		w.walk(values, at, nesting)
	}
}

func (w *valuesWalk) walk(value any, at CarriedConfig, nesting int) {
	switch v := value.(type) {
	case map[string]any:
		if isConfigFields(v) {
			if text, err := yaml.Marshal(v); err == nil {
				at.Text, at.AsFields = string(text), true
				w.all = append(w.all, at)
			}
			return
		}
		at = withMIGStrategy(v, at)
		for name, below := range v {
			under := at
			under.Path, under.Key = join(at.Path, name), name
			w.walk(below, under, nesting)
		}
	case []any:
		at.Path += "[]"
		for _, item := range v {
			w.walk(item, at, nesting)
		}
	case string:
		if at.Text = v; IsPluginConfig(v) || IsMIGConfig(v) {
			w.all = append(w.all, at)
		} else if strings.Contains(v, "\n") {
			w.text(v, at, nesting+1)
		}
	}
}

// isConfigFields reports whether values are a configuration of the device plugin or the MIG manager.
func isConfigFields(values map[string]any) bool {
	_, isText := values["version"].(string)
	_, shares := values["sharing"].(map[string]any)
	_, divides := values["mig-configs"].(map[string]any)
	return isText && (shares || divides)
}

// withMIGStrategy notes the MIG strategy that values set: of the device plugin's chart, or of the GPU Operator's.
func withMIGStrategy(values map[string]any, at CarriedConfig) CarriedConfig {
	ofOperator, _ := values["mig"].(map[string]any)
	for _, field := range []struct {
		path  string
		value any
	}{{"mig.strategy", ofOperator["strategy"]}, {"migStrategy", values["migStrategy"]}} {
		if strategy, ok := field.value.(string); ok && strategy != "" {
			at.MIGStrategy, at.MIGStrategyAt = strategy, join(at.Path, field.path)
		}
	}
	return at
}

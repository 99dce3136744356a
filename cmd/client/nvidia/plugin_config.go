package nvidia

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	plugin "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	"sigs.k8s.io/yaml"
)

// PluginConfig is a configuration of the device plugin.
type PluginConfig = plugin.Config

// maxConfig bounds a configuration that is parsed.
const maxConfig = 64 << 10

// pluginKey is a line that only a configuration of the plugin has.
var pluginKey = regexp.MustCompile(`(?m)^\s*(sharing|flags|timeSlicing|migStrategy|failRequestsGreaterThanOne|renameByDefault)\s*:`)

// pluginKeys are keys of which a configuration has one at its top, also where its indentation is lost. The values of a chart have others.
var pluginKeys = []string{"version", "flags", "sharing", "timeSlicing", "failRequestsGreaterThanOne", "renameByDefault"}

// IsPluginConfig reports whether a text is meant as a configuration of the device plugin, also if it is broken.
func IsPluginConfig(text string) bool {
	if len(text) > maxConfig || IsMIGConfig(text) {
		return false
	}
	isKey := pluginKey.MatchString(text)
	if !isKey && !strings.Contains(text, "version") {
		return false
	}
	var c map[string]any
	if yaml.Unmarshal([]byte(text), &c) != nil {
		return isKey
	}
	if !isKey {
		return len(c) == 1 && c["version"] != nil
	}
	return slices.ContainsFunc(pluginKeys, func(key string) bool { _, has := c[key]; return has })
}

// ParsePluginConfig reads a configuration as the device plugin does: an error is one with which it does not start. The
// plugin ignores unknown fields; they are returned beside the configuration, and beside an error too.
func ParsePluginConfig(text string) (*PluginConfig, []UnknownField, error) {
	var fields any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		return nil, nil, plainly(err)
	}
	read := readFields(reflect.TypeFor[PluginConfig](), fields)
	var c PluginConfig
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && len(read.wrong) > 0 {
			err = errors.New(strings.Join(read.wrong, "; "))
		}
		return nil, read.unknown, plainly(err)
	}
	if c.Version != "" && c.Version != plugin.Version {
		return nil, read.unknown, fmt.Errorf("unknown version: %v", c.Version)
	}
	return &c, read.unknown, nil
}

// plainly returns an error of the YAML library without the steps that it names.
func plainly(err error) error {
	text := err.Error()
	for _, step := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
		text = strings.TrimPrefix(text, step)
	}
	return errors.New(text)
}

// MIGStrategy is the MIG strategy of a configuration; "": it sets none.
func MIGStrategy(c *PluginConfig) string {
	if c.Flags.MigStrategy == nil {
		return ""
	}
	return *c.Flags.MigStrategy
}

package nvidia

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/mig"
)

// OperatorMIGConfig is the ConfigMap of the MIG manager that the GPU Operator creates, and restores,
// where its ClusterPolicy names no other.
const OperatorMIGConfig = "default-mig-parted-config"

// MIGConfig is a configuration of the MIG manager: layouts by name. Its own parser, mig-parted's, cannot be used: it
// links NVML, and with it C, into the command line. The rules below are mig-parted's.
type MIGConfig struct {
	Version string               `json:"version"`
	Layouts map[string]MIGLayout `json:"mig-configs"`
}

// MIGLayout is one layout: an action for each group of devices.
type MIGLayout []MIGDevices

// MIGDevices is a layout's action on some devices.
type MIGDevices struct {
	Filter   json.RawMessage `json:"device-filter"`
	Devices  json.RawMessage `json:"devices"`
	Enabled  *bool           `json:"mig-enabled"`
	Profiles map[string]int  `json:"mig-devices"`
}

var migKey = regexp.MustCompile(`(?m)^mig-configs\s*:`)

// IsMIGConfig reports whether a text is meant as a configuration of the MIG manager.
func IsMIGConfig(text string) bool { return len(text) <= maxConfig && migKey.MatchString(text) }

// ParseMIGConfig reads a configuration as the MIG manager does: an error is one with which it partitions nothing.
func ParseMIGConfig(text string) (*MIGConfig, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, plainly(err)
	}
	var fields any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	read := readFields(reflect.TypeFor[MIGConfig](), fields)
	for _, u := range read.unknown {
		read.wrong = append(read.wrong, u.Path+": "+u.Advice())
	}
	if len(read.wrong) > 0 {
		return nil, errors.New(strings.Join(read.wrong, "; "))
	}
	var c MIGConfig
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, plainly(err)
	}
	if c.Version != "v1" {
		return nil, fmt.Errorf("unknown version: %v", c.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Layouts)) {
		if err := c.Layouts[name].check(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return &c, nil
}

func (l MIGLayout) check() error {
	if len(l) == 0 {
		return errors.New("at least one entry is required")
	}
	for _, d := range l {
		if err := d.check(); err != nil {
			return err
		}
	}
	return nil
}

func (d MIGDevices) check() error {
	var indices []int
	var filter []string
	switch {
	case d.Filter != nil && len(d.filter()) == 0 && string(d.Filter) != `""` && json.Unmarshal(d.Filter, &filter) != nil:
		return fmt.Errorf("device-filter: %s is neither a PCI device nor a list of them", d.Filter)
	case d.Devices == nil:
		return errors.New("missing required field: devices")
	case string(d.Devices) != `"all"` && json.Unmarshal(d.Devices, &indices) != nil:
		return fmt.Errorf("devices: %s is neither all nor a list of indices", d.Devices)
	case d.Enabled == nil:
		return errors.New("missing required field: mig-enabled")
	case *d.Enabled && d.Profiles == nil:
		return errors.New("missing required field mig-devices where mig-enabled is true")
	case !*d.Enabled && len(d.Profiles) > 0:
		return errors.New("mig-devices where mig-enabled is false")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Profiles)) {
		if p, ok := mig.Parse(name); !ok || strings.HasPrefix(p.Attributes, ".") { // as resources are named
			return fmt.Errorf("mig-devices: %q is not a MIG profile", name)
		}
	}
	return nil
}

// Mixed reports whether a layout partitions a device into instances of several profiles, or some devices unlike others.
// Entries with a filter are for devices of different models: each is taken alone.
func (l MIGLayout) Mixed() bool {
	var first *MIGDevices
	for i := range l {
		d := &l[i]
		if len(d.Profiles) > 1 {
			return true
		}
		if d.Filter != nil {
			continue
		}
		if first != nil && !maps.Equal(first.Profiles, d.Profiles) {
			return true
		}
		first = d
	}
	return false
}

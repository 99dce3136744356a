package nvidia

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestExceeds has layouts as NVIDIA's guide lists them for a card, and some that it has no room for.
func TestExceeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		product  string
		memory   int64
		profiles map[string]int
		want     string
	}{
		{"NVIDIA-A100-SXM4-40GB", 40960, map[string]int{"3g.20gb": 2, "2g.10gb": 1}, "8 compute slices, and the GPU has 7"},
		{"NVIDIA-A100-SXM4-40GB", 40960, map[string]int{"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}, ""},
		{"NVIDIA-A100-SXM4-40GB-SHARED", 40536, map[string]int{"4g.20gb": 1, "3g.20gb": 1}, ""},
		{"NVIDIA-A100-SXM4-80GB", 81920, map[string]int{"1g.5gb": 7}, "no profile 1g.5gb"},
		{"NVIDIA-A100-SXM4-80GB", 81920, map[string]int{"1g.20gb": 4}, ""},
		{"NVIDIA-A100-SXM4-80GB", 81920, map[string]int{"1g.20gb": 5}, "10 parts of the GPU's memory, and there are 8"},
		{"NVIDIA-A100-SXM4-80GB", 81920, map[string]int{"1c.3g.40gb": 6}, ""},
		{"NVIDIA-A100-SXM4-80GB", 81920, map[string]int{"1c.3g.40gb": 7}, "9 compute slices"},
		{"NVIDIA-A100-SXM4-80GB", 81920, map[string]int{"1g.10gb+me": 2, "1g.10gb": 1}, "media extensions"},
		{"NVIDIA-A100-SXM4-80GB", 81920, map[string]int{"1g.10gb+me": 1, "1g.10gb": 6}, ""},
		{"NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 9728, map[string]int{"3g.20gb": 2}, "no profile 3g.20gb"},
		{"NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 9728, map[string]int{"3g.40gb": 2}, ""},
		{"NVIDIA-GH200-480GB-MIG-1g.12gb", 11000, map[string]int{"1g.12gb": 7}, ""},
		{"NVIDIA-GH200-480GB", 97871, map[string]int{"1g.12gb": 7}, ""},
		{"NVIDIA-H100-NVL", 95830, map[string]int{"1g.12gb": 7}, ""},
		{"NVIDIA-H100-NVL", 95830, map[string]int{"1g.10gb": 7}, "no profile 1g.10gb"},
		{"NVIDIA-H100-80GB-HBM3", 81559, map[string]int{"7g.80gb": 1}, ""},
		{"NVIDIA-H200", 143771, map[string]int{"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}, ""},
		{"NVIDIA-H200", 143771, map[string]int{"1g.18gb": 1, "1g.35gb": 1, "2g.35gb": 1, "3g.71gb": 1}, "9 parts of the GPU's memory"},
		{"NVIDIA-B200", 183359, map[string]int{"1g.23gb": 7}, ""},
		{"NVIDIA-B200", 183359, map[string]int{"1g.23gb": 8}, "8 compute slices"},
		{"NVIDIA-A30", 24576, map[string]int{"1g.6gb": 4}, ""},
		{"NVIDIA-A30", 24576, map[string]int{"2g.12gb": 2, "1g.6gb": 1}, "5 compute slices, and the GPU has 4"},
		{"NVIDIA-A30", 24576, map[string]int{"3g.20gb": 1}, "no profile 3g.20gb"},
		{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, map[string]int{"1g.24gb": 3, "1g.24gb+me.all": 1}, ""},
		{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, map[string]int{"1g.24gb": 7}, "7 compute slices, and the GPU has 4"},
		{"NVIDIA-A100-SXM4-80GB", 81920, map[string]int{"1g.10gb": 1 << 62}, "compute slices"},
	} {
		card, known := MIGCardOf(c.product, c.memory)
		got := MIGDevices{Profiles: c.profiles}.Exceeds(card)
		if !known || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %v: %q, want %q", c.product, c.profiles, got, c.want)
		}
	}
	for _, other := range []string{"", "NVIDIA-L4", "Tesla-V100-SXM2-32GB", "NVIDIA-RTX-6000-Ada-Generation"} {
		if card, known := MIGCardOf(other, 24576); known {
			t.Errorf("%q is taken for %+v", other, card)
		}
	}
}

// TestExceedsAll: a layout that no node selects is judged by the cards that its profiles' names tell.
func TestExceedsAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filter   string
		profiles map[string]int
		want     string
	}{
		{"", map[string]int{}, ""},
		{"", map[string]int{"1g.5gb": 7}, ""},
		{"", map[string]int{"1g.6gb": 4}, ""},
		{"", map[string]int{"1g.24gb": 4}, ""},
		{"", map[string]int{"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}, ""},
		{"", map[string]int{"1g.12gb": 1, "3g.47gb": 1}, ""},
		{"", map[string]int{"3g.20gb": 2, "2g.10gb": 1}, "8 compute slices"},
		{"", map[string]int{"1g.5gb": 1, "3g.40gb": 1}, "together"},
		{"", map[string]int{"1g.6gb": 5}, "5 compute slices, and the GPU has 4"},
		{"", map[string]int{"1g.6gb": 3, "2g.12gb": 1}, "5 compute slices, and the GPU has 4"},
		{"", map[string]int{"1g.24gb": 5}, "5 compute slices, and the GPU has 4"},
		{"", map[string]int{"1g.35gb": 7}, ""},
		{"", map[string]int{"1g.23gb": 2, "2g.47gb": 1, "3g.93gb": 1}, ""},
		{`["0x20B710DE"]`, map[string]int{"1g.6gb": 2, "2g.12gb": 2}, "the A30 with 24 GB: its instances have 6 compute slices"},
		{`["0x20B710DE"]`, map[string]int{"1g.6gb": 2, "2g.12gb": 1}, ""},
		{`"0x2BB510DE"`, map[string]int{"2g.48gb": 3}, "6 compute slices, and the GPU has 4"},
		{`["0x20B210DE", "0x20B010DE"]`, map[string]int{"1g.10gb": 7}, "0x20B010DE is the A100 with 40 GB: its instances have 14 parts"},
		{`["0x123410DE"]`, map[string]int{"1g.10gb": 7}, ""},
		{"", map[string]int{"5g.40gb": 1}, "no profile 5g.40gb"},
	} {
		got := MIGDevices{Filter: json.RawMessage(c.filter), Profiles: c.profiles}.ExceedsAll()
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %v: %q, want %q", c.filter, c.profiles, got, c.want)
		}
	}
}

// TestCarriedConfigs: what a chart's values carry is found, and the values are no configuration themselves.
func TestCarriedConfigs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, paths string }{
		{"config:\n  map:\n    a: |-\n      version: v1\n      sharing: {}\n    b: |-\n      version: v1\n      flags: {}\n",
			"config.map.a config.map.b"},
		{"migStrategy: mixed\nconfig:\n  map:\n    a: |-\n      version: v1\n      flags: {}\n", "config.map.a"},
		{"devicePlugin:\n  config:\n    data:\n      any: |-\n        version: v1\n        sharing: {}\n" +
			"migManager:\n  config:\n    data:\n      config.yaml: |-\n        version: v1\n        mig-configs: {}\n",
			"devicePlugin.config.data.any migManager.config.data.config.yaml"},
		{"version: v1\nsharing: {}\n", ""},
		{"log: {level: debug}\n", ""},
		{"config: [a\nsharing: b\n", ""},
	} {
		got := ""
		for _, carried := range CarriedConfigs(c.text) {
			got += " " + carried.Path
		}
		if strings.TrimPrefix(got, " ") != c.paths {
			t.Errorf("%q: %q, want %q", c.text, got, c.paths)
		}
		if c.paths != "" && IsPluginConfig(c.text) {
			t.Errorf("%q is taken for a configuration of the plugin", c.text)
		}
	}
}

package nvidia

import (
	"fmt"
	"strings"
	"testing"
)

// TestParsePluginConfig has configurations as guides print them, each with what becomes of it in the plugin.
func TestParsePluginConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, unknown, problem string }{
		{"four replicas", "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n", "", ""},
		{"a MIG strategy alone", "version: v1\nflags:\n  migStrategy: mixed\n", "", ""},
		{"no version", "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}", "", ""},
		{"exclusive nodes by one replica",
			"version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}", "", "must be >= 2"},
		{"replicas without resources", "version: v1\nsharing: {timeSlicing: {replicas: 8}}",
			"sharing.timeSlicing.replicas -> sharing.timeSlicing.resources[].replicas", "no resources specified"},
		{"shares", "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, shares: 1}]}}",
			"sharing.mps.resources[].shares -> sharing.mps.resources[].replicas", "no replicas specified"},
		{"a flag inside of sharing",
			"version: v1\nsharing: {timeSlicing: {failOnInitError: false, resources: [{name: nvidia.com/gpu, replicas: 2}]}}",
			"sharing.timeSlicing.failOnInitError -> flags.failOnInitError", ""},
		{"a flag at the top", "version: v1\nmigStrategy: mixed\n", "migStrategy -> flags.migStrategy", ""},
		{"a field of nothing", "version: v1\nsharing: {timeSlicing: {cudaProc: 4, resources: [{name: nvidia.com/gpu, replicas: 2}]}}",
			"sharing.timeSlicing.cudaProc -> ", ""},
		{"MPS with devices", "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 8, devices: all}]}}", "", ""},
		{"no name", "version: v1\nsharing: {timeSlicing: {resources: [{replicas: 4}]}}", "", "no resource name specified"},
		{"another version", "version: v2\nflags: {}\n", "", "unknown version: v2"},
		{"lost indentation", "version: v1\nsharing:\ntimeSlicing:\nresources:\n- name: nvidia.com/gpu\nreplicas: 4\n",
			"replicas -> sharing.timeSlicing.resources[].replicas, timeSlicing -> sharing.timeSlicing",
			`resources: [{"name":"nvidia.com/gpu"}] is not a mapping of fields`},
		{"a slip in a strategy", "version: v1\nsharing: {timeSlicng: {resources: [{name: nvidia.com/gpu, replica: 4}]}}",
			"sharing.timeSlicng -> sharing.timeSlicing, sharing.timeSlicng.resources[].replica -> sharing.timeSlicing.resources[].replicas", ""},
		{"a slip in replicas", "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replica: 4}]}}",
			"sharing.timeSlicing.resources[].replica -> sharing.timeSlicing.resources[].replicas", "no replicas specified"},
		{"a slip in renaming", "version: v1\nsharing: {mps: {renameByDefualt: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
			"sharing.mps.renameByDefualt -> sharing.mps.renameByDefault", ""},
		{"a slip in a flag", "version: v1\nflags: {migStratgey: mixed}", "flags.migStratgey -> flags.migStrategy", ""},
		{"a slip at the top", "version: v1\nshraing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\nflags: {}\n", "shraing -> sharing", ""},
		{"another case that the plugin reads", "version: v1\nsharing: {timeslicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}", "", ""},
		{"another case that the plugin does not read",
			"version: v1\nsharing: {timeSlicing: {renamebydefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
			"sharing.timeSlicing.renamebydefault -> sharing.timeSlicing.renameByDefault", ""},
		{"a number as a text", "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: '4'}]}}",
			"", `sharing.timeSlicing.resources[].replicas: "4" is not a whole number`},
		{"a boolean as a text", "version: v1\nsharing: {mps: {renameByDefault: 'yes', resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
			"", `sharing.mps.renameByDefault: "yes" is not true or false`},
		{"a mapping in the place of a list", "version: v1\nsharing: {timeSlicing: {resources: {name: nvidia.com/gpu, replicas: 4}}}",
			"", "sharing.timeSlicing.resources: {"},
		{"half of a replica", "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2.5}]}}",
			"", "sharing.timeSlicing.resources[].replicas: 2.5 is not a whole number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !IsPluginConfig(c.text) {
				t.Error("it is not taken for a configuration of the plugin")
			}
			_, unknown, err := ParsePluginConfig(c.text)
			var got []string
			for _, u := range unknown {
				got = append(got, u.Path+" -> "+u.Correct)
			}
			if strings.Join(got, ", ") != c.unknown {
				t.Errorf("unknown %q, want %q", got, c.unknown)
			}
			if err != nil && (strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "JSON")) {
				t.Errorf("%q is in the words of Go", err)
			}
			if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v, want %q", err, c.problem)
			}
		})
	}
	for _, other := range []string{"", "not: [a config", "log: {level: debug}\n", "version: v1\nmig-configs: {}\n"} {
		if IsPluginConfig(other) {
			t.Errorf("%q is taken for a configuration of the plugin", other)
		}
	}
}

// TestParseMIGConfig has what NVIDIA's default configuration holds, and what mig-parted denies.
func TestParseMIGConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, layout string
		mixed        bool
		problem      string
	}{
		{"disabled", "[{devices: all, mig-enabled: false}]", false, ""},
		{"enabled alone", "[{devices: all, mig-enabled: true, mig-devices: {}}]", false, ""},
		{"one profile", "[{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]", false, ""},
		{"one profile for each model", `[{device-filter: ["0x233010DE"], devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}, {device-filter: "0x20B010DE", devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]`, false, ""},
		{"balanced", "[{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}}]", true, ""},
		{"devices unlike others", "[{devices: [0], mig-enabled: false}, {devices: [1], mig-enabled: true, mig-devices: {1g.10gb: 7}}]", true, ""},
		{"media extensions",
			"[{devices: all, mig-enabled: true, mig-devices: {1g.5gb+me: 1, 1g.24gb-me: 1, 1c.2g.10gb: 1, 1g.24gb+me.all: 1}}]", true, ""},
		{"an empty layout", "[]", false, "at least one entry"},
		{"no devices", "[{mig-enabled: false}]", false, "missing required field: devices"},
		{"some other devices", "[{devices: some, mig-enabled: false}]", false, "neither all nor a list"},
		{"not enabled", "[{devices: all, mig-devices: {1g.10gb: 7}}]", false, "missing required field: mig-enabled"},
		{"enabled without instances", "[{devices: all, mig-enabled: true}]", false, "missing required field mig-devices"},
		{"disabled with instances", "[{devices: all, mig-enabled: false, mig-devices: {1g.10gb: 7}}]", false, "where mig-enabled is false"},
		{"no profile", "[{devices: all, mig-enabled: true, mig-devices: {small: 7}}]", false, "not a MIG profile"},
		{"an unknown field", "[{devices: all, mig-enabled: false, comment: x}]", false, "mig-configs.a[].comment: unknown"},
		{"a slip", "[{devices: all, mig-enabled: true, mig-device: {1g.10gb: 7}}]", false, "mig-configs.a[].mig-device: unknown here, write mig-configs.a[].mig-devices"},
		{"a number as a text", "[{devices: all, mig-enabled: true, mig-devices: {1g.10gb: '7'}}]", false, `mig-configs.a[].mig-devices.1g.10gb: "7" is not a whole number`},
		{"a boolean as a text", "[{devices: all, mig-enabled: 'true'}]", false, `mig-configs.a[].mig-enabled: "true" is not true or false`},
		{"a device filter that is none", "[{device-filter: 5, devices: all, mig-enabled: false}]", false, "device-filter: 5 is neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf("version: v1\nmig-configs:\n  a: %s\n", c.layout)
			if !IsMIGConfig(text) {
				t.Error("it is not taken for a configuration of the MIG manager")
			}
			config, err := ParseMIGConfig(text)
			if err != nil && (strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "JSON")) {
				t.Errorf("%q is in the words of Go", err)
			}
			if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Fatalf("%v, want %q", err, c.problem)
			}
			if err == nil && config.Layouts["a"].Mixed() != c.mixed {
				t.Errorf("mixed %t", !c.mixed)
			}
		})
	}
}

func TestParseRelease(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"v1.20.1": "[1 20 1] true", "nvcr.io/nvidia/k8s/container-toolkit:v1.18.0-ubuntu20.04": "[1 18 0] true", "580.95.05": "[580 95 5] true",
		"615.10": "[615 10 0] true", "latest": "[0 0 0] false", "host:5000/toolkit": "[0 0 0] false",
		"a:v1.2.3@sha256:ff": "[1 2 3] true", "": "[0 0 0] false",
	} {
		r, ok := ParseRelease(text)
		if got := fmt.Sprint(r, ok); ok != strings.HasSuffix(want, "true") || ok && got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if a := (Release{1, 20, 1}); !(Release{1, 20, 0}).Before(a) || a.Before(a) || (Release{2, 0, 0}).Before(a) {
		t.Error("the order of releases is another")
	}
}

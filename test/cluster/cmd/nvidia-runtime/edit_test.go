package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	s := settings{Mounts: []mount{{Source: "/fake/lib.so", Destination: "/lib/lib.so"},
		{Source: "/state", Destination: "/state", Writable: true}},
		Env: []string{"FAKE=1"}}
	const (
		plain = `{"process":{"env":["A=b"%s],"oomScoreAdj":1000},"mounts":[],"linux":{"resources":{"memory":{"limit":9223372036854771712}}}}`
		given = `{"process":{"env":["A=b"%s,"FAKE=1"],"oomScoreAdj":1000},"mounts":[` +
			`{"destination":"/lib/lib.so","source":"/fake/lib.so","type":"bind","options":["rbind","ro","nosuid","nodev"]},` +
			`{"destination":"/state","source":"/state","type":"bind","options":["rbind","rw","nosuid","nodev"]}` +
			`],"linux":{"resources":{"memory":{"limit":9223372036854771712}}}}`
	)
	tests := []struct {
		name, env string
		gets      bool
	}{
		{"a container that names a device gets everything", `,"NVIDIA_VISIBLE_DEVICES=GPU-1"`, true},
		{"all devices count as named", `,"NVIDIA_VISIBLE_DEVICES=all","NVIDIA_DRIVER_CAPABILITIES=compute,utility"`, true},
		{"without the variable it gets nothing", ``, false},
		{"void is nothing", `,"NVIDIA_VISIBLE_DEVICES=void"`, false},
		{"none is nothing", `,"NVIDIA_VISIBLE_DEVICES=none"`, false},
		{"an empty value is nothing", `,"NVIDIA_VISIBLE_DEVICES="`, false},
		{"the last of two values counts", `,"NVIDIA_VISIBLE_DEVICES=all","NVIDIA_VISIBLE_DEVICES=void"`, false},
		{"without the capability utility there is no management library",
			`,"NVIDIA_VISIBLE_DEVICES=all","NVIDIA_DRIVER_CAPABILITIES=compute"`, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			want := fill(plain, tc.env)
			if tc.gets {
				want = fill(given, tc.env)
			}
			got, err := edit([]byte(fill(plain, tc.env)), s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, want), decode(t, string(got))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEditByCDI(t *testing.T) {
	t.Parallel()
	s := settings{Mounts: []mount{{Source: "/fake/lib.so", Destination: "/lib/lib.so", Driver: true},
		{Source: "/state", Destination: "/state"}},
		Env: []string{"FAKE=1"}}
	const container = `{"process":{"env":["NVIDIA_VISIBLE_DEVICES=void"%s]},"mounts":[%s],"linux":{"devices":[{"path":"/dev/%s"},{"path":"/dev/nvidiactl"}]}}`
	const state = `{"destination":"/state","source":"/state","type":"bind","options":["rbind","ro","nosuid","nodev"]}`
	for name, tt := range map[string]struct{ node, env, mounts string }{
		"a container with a GPU's node gets all but the driver": {"nvidia1", `,"FAKE=1","GPUSLICE_FAKE_GPU_VISIBLE=1"`, state},
		"one with other nodes gets nothing":                     {"nvidia-uvm", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := edit(fmt.Appendf(nil, container, "", "", tt.node), s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, fmt.Sprintf(container, tt.env, tt.mounts, tt.node)), decode(t, string(got))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// fill puts further variables into a container configuration.
func fill(config, env string) string { return fmt.Sprintf(config, env) }

// decode keeps numbers as they are written, so that a rounded one shows.
func decode(t *testing.T, text string) any {
	t.Helper()
	var v any
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	if err := in.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCreates(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		args   []string
		bundle string
		want   bool
	}{
		{"create names its bundle", []string{"--root", "/r", "--log-format", "json", "create", "--bundle", "/b", "--pid-file", "/p", "id"},
			"/b", true},
		{"the bundle may stand in one word", []string{"run", "--bundle=/b", "id"}, "/b", true},
		{"without one it is the working folder", []string{"create", "id"}, ".", true},
		{"other commands make nothing", []string{"--root", "/r", "kill", "id", "9"}, ".", false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bundle, ok := creates(tc.args)
			if bundle != tc.bundle || ok != tc.want {
				t.Errorf("creates() = %q, %v; want %q, %v", bundle, ok, tc.bundle, tc.want)
			}
		})
	}
}

func TestMountPerNamespace(t *testing.T) {
	t.Parallel()
	t.Run("a mount may differ from namespace to namespace", func(t *testing.T) {
		t.Parallel()
		s := settings{Mounts: []mount{{Source: "/gpus/{namespace}/one", Destination: "/gpu"}}}
		got, err := edit(
			[]byte(`{"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"annotations":{"io.kubernetes.cri.sandbox-namespace":"team-a"}}`), s)
		if err != nil {
			t.Fatal(err)
		}
		if want := `"source":"/gpus/team-a/one"`; !strings.Contains(string(got), want) {
			t.Errorf("%s does not hold %s", got, want)
		}
	})
}

package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/component"
)

// settings runs the command with a run that keeps its settings.
func settings(t *testing.T, env map[string]string, args ...string) (options, int, string) {
	t.Helper()
	var got options
	var stderr bytes.Buffer
	code := execute(t.Context(), args, io.Discard, &stderr, func(name string) (string, bool) { v, set := env[name]; return v, set },
		func(_ context.Context, o options, _ io.Writer) error { got = o; return nil })
	return got, code, stderr.String()
}

func TestOptions(t *testing.T) {
	defaults := options{node: "gpu-1", namespace: "gpuslice-system", listen: ":8080", procDir: "/proc",
		mpsDirectories: []string{"/run/nvidia/mps"}, devicePlugins: "/var/lib/kubelet/device-plugins", logLevel: "info"}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want func(*options)
	}{
		"a flag": {nil, []string{"--node", "gpu-1"}, func(*options) {}},
		"the environment": {map[string]string{"GPUSLICE_NODE": "gpu-1", "GPUSLICE_DRY_RUN": "true"},
			nil, func(o *options) { o.dryRun = true }},
		"a flag over the environment": {map[string]string{"GPUSLICE_NODE": "gpu-2"}, []string{"--node", "gpu-1"}, func(*options) {}},
		"a list in the environment": {map[string]string{"GPUSLICE_NODE": "gpu-1", "GPUSLICE_MPS_DIRECTORIES": "/a,/b"}, nil,
			func(o *options) { o.mpsDirectories = []string{"/a", "/b"} }},
	} {
		t.Run(name, func(t *testing.T) {
			want := defaults
			c.want(&want)
			got, code, stderr := settings(t, c.env, c.args...)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{})); diff != "" || code != component.ExitOK {
				t.Errorf("exit %d %s (-want +got)\n%s", code, stderr, diff)
			}
		})
	}
}

func TestOptionsDenied(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"no node":                          {nil, nil, `node: ""`},
		"a node that is none":              {nil, []string{"--node", "GPU 1"}, `node: "GPU 1"`},
		"a node whose name is too long":    {nil, []string{"--node", strings.Repeat("a.", 120) + "a"}, "the Lease"},
		"an argument":                      {nil, []string{"--node", "a", "run"}, `"run" is not a flag`},
		"an unknown flag":                  {nil, []string{"--nod", "a"}, "unknown flag"},
		"a wrong level":                    {nil, []string{"--node", "a", "--log-level", "loud"}, `log-level: "loud"`},
		"a wrong address":                  {nil, []string{"--node", "a", "--listen", "8080"}, `listen: "8080"`},
		"a relative directory":             {nil, []string{"--node", "a", "--mps-directories", "mps"}, `mps-directories: "mps"`},
		"a relative folder of plugins":     {nil, []string{"--node", "a", "--device-plugins", "plugins"}, `device-plugins: "plugins"`},
		"a wrong value in the environment": {map[string]string{"GPUSLICE_DRY_RUN": "maybe"}, []string{"--node", "a"}, "GPUSLICE_DRY_RUN"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, code, stderr := settings(t, c.env, c.args...); code != component.ExitUsage || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d: %s", code, stderr)
			}
		})
	}
}

package main

import (
	"strings"
	"testing"
)

func TestSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, program string
		variables     map[string]string
		want          string
	}{
		{"a server holds memory for as long as it runs", "vllm serve m", map[string]string{"NVIDIA_VISIBLE_DEVICES": "GPU-1"},
			"hold 1GiB wait 8760h"},
		{"a container without a GPU holds none", "nginx", nil, "wait 8760h"},
		{"nor does one whose devices are hidden", "nginx", map[string]string{"NVIDIA_VISIBLE_DEVICES": "void"}, "wait 8760h"},
		{"a Job ends", "python train.py", map[string]string{"NVIDIA_VISIBLE_DEVICES": "0", "STANDIN_ENDS": "job"}, "hold 1GiB wait 30s leave"},
		{"an init container ends", "wget", map[string]string{"STANDIN_ENDS": "init"}, "wait 1s leave"},
		{"sleep ends when it says", "/bin/sleep 3600", map[string]string{"NVIDIA_VISIBLE_DEVICES": "all", "STANDIN_ENDS": "job"},
			"hold 1GiB wait 3600s leave"},
		{"sleep without an end has none", "sleep infinity", nil, "wait 8760h"},
		{"the author has the last word", "sleep 5", map[string]string{"NVIDIA_VISIBLE_DEVICES": "0", "SIMULATE": "hold 12GiB"}, "hold 12GiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(steps(strings.Fields(tt.program), func(name string) string { return tt.variables[name] }), " ")
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

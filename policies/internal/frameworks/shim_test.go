package frameworks

import (
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/policies/internal/shim"
)

func TestShim(t *testing.T) {
	t.Parallel()
	on := map[string]Switch{"pytorch": {Shim: shim.On}}
	python := []string{"python", "train.py"}
	const image = "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime"
	for _, tt := range []struct {
		name   string
		in     sample
		change func(*Input)
		way    string
		cap    bool
		why    string // is part of why nothing is capped
	}{
		{name: "a command", in: sample{image: image, command: python, switches: on}, way: shim.ByCommand, cap: true},
		{name: "a variable", in: sample{image: image, env: "PYTHONPATH=/app", switches: on}, way: shim.ByVariable, cap: true},
		{name: "both", in: sample{image: image, command: python, env: "PYTHONPATH=/app", switches: on}, way: shim.ByVariable, cap: true},
		{name: "a variable that is put together", in: sample{image: image, env: "PYTHONPATH=$(A)/app", switches: on},
			why: "known at run time only; write the container's command"},
		{name: "a variable that is put together, and a command",
			in: sample{image: image, command: python, env: "PYTHONPATH=$(A)/app", switches: on}, way: shim.ByCommand, cap: true},
		{name: "variables of a ConfigMap", in: sample{image: image, envFrom: true, switches: on},
			why: "known at run time only; write the container's command"},
		{name: "neither", in: sample{image: image, args: []string{"train.py"}, switches: on},
			why: "the image may set PYTHONPATH; write the container's command"},
		{name: "switched off", in: sample{image: image, command: python, switches: map[string]Switch{"pytorch": {Shim: shim.Off}}},
			why: "before 2.10 reads no memory fraction"},
		{name: "by default a variable", in: sample{image: image, command: python, env: "PYTHONPATH=/app"}, way: shim.ByVariable, cap: true},
		{name: "by default no command", in: sample{image: image, command: python},
			why: "reads no memory fraction from its environment; write PYTHONPATH in the container's env"},
		{name: "by default nothing that cannot help", in: sample{image: image, command: []string{"python", "-I"}},
			why: "before 2.10 reads no memory fraction from its environment"},
		{name: "the first release", in: sample{image: "pytorch/pytorch:1.8.0-cuda11.1-cudnn8-runtime", command: python, switches: on},
			way: shim.ByCommand, cap: true},
		{name: "an older one", in: sample{image: "pytorch/pytorch:1.7.1-cuda11.0-cudnn8-runtime", command: python, switches: on},
			why: "before 1.10 reads no allocator settings"},
		{name: "one that is not known", in: sample{image: "corp/app:1", command: []string{"torchrun"}, switches: on},
			way: shim.ByCommand, why: "the shim caps PyTorch from 1.8 on, and the version is not known"},
		{name: "a pod that cannot bring it", in: sample{image: image, command: python, switches: on},
			change: func(in *Input) { in.NoShim = "it has no guard" }, why: "it has no guard"},
		{name: "several GPUs", in: sample{image: image, command: python, switches: on},
			change: func(in *Input) { in.GPUs = 2 }, why: "the container has several"},
		{name: "no caching", in: sample{image: image, command: python, env: "PYTORCH_NO_CUDA_MEMORY_CACHING=1", switches: on},
			why: "past the caching allocator"},
		{name: "a slice of the whole device", in: sample{image: image, command: python, slice: 64 * giB, switches: on},
			why: "the slice is as large as the device"},
		{name: "a total that is not known", in: sample{image: image, command: python, view: ViewUnknown, switches: on},
			way: shim.ByCommand, cap: true},
		{name: "a slice below the context", in: sample{image: image, command: python, slice: 256 << 20, switches: on},
			why: "not more than the context allowance"},
		{name: "another server above", in: sample{image: "vllm/vllm-openai:v0.6.0", command: []string{"vllm", "serve"}, switches: on},
			why: "takes 90-92 %"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := tt.in.input()
			if tt.change != nil {
				tt.change(&in)
			}
			got := For(in)
			if got.Shim != tt.way || got.Capped != tt.cap || !strings.Contains(got.NotCapped, tt.why) {
				t.Errorf("shim %q, capped %v, not capped because %q; want %q, %v, %q", got.Shim, got.Capped, got.NotCapped, tt.way, tt.cap, tt.why)
			}
			if sets := strings.Contains(text(got.Env), "GPUSLICE_ALLOCATOR_BYTES="); sets != (tt.way != "") {
				t.Errorf("variables %v", got.Env)
			}
		})
	}
}

func text(env []Env) (out string) {
	for _, e := range env {
		out += e.Name + "=" + e.Value + " "
	}
	return out
}

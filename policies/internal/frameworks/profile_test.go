package frameworks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const (
	giB = int64(1) << 30
	// The memory that CUDA reports on a 16 GB T4, which is less than its label says.
	t4 = int64(15655829504)
)

// sample is a container in a slice of 2 GiB on a shared device of 16 GiB, unless it says otherwise.
type sample struct {
	image     string
	command   []string
	args      []string
	env       string // "NAME=value NAME=value"
	envFrom   bool
	framework string
	view      View
	total     int64
	slice     int64
	limit     int64
	processes int
	alone     bool
	switches  map[string]Switch
}

func (c sample) input() Input {
	container := &corev1.Container{Name: "app", Image: c.image, Command: c.command, Args: c.args}
	for _, pair := range strings.Fields(c.env) {
		name, value, _ := strings.Cut(pair, "=")
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	if c.envFrom {
		container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}}
	}
	in := Input{Container: container, Pod: &corev1.Pod{}, Framework: c.framework,
		SliceBytes: c.slice, LimitBytes: c.limit, TotalBytes: c.total,
		AllowanceBytes: DefaultAllowance(1), Processes: c.processes, GPUs: 1, View: c.view, DeviceAlone: c.alone, Switches: c.switches}
	if in.SliceBytes == 0 {
		in.SliceBytes = 2 * giB
	}
	if in.TotalBytes == 0 {
		in.TotalBytes = 16 * giB
	}
	if in.TotalBytes < 0 {
		in.TotalBytes = 0
	}
	if in.View == "" {
		in.View = ViewWhole
	}
	return in
}

// envText writes variables as "NAME=value", a cap with "!" behind it.
func envText(env []Env) []string {
	var all []string
	for _, e := range env {
		text := e.Name + "=" + e.Value
		if e.Cap {
			text += " !"
		}
		all = append(all, text)
	}
	return all
}

const (
	torch24  = "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime"
	torch210 = "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
)

func TestProfile(t *testing.T) {
	t.Parallel()
	t.Run("sets what the framework reads", profileSets)
	t.Run("the result names the version's source", profileVersionSource)
	t.Run("the default allowance grows with NCCL", profileAllowance)
}

func profileSets(t *testing.T) {
	t.Parallel()
	const split = "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"
	const both = "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.093750,max_split_size_mb:128 !"
	const jaxGrow = "XLA_PYTHON_CLIENT_PREALLOCATE=false"
	tests := []struct {
		name string
		in   sample
		want []string
		cap  string // part of Cap; "" where nothing may be capped
	}{
		{"no framework, nothing is set", sample{image: "ubuntu:24.04"}, nil, ""},
		{"PyTorch of an unknown version gets the key that every version takes", sample{image: "pytorch/pytorch:latest"}, []string{split}, ""},
		{"PyTorch by digest alone is of an unknown version",
			sample{image: "pytorch/pytorch@sha256:" + strings.Repeat("a", 64)}, []string{split}, ""},
		{"PyTorch 2.4 has no fraction", sample{image: torch24}, []string{split}, ""},
		{"PyTorch 2.9 has no fraction", sample{framework: "pytorch-2.9.1"}, []string{split}, ""},
		{"PyTorch 1.10 has settings", sample{framework: "pytorch-1.10"}, []string{split}, ""},
		{"PyTorch 1.9 has no settings", sample{framework: "pytorch-1.9"}, nil, ""},
		{"PyTorch 2.10 gets both keys in one variable", sample{image: torch210}, []string{both},
			"PYTORCH_CUDA_ALLOC_CONF per_process_memory_fraction:0.093750 (PyTorch 2.10.0)"},
		{"PyTorch 2.14 by label", sample{image: "corp/train:7", framework: "pytorch-2.14"}, []string{both}, "per_process"},
		{"PyTorch 2.10 under MPS takes its fraction of the whole total", sample{image: torch210, view: ViewLimitedFree},
			[]string{both}, "per_process"},
		{"a candidate of 2.10 counts as 2.9", sample{framework: "pytorch-2.10.0rc2"}, []string{split}, ""},
		{"a nightly of 2.10 counts as 2.9", sample{image: "pytorch/pytorch:2.10.0.dev20251001-cuda12.8-cudnn9-devel"}, []string{split}, ""},
		{"NVIDIA's 25.12 is built from 2.10 before its release", sample{image: "nvcr.io/nvidia/pytorch:25.12-py3"}, []string{split}, ""},
		{"NVIDIA's 26.03 is built from 2.11 before its release", sample{image: "nvcr.io/nvidia/pytorch:26.03-py3"},
			[]string{both}, "2.11.0a0 or newer"},
		{"NVIDIA's 21.09 may be older than the settings", sample{image: "nvcr.io/nvidia/pytorch:21.09-py3"}, nil, ""},
		{"a slice that the driver may show as the total gets no fraction", sample{image: torch210, view: ViewUnknown}, []string{split}, ""},
		{"no view gets no fraction", sample{image: torch210, view: "odd"}, []string{split}, ""},
		{"a MIG instance gets no fraction", sample{image: torch210, view: ViewSliced}, []string{split}, ""},
		{"an unknown total gets no fraction", sample{image: torch210, total: -1}, []string{split}, ""},
		{"a slice within the context allowance gets no fraction", sample{image: torch210, slice: 512 << 20}, []string{split}, ""},
		{"a slice with room for the allowance and the whole device gets no fraction",
			sample{image: torch210, slice: 17 * giB}, []string{split}, ""},
		{"the burst limit is what the cap holds to", sample{image: torch210, limit: 4*giB + 512<<20},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.250000,max_split_size_mb:128 !"}, "0.250000"},
		{"a limit below the slice counts as the slice", sample{image: torch210, limit: 1}, []string{both}, "0.093750"},
		{"two processes share the slice", sample{image: torch210, processes: 2},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.031250,max_split_size_mb:128 !"}, "0.031250"},
		{"fractions are rounded down", sample{image: torch210, total: t4},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.102876,max_split_size_mb:128 !"}, "0.102876"},
		{"policy turns the fragmentation setting off", sample{image: torch210, switches: conf("")},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.093750 !"}, "per_process"},
		{"policy turns the only setting off", sample{image: torch24, switches: conf("")}, nil, ""},
		{"policy sets another one", sample{image: torch24, switches: conf("expandable_segments:True")},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, ""},
		{"policy's key that an unknown version may die of is left away",
			sample{image: "pytorch/pytorch", switches: conf("expandable_segments:True")}, nil, ""},
		{"policy's key that the version dies of is left away, the cap stays",
			sample{framework: "pytorch-1.13", switches: conf("expandable_segments:True")}, nil, ""},
		{"policy sets the version", sample{image: "pytorch/pytorch:latest", switches: map[string]Switch{"pytorch": {Version: "2.10"}}},
			[]string{both}, "per_process"},
		{"policy names an image, whose tag is no version of PyTorch",
			sample{image: "corp/train:2.12.1", switches: map[string]Switch{"pytorch": {Images: []string{"corp/train"}}}}, []string{split}, ""},
		{"policy turns the profile off", sample{image: torch210, switches: map[string]Switch{"pytorch": {Enabled: new(false)}}}, nil, ""},
		{"the label none turns every profile off", sample{image: torch210, framework: "none"}, nil, ""},
		{"the label wins over the image", sample{image: torch210, framework: "cupy"},
			[]string{"CUPY_GPU_MEMORY_LIMIT=1610612736 !"}, "CUPY_GPU_MEMORY_LIMIT 1610612736 (CuPy)"},

		{"JAX gets the older name of the fraction", sample{framework: "jax"},
			[]string{"XLA_PYTHON_CLIENT_MEM_FRACTION=0.093750 !", jaxGrow}, "XLA_PYTHON_CLIENT_MEM_FRACTION 0.093750"},
		{"JAX under MPS the same", sample{framework: "jax", view: ViewLimitedFree},
			[]string{"XLA_PYTHON_CLIENT_MEM_FRACTION=0.093750 !", jaxGrow}, "XLA"},
		{"JAX in a MIG instance grows", sample{image: "nvcr.io/nvidia/jax:24.10-py3", view: ViewSliced}, []string{jaxGrow}, ""},
		{"JAX where the total is not known grows", sample{framework: "jax", total: -1}, []string{jaxGrow}, ""},

		{"TensorFlow with neighbours grows", sample{image: "tensorflow/tensorflow:2.15.0-gpu"}, []string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}, ""},
		{"TensorFlow alone leaves the rest of the device free", sample{image: "tensorflow/tensorflow:2.15.0-gpu", alone: true},
			[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=14336 !"}, "TF_DEVICE_MIN_SYS_MEMORY_IN_MB 14336"},
		{"TensorFlow's headroom is rounded up", sample{framework: "tensorflow", alone: true, total: t4},
			[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=12883 !"}, "12883"},
		{"TensorFlow under MPS grows", sample{framework: "tensorflow", alone: true, view: ViewLimitedFree},
			[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}, ""},

		{"CuPy's limit needs no total", sample{image: "cupy/cupy:v13.0.0", total: -1}, []string{"CUPY_GPU_MEMORY_LIMIT=1610612736 !"}, "13.0.0"},
		{"CuPy's limit holds in a MIG instance too", sample{image: "cupy/cupy:v13.0.0", view: ViewSliced},
			[]string{"CUPY_GPU_MEMORY_LIMIT=1610612736 !"}, "CuPy"},
		{"CuPy 6 has no limit", sample{image: "cupy/cupy:v6.7.0"}, nil, ""},
		{"CuPy within the context allowance has no limit, and never an empty one", sample{framework: "cupy", slice: 256 << 20}, nil, ""},
		{"Paddle's limit is in MiB", sample{image: "paddlepaddle/paddle:2.6.1-gpu-cuda12.0-cudnn8.9-trt8.6"},
			[]string{"FLAGS_gpu_memory_limit_mb=1536 !"}, "FLAGS"},

		{"TGI alone gets a fraction, and PyTorch none that TGI would undo",
			sample{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", alone: true},
			[]string{"CUDA_MEMORY_FRACTION=0.093750 !", split}, "CUDA_MEMORY_FRACTION 0.093750 (TGI 3.3.4)"},
		{"TGI with neighbours gets no fraction", sample{image: "ghcr.io/huggingface/text-generation-inference:3.3.4"}, []string{split}, ""},
		{"TGI under MPS gets its wiggle room", sample{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", view: ViewLimitedFree},
			[]string{"TGI_WIGGLE_ROOM=0.987499", split}, ""},
		{"TGI in a MIG instance is left alone", sample{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", view: ViewSliced},
			[]string{split}, ""},

		{"Ollama 0.5 keeps the rest of the device free", sample{image: "ollama/ollama:0.5.4"}, []string{"OLLAMA_GPU_OVERHEAD=15032385536"}, ""},
		{"Ollama 0.30 does so through llama-server", sample{image: "ollama/ollama:0.30.0"}, []string{"LLAMA_ARG_FIT_TARGET=15360"}, ""},
		{"Ollama of an unknown version gets both", sample{image: "ollama/ollama"},
			[]string{"OLLAMA_GPU_OVERHEAD=15032385536", "LLAMA_ARG_FIT_TARGET=15360"}, ""},
		{"Ollama before 0.3.10 reads neither", sample{image: "ollama/ollama:0.3.9"}, nil, ""},
		{"Ollama under MPS sees the slice as free already", sample{image: "ollama/ollama", view: ViewLimitedFree}, nil, ""},
		{"Ollama where the view is not known is left alone", sample{image: "ollama/ollama", view: ViewUnknown}, nil, ""},
		{"llama.cpp leaves a margin", sample{image: "ghcr.io/ggml-org/llama.cpp:server-cuda-b6500"}, []string{"LLAMA_ARG_FIT_TARGET=15360"}, ""},
		{"llama.cpp's own argument stays", sample{image: "ghcr.io/ggml-org/llama.cpp:server-cuda", args: []string{"-fitt", "2048"}}, nil, ""},
		{"llama.cpp in a MIG instance is left alone", sample{command: []string{"/app/llama-server", "-m", "x.gguf"}, view: ViewSliced}, nil, ""},

		{"vLLM 0.17.1 runs PyTorch 2.10", sample{image: "vllm/vllm-openai:v0.17.1"}, []string{both}, "PyTorch 2.10.0"},
		{"vLLM 0.16 runs PyTorch 2.9", sample{image: "vllm/vllm-openai:v0.16.0"}, []string{split}, ""},
		{"an image that names its PyTorch", sample{image: "egs-registry.cn-hangzhou.cr.aliyuncs.com/egs/vllm:0.9.2-pytorch2.11-cu130-20260512"},
			[]string{both}, "PyTorch 2.11"},
		{"SGLang 0.5.11 runs PyTorch 2.11", sample{image: "lmsysorg/sglang:v0.5.11-cu130-runtime"}, []string{both}, "PyTorch 2.11.0"},
		{"SGLang 0.5.10 runs PyTorch 2.9", sample{image: "lmsysorg/sglang:v0.5.10"}, []string{split}, ""},
		{"TGI undoes a fraction of PyTorch's, so it gets none",
			sample{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", switches: map[string]Switch{"pytorch": {Version: "2.10"}}},
			[]string{split}, ""},
		{"the kubelet expands nothing", sample{image: torch24, switches: conf("max_split_size_mb:$(X)")},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:$$(X)"}, ""},
		{"policy turns PyTorch off beneath vLLM",
			sample{image: "vllm/vllm-openai:v0.20.0", switches: map[string]Switch{"pytorch": {Enabled: new(false)}}}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := For(tt.in.input())
			if diff := cmp.Diff(tt.want, envText(got.Env)); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			checkCap(t, got, tt.cap)
		})
	}
}

func profileVersionSource(t *testing.T) {
	t.Parallel()
	policy := map[string]Switch{"pytorch": {Version: "2.6"}}
	tests := []struct {
		name string
		in   sample
		want string
	}{
		{"label before policy and image", sample{image: torch24, framework: "PyTorch-2.10", switches: policy}, "pytorch 2.10 label"},
		{"policy before image", sample{image: torch24, switches: policy}, "pytorch 2.6 policy"},
		{"image", sample{image: torch24}, "pytorch 2.4.0 image tag"},
		{"a label without a version leaves it to the image", sample{image: torch24, framework: "pytorch"}, "pytorch 2.4.0 image tag"},
		{"nobody", sample{framework: "pytorch"}, "pytorch  "},
		{"no framework", sample{}, "  "},
		{"a name with a dash", sample{framework: "llama-cpp-0.1"}, "llama-cpp 0.1 label"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := For(tt.in.input())
			if got := fmt.Sprintf("%s %s %s", r.Framework, r.Version, r.VersionSource); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func profileAllowance(t *testing.T) {
	t.Parallel()
	for gpus, want := range map[int]int64{0: 512 << 20, 1: 512 << 20, 2: 1 << 30, 8: 1 << 30} {
		if got := DefaultAllowance(gpus); got != want {
			t.Errorf("%d GPUs: got %d, want %d", gpus, got, want)
		}
	}
}

func conf(text string) map[string]Switch {
	return map[string]Switch{"pytorch": {AllocConf: &text}}
}

// checkCap holds that exactly one of Cap and NotCapped speaks, and that want is part of Cap.
func checkCap(t *testing.T, got Result, want string) {
	t.Helper()
	if got.Capped != (want != "") || !strings.Contains(got.Cap, want) {
		t.Errorf("capped %v by %q, want %q (not capped: %q)", got.Capped, got.Cap, want, got.NotCapped)
	}
	if (got.Cap == "") == got.Capped || (got.NotCapped == "") != got.Capped {
		t.Errorf("capped %v, cap %q, not capped %q contradict each other", got.Capped, got.Cap, got.NotCapped)
	}
}

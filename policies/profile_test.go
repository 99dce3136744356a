package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const (
	profileGiB = int64(1) << 30
	// The memory that CUDA reports on a 16 GB T4, which is less than its label says.
	profileT4 = int64(15655829504)
)

// profileCase is a container in a slice of 2 GiB on a shared device of 16 GiB, unless it says otherwise.
type profileCase struct {
	image     string
	command   []string
	args      []string
	env       string // "NAME=value NAME=value"
	envFrom   bool
	framework string
	view      ProfileView
	total     int64
	slice     int64
	limit     int64
	processes int
	alone     bool
	switches  map[string]ProfileSwitch
}

func (c profileCase) input() ProfileInput {
	container := &corev1.Container{Name: "app", Image: c.image, Command: c.command, Args: c.args}
	for _, pair := range strings.Fields(c.env) {
		name, value, _ := strings.Cut(pair, "=")
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	if c.envFrom {
		container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}}
	}
	in := ProfileInput{Container: container, Framework: c.framework, SliceBytes: c.slice, LimitBytes: c.limit, TotalBytes: c.total,
		AllowanceBytes: ProfileDefaultAllowance(1), Processes: c.processes, GPUs: 1, View: c.view, DeviceAlone: c.alone, Switches: c.switches}
	if in.SliceBytes == 0 {
		in.SliceBytes = 2 * profileGiB
	}
	if in.TotalBytes == 0 {
		in.TotalBytes = 16 * profileGiB
	}
	if in.TotalBytes < 0 {
		in.TotalBytes = 0
	}
	if in.View == "" {
		in.View = ProfileViewWhole
	}
	return in
}

// profileEnvText writes variables as "NAME=value", a cap with "!" behind it.
func profileEnvText(env []ProfileEnv) []string {
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
	profileTorch24  = "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime"
	profileTorch210 = "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
)

func TestProfileSetsWhatTheFrameworkReads(t *testing.T) {
	t.Parallel()
	const split = "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"
	const both = "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.093750,max_split_size_mb:128 !"
	const jaxGrow = "XLA_PYTHON_CLIENT_PREALLOCATE=false"
	tests := []struct {
		name string
		in   profileCase
		want []string
		cap  string // part of Cap; "" where nothing may be capped
	}{
		{"no framework, nothing is set", profileCase{image: "ubuntu:24.04"}, nil, ""},
		{"PyTorch of an unknown version gets the key that every version takes", profileCase{image: "pytorch/pytorch:latest"}, []string{split}, ""},
		{"PyTorch by digest alone is of an unknown version", profileCase{image: "pytorch/pytorch@sha256:" + strings.Repeat("a", 64)}, []string{split}, ""},
		{"PyTorch 2.4 has no fraction", profileCase{image: profileTorch24}, []string{split}, ""},
		{"PyTorch 2.9 has no fraction", profileCase{framework: "pytorch-2.9.1"}, []string{split}, ""},
		{"PyTorch 1.10 has settings", profileCase{framework: "pytorch-1.10"}, []string{split}, ""},
		{"PyTorch 1.9 has no settings", profileCase{framework: "pytorch-1.9"}, nil, ""},
		{"PyTorch 2.10 gets both keys in one variable", profileCase{image: profileTorch210}, []string{both}, "PYTORCH_CUDA_ALLOC_CONF per_process_memory_fraction:0.093750 (PyTorch 2.10.0)"},
		{"PyTorch 2.14 by label", profileCase{image: "corp/train:7", framework: "pytorch-2.14"}, []string{both}, "per_process"},
		{"PyTorch 2.10 under MPS takes its fraction of the whole total", profileCase{image: profileTorch210, view: ProfileViewLimitedFree}, []string{both}, "per_process"},
		{"a candidate of 2.10 counts as 2.9", profileCase{framework: "pytorch-2.10.0rc2"}, []string{split}, ""},
		{"a nightly of 2.10 counts as 2.9", profileCase{image: "pytorch/pytorch:2.10.0.dev20251001-cuda12.8-cudnn9-devel"}, []string{split}, ""},
		{"NVIDIA's 25.12 is built from 2.10 before its release", profileCase{image: "nvcr.io/nvidia/pytorch:25.12-py3"}, []string{split}, ""},
		{"NVIDIA's 26.03 is built from 2.11 before its release", profileCase{image: "nvcr.io/nvidia/pytorch:26.03-py3"}, []string{both}, "2.11.0a0 or newer"},
		{"NVIDIA's 21.09 may be older than the settings", profileCase{image: "nvcr.io/nvidia/pytorch:21.09-py3"}, nil, ""},
		{"a slice that the driver may show as the total gets no fraction", profileCase{image: profileTorch210, view: ProfileViewUnknown}, []string{split}, ""},
		{"no view gets no fraction", profileCase{image: profileTorch210, view: "odd"}, []string{split}, ""},
		{"a MIG instance gets no fraction", profileCase{image: profileTorch210, view: ProfileViewSliced}, []string{split}, ""},
		{"an unknown total gets no fraction", profileCase{image: profileTorch210, total: -1}, []string{split}, ""},
		{"a slice within the context allowance gets no fraction", profileCase{image: profileTorch210, slice: 512 << 20}, []string{split}, ""},
		{"a slice with room for the allowance and the whole device gets no fraction", profileCase{image: profileTorch210, slice: 17 * profileGiB}, []string{split}, ""},
		{"the burst limit is what the cap holds to", profileCase{image: profileTorch210, limit: 4*profileGiB + 512<<20},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.250000,max_split_size_mb:128 !"}, "0.250000"},
		{"a limit below the slice counts as the slice", profileCase{image: profileTorch210, limit: 1}, []string{both}, "0.093750"},
		{"two processes share the slice", profileCase{image: profileTorch210, processes: 2},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.031250,max_split_size_mb:128 !"}, "0.031250"},
		{"fractions are rounded down", profileCase{image: profileTorch210, total: profileT4},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.102876,max_split_size_mb:128 !"}, "0.102876"},
		{"policy turns the fragmentation setting off", profileCase{image: profileTorch210, switches: profileConf("")},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.093750 !"}, "per_process"},
		{"policy turns the only setting off", profileCase{image: profileTorch24, switches: profileConf("")}, nil, ""},
		{"policy sets another one", profileCase{image: profileTorch24, switches: profileConf("expandable_segments:True")},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, ""},
		{"policy's key that an unknown version may die of is left away", profileCase{image: "pytorch/pytorch", switches: profileConf("expandable_segments:True")}, nil, ""},
		{"policy's key that the version dies of is left away, the cap stays", profileCase{framework: "pytorch-1.13", switches: profileConf("expandable_segments:True")}, nil, ""},
		{"policy tells the version", profileCase{image: "pytorch/pytorch:latest", switches: map[string]ProfileSwitch{"pytorch": {Version: "2.10"}}}, []string{both}, "per_process"},
		{"policy names an image, whose tag is no version of PyTorch", profileCase{image: "corp/train:2.12.1", switches: map[string]ProfileSwitch{"pytorch": {Images: []string{"corp/train"}}}}, []string{split}, ""},
		{"policy turns the profile off", profileCase{image: profileTorch210, switches: map[string]ProfileSwitch{"pytorch": {Enabled: new(false)}}}, nil, ""},
		{"the label none turns every profile off", profileCase{image: profileTorch210, framework: "none"}, nil, ""},
		{"the label wins over the image", profileCase{image: profileTorch210, framework: "cupy"}, []string{"CUPY_GPU_MEMORY_LIMIT=1610612736 !"}, "CUPY_GPU_MEMORY_LIMIT 1610612736 (CuPy)"},

		{"JAX gets the older name of the fraction", profileCase{framework: "jax"}, []string{"XLA_PYTHON_CLIENT_MEM_FRACTION=0.093750 !", jaxGrow}, "XLA_PYTHON_CLIENT_MEM_FRACTION 0.093750"},
		{"JAX under MPS the same", profileCase{framework: "jax", view: ProfileViewLimitedFree}, []string{"XLA_PYTHON_CLIENT_MEM_FRACTION=0.093750 !", jaxGrow}, "XLA"},
		{"JAX in a MIG instance grows", profileCase{image: "nvcr.io/nvidia/jax:24.10-py3", view: ProfileViewSliced}, []string{jaxGrow}, ""},
		{"JAX where the total is not known grows", profileCase{framework: "jax", total: -1}, []string{jaxGrow}, ""},

		{"TensorFlow with neighbours grows", profileCase{image: "tensorflow/tensorflow:2.15.0-gpu"}, []string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}, ""},
		{"TensorFlow alone leaves the rest of the device free", profileCase{image: "tensorflow/tensorflow:2.15.0-gpu", alone: true},
			[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=14336 !"}, "TF_DEVICE_MIN_SYS_MEMORY_IN_MB 14336"},
		{"TensorFlow's headroom is rounded up", profileCase{framework: "tensorflow", alone: true, total: profileT4},
			[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=12883 !"}, "12883"},
		{"TensorFlow under MPS grows", profileCase{framework: "tensorflow", alone: true, view: ProfileViewLimitedFree}, []string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}, ""},

		{"CuPy's limit needs no total", profileCase{image: "cupy/cupy:v13.0.0", total: -1}, []string{"CUPY_GPU_MEMORY_LIMIT=1610612736 !"}, "13.0.0"},
		{"CuPy's limit holds in a MIG instance too", profileCase{image: "cupy/cupy:v13.0.0", view: ProfileViewSliced}, []string{"CUPY_GPU_MEMORY_LIMIT=1610612736 !"}, "CuPy"},
		{"CuPy 6 has no limit", profileCase{image: "cupy/cupy:v6.7.0"}, nil, ""},
		{"CuPy within the context allowance has no limit, and never an empty one", profileCase{framework: "cupy", slice: 256 << 20}, nil, ""},
		{"Paddle's limit is in MiB", profileCase{image: "paddlepaddle/paddle:2.6.1-gpu-cuda12.0-cudnn8.9-trt8.6"}, []string{"FLAGS_gpu_memory_limit_mb=1536 !"}, "FLAGS"},

		{"TGI alone gets a fraction, and PyTorch none that TGI would undo", profileCase{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", alone: true},
			[]string{"CUDA_MEMORY_FRACTION=0.093750 !", split}, "CUDA_MEMORY_FRACTION 0.093750 (TGI 3.3.4)"},
		{"TGI with neighbours gets no fraction", profileCase{image: "ghcr.io/huggingface/text-generation-inference:3.3.4"}, []string{split}, ""},
		{"TGI under MPS gets its wiggle room", profileCase{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", view: ProfileViewLimitedFree},
			[]string{"TGI_WIGGLE_ROOM=0.987499", split}, ""},
		{"TGI in a MIG instance is left alone", profileCase{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", view: ProfileViewSliced}, []string{split}, ""},

		{"Ollama 0.5 keeps the rest of the device free", profileCase{image: "ollama/ollama:0.5.4"}, []string{"OLLAMA_GPU_OVERHEAD=15032385536"}, ""},
		{"Ollama 0.30 does so through llama-server", profileCase{image: "ollama/ollama:0.30.0"}, []string{"LLAMA_ARG_FIT_TARGET=15360"}, ""},
		{"Ollama of an unknown version gets both", profileCase{image: "ollama/ollama"}, []string{"OLLAMA_GPU_OVERHEAD=15032385536", "LLAMA_ARG_FIT_TARGET=15360"}, ""},
		{"Ollama before 0.3.10 reads neither", profileCase{image: "ollama/ollama:0.3.9"}, nil, ""},
		{"Ollama under MPS sees the slice as free already", profileCase{image: "ollama/ollama", view: ProfileViewLimitedFree}, nil, ""},
		{"Ollama where the view is not known is left alone", profileCase{image: "ollama/ollama", view: ProfileViewUnknown}, nil, ""},
		{"llama.cpp leaves a margin", profileCase{image: "ghcr.io/ggml-org/llama.cpp:server-cuda-b6500"}, []string{"LLAMA_ARG_FIT_TARGET=15360"}, ""},
		{"llama.cpp's own argument stays", profileCase{image: "ghcr.io/ggml-org/llama.cpp:server-cuda", args: []string{"-fitt", "2048"}}, nil, ""},
		{"llama.cpp in a MIG instance is left alone", profileCase{command: []string{"/app/llama-server", "-m", "x.gguf"}, view: ProfileViewSliced}, nil, ""},

		{"vLLM 0.17.1 runs PyTorch 2.10", profileCase{image: "vllm/vllm-openai:v0.17.1"}, []string{both}, "PyTorch 2.10.0"},
		{"vLLM 0.16 runs PyTorch 2.9", profileCase{image: "vllm/vllm-openai:v0.16.0"}, []string{split}, ""},
		{"an image that names its PyTorch", profileCase{image: "egs-registry.cn-hangzhou.cr.aliyuncs.com/egs/vllm:0.9.2-pytorch2.11-cu130-20260512"}, []string{both}, "PyTorch 2.11"},
		{"SGLang 0.5.11 runs PyTorch 2.11", profileCase{image: "lmsysorg/sglang:v0.5.11-cu130-runtime"}, []string{both}, "PyTorch 2.11.0"},
		{"SGLang 0.5.10 runs PyTorch 2.9", profileCase{image: "lmsysorg/sglang:v0.5.10"}, []string{split}, ""},
		{"TGI undoes a fraction of PyTorch's, so it gets none", profileCase{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", switches: map[string]ProfileSwitch{"pytorch": {Version: "2.10"}}}, []string{split}, ""},
		{"the kubelet expands nothing", profileCase{image: profileTorch24, switches: profileConf("max_split_size_mb:$(X)")}, []string{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:$$(X)"}, ""},
		{"policy turns PyTorch off beneath vLLM", profileCase{image: "vllm/vllm-openai:v0.20.0", switches: map[string]ProfileSwitch{"pytorch": {Enabled: new(false)}}}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := ProfileFor(tt.in.input())
			if diff := cmp.Diff(tt.want, profileEnvText(got.Env)); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			profileCheckCap(t, got, tt.cap)
		})
	}
}

func profileConf(text string) map[string]ProfileSwitch {
	return map[string]ProfileSwitch{"pytorch": {AllocConf: &text}}
}

// profileCheckCap holds that exactly one of Cap and NotCapped speaks, and that want is part of Cap.
func profileCheckCap(t *testing.T, got ProfileResult, want string) {
	t.Helper()
	if got.Capped != (want != "") || !strings.Contains(got.Cap, want) {
		t.Errorf("capped %v by %q, want %q (not capped: %q)", got.Capped, got.Cap, want, got.NotCapped)
	}
	if (got.Cap == "") == got.Capped || (got.NotCapped == "") != got.Capped {
		t.Errorf("capped %v, cap %q, not capped %q contradict each other", got.Capped, got.Cap, got.NotCapped)
	}
}

func TestProfileResultSaysWhereTheVersionComesFrom(t *testing.T) {
	t.Parallel()
	policy := map[string]ProfileSwitch{"pytorch": {Version: "2.6"}}
	tests := []struct {
		name string
		in   profileCase
		want string
	}{
		{"label before policy and image", profileCase{image: profileTorch24, framework: "PyTorch-2.10", switches: policy}, "pytorch 2.10 label"},
		{"policy before image", profileCase{image: profileTorch24, switches: policy}, "pytorch 2.6 policy"},
		{"image", profileCase{image: profileTorch24}, "pytorch 2.4.0 image tag"},
		{"a label without a version leaves it to the image", profileCase{image: profileTorch24, framework: "pytorch"}, "pytorch 2.4.0 image tag"},
		{"nobody", profileCase{framework: "pytorch"}, "pytorch  "},
		{"no framework", profileCase{}, "  "},
		{"a name with a dash", profileCase{framework: "llama-cpp-0.1"}, "llama-cpp 0.1 label"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := ProfileFor(tt.in.input())
			if got := fmt.Sprintf("%s %s %s", r.Framework, r.Version, r.VersionSource); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestProfileDefaultAllowanceGrowsWithNCCL(t *testing.T) {
	t.Parallel()
	for gpus, want := range map[int]int64{0: 512 << 20, 1: 512 << 20, 2: 1 << 30, 8: 1 << 30} {
		if got := ProfileDefaultAllowance(gpus); got != want {
			t.Errorf("%d GPUs: got %d, want %d", gpus, got, want)
		}
	}
}

package policies

import (
	"fmt"
	"slices"
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

func TestProfileKeepsWhatTheUserSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   profileCase
		want []string
		cap  string
		says string // part of a note, warning, refusal or NotCapped
	}{
		{"PyTorch's own settings without a fraction", profileCase{image: profileTorch210, env: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, nil, "",
			"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True stays, and holds no cap: it has no per_process_memory_fraction"},
		{"the newer name counts as set", profileCase{image: profileTorch210, env: "PYTORCH_ALLOC_CONF=expandable_segments:True"}, nil, "", "PYTORCH_ALLOC_CONF"},
		{"the newer name counts as set for an unknown version too", profileCase{image: "pytorch/pytorch", env: "PYTORCH_ALLOC_CONF=expandable_segments:True"}, nil, "", "pod's own"},
		{"ROCm's name counts as set", profileCase{image: profileTorch210, env: "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:64"}, nil, "", "PYTORCH_HIP_ALLOC_CONF"},
		{"an empty value counts as set", profileCase{image: profileTorch210, env: "PYTORCH_CUDA_ALLOC_CONF="}, nil, "", "holds no cap"},
		{"a stricter fraction is a cap", profileCase{image: profileTorch210, env: "PYTORCH_ALLOC_CONF=expandable_segments:True,per_process_memory_fraction:0.05"}, nil,
			"PYTORCH_ALLOC_CONF=expandable_segments:True,per_pro", "pod's own"},
		{"a wider fraction is none", profileCase{image: profileTorch210, env: "PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.5"}, nil, "", "more than the slice allows (0.093750)"},
		{"of two names the one that is read decides", profileCase{image: profileTorch210, env: "PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.05 PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64"}, nil, "", "no per_process"},
		{"another backend ignores the fraction", profileCase{image: profileTorch210, env: "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.05,backend:cudaMallocAsync"}, nil, "", "ignores a memory fraction"},
		{"a key that the version dies of", profileCase{image: profileTorch24, env: "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.05"}, nil, "", "knows from 2.10 on; 2.4.0 ends with an error"},
		{"no caching, no cap", profileCase{image: profileTorch210, env: "PYTORCH_NO_CUDA_MEMORY_CACHING=1"},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.093750,max_split_size_mb:128"}, "", "past the caching allocator"},
		{"envFrom may set it", profileCase{image: profileTorch210, envFrom: true}, nil, "", "envFrom may set PYTORCH_CUDA_ALLOC_CONF"},
		{"envFrom does not keep harmless ones away", profileCase{framework: "jax", envFrom: true}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "envFrom may set XLA_PYTHON_CLIENT_MEM_FRACTION"},
		{"envFrom does not keep CuPy's limit away", profileCase{framework: "cupy", envFrom: true}, []string{"CUPY_GPU_MEMORY_LIMIT=1610612736 !"}, "CUPY", ""},
		{"JAX's newer name, wider", profileCase{framework: "jax", env: "XLA_CLIENT_MEM_FRACTION=.9"}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "XLA_CLIENT_MEM_FRACTION=.9 stays"},
		{"JAX's newer name, stricter", profileCase{framework: "jax", env: "XLA_CLIENT_MEM_FRACTION=.05"}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "XLA_CLIENT_MEM_FRACTION=.05, the pod's own", ""},
		{"JAX's older name", profileCase{framework: "jax", env: "XLA_PYTHON_CLIENT_MEM_FRACTION=0.09 XLA_PYTHON_CLIENT_PREALLOCATE=true"}, nil, "0.09, the pod's own", "PREALLOCATE=true is the pod's own"},
		{"JAX's fraction that is none", profileCase{framework: "jax", env: "XLA_PYTHON_CLIENT_MEM_FRACTION=NaN"}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "no fraction above 0"},
		{"JAX's fraction from another variable", profileCase{framework: "jax", env: "XLA_PYTHON_CLIENT_MEM_FRACTION=$(F)"}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "known at run time only"},
		{"both names of JAX's fraction", profileCase{framework: "jax", env: "XLA_CLIENT_MEM_FRACTION=.1 XLA_PYTHON_CLIENT_MEM_FRACTION=.1"}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "",
			"XLA_CLIENT_MEM_FRACTION and XLA_PYTHON_CLIENT_MEM_FRACTION are both set"},
		{"JAX's platform allocator takes the cap away", profileCase{framework: "jax", env: "XLA_PYTHON_CLIENT_ALLOCATOR=platform"},
			[]string{"XLA_PYTHON_CLIENT_MEM_FRACTION=0.093750", "XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "takes the fraction away"},
		{"TensorFlow's asynchronous allocator takes the cap away", profileCase{framework: "tensorflow", alone: true, env: "TF_GPU_ALLOCATOR=cuda_malloc_async"},
			[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=14336"}, "", "TF_GPU_ALLOCATOR=cuda_malloc_async takes TensorFlow's limit away"},
		{"TensorFlow's growth is the user's", profileCase{framework: "tensorflow", env: "TF_FORCE_GPU_ALLOW_GROWTH=false"}, nil, "", "pod's own"},
		{"TensorFlow's own headroom that is enough", profileCase{framework: "tensorflow", alone: true, env: "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=15000"}, []string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}, "=15000", ""},
		{"TensorFlow's own headroom that is too small", profileCase{framework: "tensorflow", alone: true, env: "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=1000"}, []string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}, "", "does not leave 14Gi"},
		{"CuPy's own limit, wider", profileCase{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=8589934592"}, nil, "", "more than the slice allows"},
		{"CuPy's own limit in percent", profileCase{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=5%"}, nil, "=5%", ""},
		{"CuPy's own limit in percent of a total not known", profileCase{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=5%", total: -1}, nil, "", "not known"},
		{"CuPy without a limit of its own", profileCase{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=0"}, nil, "", "no number above 0"},
		{"the last of two entries decides", profileCase{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=1 CUPY_GPU_MEMORY_LIMIT=8589934592"}, nil, "", "more than"},
		{"TGI's argument wins over its variable", profileCase{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", alone: true, args: []string{"--cuda-memory-fraction", "0.05"}, env: "CUDA_MEMORY_FRACTION=1.0"},
			[]string{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"}, "--cuda-memory-fraction=0.05", ""},
		{"a framework that does not exist", profileCase{framework: "caffe"}, nil, "", `framework "caffe" is not known; write one of cupy, jax,`},
		{"a version that is none", profileCase{framework: "pytorch-two"}, nil, "", "is no version"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := ProfileFor(tt.in.input())
			if diff := cmp.Diff(tt.want, profileEnvText(got.Env)); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			profileCheckCap(t, got, tt.cap)
			if !strings.Contains(profileSays(got), tt.says) {
				t.Errorf("want %q in:\n%s", tt.says, profileSays(got))
			}
		})
	}
}

// profileSays joins all that a result says to people.
func profileSays(r ProfileResult) string {
	all := slices.Concat(r.Notes, r.Warnings, []string{r.NotCapped})
	for _, refusal := range r.Refusals {
		all = append(all, refusal.Reason+": "+refusal.Detail)
	}
	return strings.Join(all, "\n")
}

func TestProfileValueFromElsewhereIsNoCap(t *testing.T) {
	t.Parallel()
	in := profileCase{framework: "jax"}.input()
	in.Container.Env = []corev1.EnvVar{{Name: "XLA_CLIENT_MEM_FRACTION", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	got := ProfileFor(in)
	profileCheckCap(t, got, "")
	if diff := cmp.Diff([]string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, profileEnvText(got.Env)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
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

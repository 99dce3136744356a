package frameworks

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestKept(t *testing.T) {
	t.Parallel()
	t.Run("what the user set", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name string
			in   sample
			want []string
			cap  string
			says string // part of a note, warning, denial or NotCapped
		}{
			{"PyTorch's own settings without a fraction", sample{image: torch210, env: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, nil, "",
				"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True stays, and sets no cap: it has no per_process_memory_fraction"},
			{"the newer name counts as set", sample{image: torch210, env: "PYTORCH_ALLOC_CONF=expandable_segments:True"},
				nil, "", "PYTORCH_ALLOC_CONF"},
			{"the newer name counts as set for an unknown version too",
				sample{image: "pytorch/pytorch", env: "PYTORCH_ALLOC_CONF=expandable_segments:True"}, nil, "", "pod's own"},
			{"ROCm's name counts as set", sample{image: torch210, env: "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:64"},
				nil, "", "PYTORCH_HIP_ALLOC_CONF"},
			{"an empty value counts as set", sample{image: torch210, env: "PYTORCH_CUDA_ALLOC_CONF="}, nil, "", "sets no cap"},
			{"a stricter fraction is a cap",
				sample{image: torch210, env: "PYTORCH_ALLOC_CONF=expandable_segments:True,per_process_memory_fraction:0.05"}, nil,
				"PYTORCH_ALLOC_CONF=expandable_segments:True,per_pro", "pod's own"},
			{"a wider fraction is none", sample{image: torch210, env: "PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.5"},
				nil, "", "more than the slice allows (0.093750)"},
			{"of two names the one that is read decides",
				sample{image: torch210, env: "PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.05 PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64"},
				nil, "", "no per_process"},
			{"another backend ignores the fraction",
				sample{image: torch210, env: "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.05,backend:cudaMallocAsync"},
				nil, "", "ignores a memory fraction"},
			{"a key that the version dies of", sample{image: torch24, env: "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.05"},
				nil, "", "knows from 2.10 on; 2.4.0 exits with an error"},
			{"no caching, no cap", sample{image: torch210, env: "PYTORCH_NO_CUDA_MEMORY_CACHING=1"},
				[]string{"PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.093750,max_split_size_mb:128"}, "", "past the caching allocator"},
			{"envFrom may set it", sample{image: torch210, envFrom: true}, nil, "", "envFrom may set PYTORCH_CUDA_ALLOC_CONF"},
			{"envFrom does not keep harmless ones away", sample{framework: "jax", envFrom: true}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"},
				"", "envFrom may set XLA_PYTHON_CLIENT_MEM_FRACTION"},
			{"envFrom does not keep CuPy's limit away", sample{framework: "cupy", envFrom: true},
				[]string{"CUPY_GPU_MEMORY_LIMIT=1610612736 !"}, "CUPY", ""},
			{"JAX's newer name, wider", sample{framework: "jax", env: "XLA_CLIENT_MEM_FRACTION=.9"},
				[]string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "XLA_CLIENT_MEM_FRACTION=.9 stays"},
			{"JAX's newer name, stricter", sample{framework: "jax", env: "XLA_CLIENT_MEM_FRACTION=.05"},
				[]string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "XLA_CLIENT_MEM_FRACTION=.05, the pod's own", ""},
			{"JAX's older name", sample{framework: "jax", env: "XLA_PYTHON_CLIENT_MEM_FRACTION=0.09 XLA_PYTHON_CLIENT_PREALLOCATE=true"},
				nil, "0.09, the pod's own", "PREALLOCATE=true is the pod's own"},
			{"JAX's fraction that is none", sample{framework: "jax", env: "XLA_PYTHON_CLIENT_MEM_FRACTION=NaN"},
				[]string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "no fraction above 0"},
			{"JAX's fraction from another variable", sample{framework: "jax", env: "XLA_PYTHON_CLIENT_MEM_FRACTION=$(F)"},
				[]string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "known at run time only"},
			{"both names of JAX's fraction", sample{framework: "jax", env: "XLA_CLIENT_MEM_FRACTION=.1 XLA_PYTHON_CLIENT_MEM_FRACTION=.1"},
				[]string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "",
				"XLA_CLIENT_MEM_FRACTION and XLA_PYTHON_CLIENT_MEM_FRACTION are both set"},
			{"JAX's platform allocator takes the cap away", sample{framework: "jax", env: "XLA_PYTHON_CLIENT_ALLOCATOR=platform"},
				[]string{"XLA_PYTHON_CLIENT_MEM_FRACTION=0.093750", "XLA_PYTHON_CLIENT_PREALLOCATE=false"}, "", "takes the fraction away"},
			{"TensorFlow's asynchronous allocator takes the cap away",
				sample{framework: "tensorflow", alone: true, env: "TF_GPU_ALLOCATOR=cuda_malloc_async"},
				[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=14336"},
				"", "TF_GPU_ALLOCATOR=cuda_malloc_async takes TensorFlow's limit away"},
			{"TensorFlow's growth is the user's", sample{framework: "tensorflow", env: "TF_FORCE_GPU_ALLOW_GROWTH=false"}, nil, "", "pod's own"},
			{"TensorFlow's own headroom that is enough", sample{framework: "tensorflow", alone: true, env: "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=15000"},
				[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}, "=15000", ""},
			{"TensorFlow's own headroom that is too small", sample{framework: "tensorflow", alone: true, env: "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=1000"},
				[]string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}, "", "does not leave 14Gi"},
			{"CuPy's own limit, wider", sample{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=8589934592"}, nil, "", "more than the slice allows"},
			{"CuPy's own limit in percent", sample{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=5%"}, nil, "=5%", ""},
			{"CuPy's own limit in percent of a total not known",
				sample{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=5%", total: -1}, nil, "", "not known"},
			{"CuPy without a limit of its own", sample{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=0"}, nil, "", "no number above 0"},
			{"the last of two entries decides", sample{framework: "cupy", env: "CUPY_GPU_MEMORY_LIMIT=1 CUPY_GPU_MEMORY_LIMIT=8589934592"},
				nil, "", "more than"},
			{"TGI's argument wins over its variable", sample{image: "ghcr.io/huggingface/text-generation-inference:3.3.4", alone: true,
				args: []string{"--cuda-memory-fraction", "0.05"}, env: "CUDA_MEMORY_FRACTION=1.0"},
				[]string{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"}, "--cuda-memory-fraction=0.05", ""},
			{"a framework that does not exist", sample{framework: "caffe"},
				nil, "", `framework "caffe" is not known; write one of comfyui, cupy, jax,`},
			{"a version that is none", sample{framework: "pytorch-two"}, nil, "", "is no version"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				got := For(tt.in.input())
				if diff := cmp.Diff(tt.want, envText(got.Env)); diff != "" {
					t.Errorf("variables (-want +got):\n%s", diff)
				}
				checkCap(t, got, tt.cap)
				if !strings.Contains(says(got), tt.says) {
					t.Errorf("want %q in:\n%s", tt.says, says(got))
				}
			})
		}
	})
	t.Run("a value from elsewhere is no cap", func(t *testing.T) {
		t.Parallel()
		in := sample{framework: "jax"}.input()
		in.Container.Env = []corev1.EnvVar{
			{Name: "XLA_CLIENT_MEM_FRACTION", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		}
		got := For(in)
		checkCap(t, got, "")
		if diff := cmp.Diff([]string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, envText(got.Env)); diff != "" {
			t.Errorf("variables (-want +got):\n%s", diff)
		}
	})
}

// says joins all that a result says to people.
func says(r Result) string {
	all := slices.Concat(r.Notes, r.Warnings, []string{r.NotCapped})
	for _, denial := range r.Denials {
		all = append(all, denial.Reason+": "+denial.Detail)
	}
	return strings.Join(all, "\n")
}

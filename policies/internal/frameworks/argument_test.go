package frameworks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	t.Run("are checked against the slice", func(t *testing.T) {
		t.Parallel()
		const vllm = "vllm/vllm-openai:v0.6.3.post1"
		const missing = "vLLM takes 90-92 % of the device; add --gpu-memory-utilization=0.1093 for 2Gi of 16Gi"
		deny := map[string]Switch{"vllm": {Arguments: ArgumentsDeny}, "sglang": {Arguments: ArgumentsDeny}}
		tests := []struct {
			name    string
			in      sample
			warning string // the only warning; "" where there is none
			denial  string
			cap     string
		}{
			{"vLLM without the argument", sample{image: vllm, args: []string{"--model", "m"}}, missing, "", ""},
			{"vLLM without the argument, denied", sample{image: vllm, switches: deny}, "", missing, ""},
			{"vLLM with too much", sample{image: vllm, args: []string{"--gpu-memory-utilization", "0.9"}},
				"--gpu-memory-utilization=0.9 does not fit 2Gi of 16Gi; write --gpu-memory-utilization=0.1093", "", ""},
			{"vLLM with too much, denied", sample{image: vllm, args: []string{"--gpu-memory-utilization=0.9"}, switches: deny}, "",
				"--gpu-memory-utilization=0.9 does not fit 2Gi of 16Gi; write --gpu-memory-utilization=0.1093", ""},
			{"vLLM with what fits", sample{image: vllm, args: []string{"--gpu-memory-utilization=0.1093"}},
				"", "", "--gpu-memory-utilization=0.1093 (vLLM)"},
			{"underscores", sample{image: vllm, args: []string{"--gpu_memory_utilization=0.1"}}, "", "", "=0.1 (vLLM)"},
			{"the last one counts", sample{image: vllm, args: []string{"--gpu-memory-utilization=0.1", "--gpu-memory-utilization=0.9"}},
				"--gpu-memory-utilization=0.9 does not fit 2Gi of 16Gi; write --gpu-memory-utilization=0.1093", "", ""},
			{"within a shell's script", sample{image: "corp/llm:1", command: []string{"/bin/bash", "-lc"},
				args: []string{"set -e; exec vllm serve m \\\n  --gpu-memory-utilization 0.1"}},
				"", "", "=0.1 (vLLM)"},
			{"within quotes", sample{image: "corp/llm:1", command: []string{"sh", "-c", `vllm serve m "--gpu-memory-utilization=0.1"`}},
				"", "", "=0.1 (vLLM)"},
			{"as a module", sample{image: "corp/llm:1", command: []string{"python3", "-u", "-m", "vllm.entrypoints.openai.api_server"}},
				missing, "", ""},
			{"from a variable of the pod", sample{image: vllm, args: []string{"--gpu-memory-utilization=$(UTIL)"}, env: "UTIL=0.1"},
				"", "", "=0.1 (vLLM)"},
			{"from a variable of the image", sample{image: vllm, args: []string{"--gpu-memory-utilization", "$UTIL"}},
				"--gpu-memory-utilization=$UTIL is known at run time only: at most 0.1093 fits the slice", "", ""},
			{"the flag without a value", sample{image: vllm, args: []string{"--gpu-memory-utilization"}},
				"--gpu-memory-utilization= does not fit 2Gi of 16Gi; write --gpu-memory-utilization=0.1093", "", ""},
			{"no number", sample{image: vllm, args: []string{"--gpu-memory-utilization=Inf"}},
				"--gpu-memory-utilization=Inf does not fit 2Gi of 16Gi; write --gpu-memory-utilization=0.1093", "", ""},
			{"a limit in bytes bounds the cache alone",
				sample{image: vllm, args: []string{"--kv-cache-memory-bytes=1G"}, switches: deny}, "", "", ""},
			{"vLLM under MPS fails to start with its default", sample{image: vllm, view: ViewLimitedFree}, missing, "", ""},
			{"vLLM in a MIG instance needs nothing", sample{image: vllm, view: ViewSliced, switches: deny}, "", "", ""},
			{"a total that may be the limit gives no number", sample{image: vllm, view: ViewUnknown, switches: deny}, "", "", ""},
			{"a total that is not known gives no number, and denies nothing", sample{image: vllm, total: -1, switches: deny},
				"vLLM takes 90-92 % of the device; set --gpu-memory-utilization to fit the slice (the device's memory is not known here)", "", ""},
			{"the whole device has room for the default", sample{image: vllm, slice: 16 * giB, switches: deny},
				"", "", "--gpu-memory-utilization=0.92 (vLLM)"},
			{"a slice smaller than what vLLM does not count", sample{image: vllm, slice: 128 << 20},
				"--gpu-memory-utilization has no value that fits: 128Mi is too small", "", ""},
			{"SGLang without the argument", sample{command: []string{"python3", "-m", "sglang.launch_server"}},
				"SGLang takes most of the free memory; add --mem-fraction-static=0.0937 for 2Gi of 16Gi", "", ""},
			{"SGLang with too much, denied",
				sample{image: "lmsysorg/sglang:v0.5.6", args: []string{"--mem-fraction-static", "0.8"}, switches: deny}, "",
				"--mem-fraction-static=0.8 does not fit 2Gi of 16Gi; write --mem-fraction-static=0.0937", ""},
			{"SGLang with what fits is no cap: activations come on top",
				sample{image: "lmsysorg/sglang:v0.5.6", args: []string{"--mem-fraction-static=0.09"}}, "", "", ""},
			{"SGLang under MPS needs nothing", sample{image: "lmsysorg/sglang:v0.5.6", view: ViewLimitedFree, switches: deny}, "", "", ""},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				got := For(tt.in.input())
				if diff := cmp.Diff(tt.warning, strings.Join(got.Warnings, "\n")); diff != "" {
					t.Errorf("warnings (-want +got):\n%s", diff)
				}
				var denials []string
				for _, r := range got.Denials {
					denials = append(denials, r.Detail)
				}
				if diff := cmp.Diff(tt.denial, strings.Join(denials, "\n")); diff != "" {
					t.Errorf("denials (-want +got):\n%s", diff)
				}
				checkCap(t, got, tt.cap)
			})
		}
	})
	t.Run("commands are recognized where they run", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name    string
			command []string
			want    string
		}{
			{"a server by its path", []string{"/usr/local/bin/vllm", "serve", "m"}, "vllm"},
			{"torchrun", []string{"torchrun", "train.py"}, "pytorch"},
			{"a launcher as a module", []string{"python", "-m", "torch.distributed.run"}, "pytorch"},
			{"behind a change of directory", []string{"bash", "-c", "cd /srv && ollama serve"}, "ollama"},
			{"a name as an argument is no command", []string{"cp", "-r", "/models/torchrun", "/x"}, ""},
			{"a word of a sentence is no command", []string{"echo", "torchrun"}, ""},
			{"half a command is none", []string{"vllm"}, ""},
			{"the server comes before the framework", []string{"bash", "-c", "torchrun a.py; vllm serve m"}, "vllm"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				if got := For(sample{image: "corp/app:1", command: tt.command}.input()).Framework; got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		}
	})
}

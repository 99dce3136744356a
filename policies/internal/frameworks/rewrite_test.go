package frameworks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRewrite(t *testing.T) {
	t.Parallel()
	t.Run("arguments are rewritten where they are seen", func(t *testing.T) {
		t.Parallel()
		const image = "vllm/vllm-openai:v0.6.3.post1"
		const added = "--gpu-memory-utilization=0.1093"
		const script, unknown = "is a script", "is the image's own"
		rewrite := map[string]Switch{"vllm": {Arguments: ArgumentsRewrite}, "sglang": {Arguments: ArgumentsRewrite}}
		for _, tt := range []struct {
			name   string
			in     sample
			args   string // what is added
			denial string // what the denial says; "" where there is none
		}{
			{"flags for the image's own server", sample{image: image, args: []string{"--model", "m"}}, added, ""},
			{"a server by name", sample{image: "corp/llm:1", command: []string{"vllm", "serve", "m"}}, added, ""},
			{"a server behind an init", sample{image: "corp/llm:1", command: []string{"tini", "--", "/usr/bin/vllm"}, args: []string{"serve", "m"}},
				added, ""},
			{"a server as a module", sample{image: "corp/llm:1", command: []string{"python3", "-m", "vllm.entrypoints.openai.api_server"}},
				added, ""},
			{"a server among the arguments", sample{image: image, args: []string{"vllm", "serve", "m"}}, added, ""},
			{"a larger value is overruled", sample{image: image, args: []string{"--gpu-memory-utilization", "0.9"}}, added, ""},
			{"a smaller value stays", sample{image: image, args: []string{"--gpu-memory-utilization=0.05"}}, "", ""},
			{"a value known at run time stays", sample{image: image, args: []string{"--gpu-memory-utilization=$UTIL"}}, "", ""},
			{"another limit stays", sample{image: image, args: []string{"--kv-cache-memory-bytes=1G"}}, "", ""},
			{"a script", sample{image: "corp/llm:1", command: []string{"sh", "-c", "vllm serve m"}}, "", script},
			{"a script for the image's own shell", sample{image: image, args: []string{"-c", "vllm serve m"}}, "", script},
			{"no words at all", sample{image: image}, "", unknown},
			{"another program of the image", sample{image: image, command: []string{"python3", "mine.py"}}, "", "not that of a server"},
			{"a client that does not know the flag", sample{image: image, command: []string{"vllm", "bench", "serve"}}, "", "not that of a server"},
			{"arguments behind two dashes", sample{image: image, args: []string{"--model", "m", "--", "x"}}, "", script},
			{"SGLang", sample{command: []string{"python3", "-m", "sglang.launch_server"}}, "--mem-fraction-static=0.0937", ""},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				tt.in.switches = rewrite
				got := For(tt.in.input())
				if diff := cmp.Diff(tt.args, strings.Join(got.Args, " ")); diff != "" {
					t.Errorf("added (-want +got)\n%s", diff)
				}
				var denials []string
				for _, r := range got.Denials {
					denials = append(denials, r.Detail)
				}
				if text := strings.Join(denials, "\n"); tt.denial == "" && text != "" || !strings.Contains(text, tt.denial) ||
					text != "" && !strings.Contains(text, "add --gpu-memory-utilization=0.1093") {
					t.Errorf("denied for %q, want %q", text, tt.denial)
				}
			})
		}
	})
}

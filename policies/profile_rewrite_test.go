package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProfileArgumentsAreRewrittenWhereTheyAreSeen(t *testing.T) {
	t.Parallel()
	const image = "vllm/vllm-openai:v0.6.3.post1"
	const added = "--gpu-memory-utilization=0.1093"
	const script, unknown = "is a script", "is the image's own"
	rewrite := map[string]ProfileSwitch{"vllm": {Arguments: ProfileArgumentsRewrite}, "sglang": {Arguments: ProfileArgumentsRewrite}}
	for _, tt := range []struct {
		name    string
		in      profileCase
		args    string // what is added
		refusal string // what the refusal says; "" where there is none
	}{
		{"flags for the image's own server", profileCase{image: image, args: []string{"--model", "m"}}, added, ""},
		{"a server by name", profileCase{image: "corp/llm:1", command: []string{"vllm", "serve", "m"}}, added, ""},
		{"a server behind an init", profileCase{image: "corp/llm:1", command: []string{"tini", "--", "/usr/bin/vllm"}, args: []string{"serve", "m"}}, added, ""},
		{"a server as a module", profileCase{image: "corp/llm:1", command: []string{"python3", "-m", "vllm.entrypoints.openai.api_server"}}, added, ""},
		{"a server among the arguments", profileCase{image: image, args: []string{"vllm", "serve", "m"}}, added, ""},
		{"a larger value is overruled", profileCase{image: image, args: []string{"--gpu-memory-utilization", "0.9"}}, added, ""},
		{"a smaller value stays", profileCase{image: image, args: []string{"--gpu-memory-utilization=0.05"}}, "", ""},
		{"a value known at run time stays", profileCase{image: image, args: []string{"--gpu-memory-utilization=$UTIL"}}, "", ""},
		{"another limit stays", profileCase{image: image, args: []string{"--kv-cache-memory-bytes=1G"}}, "", ""},
		{"a script", profileCase{image: "corp/llm:1", command: []string{"sh", "-c", "vllm serve m"}}, "", script},
		{"a script for the image's own shell", profileCase{image: image, args: []string{"-c", "vllm serve m"}}, "", script},
		{"no words at all", profileCase{image: image}, "", unknown},
		{"another program of the image", profileCase{image: image, command: []string{"python3", "mine.py"}}, "", "not that of a server"},
		{"a client that does not know the flag", profileCase{image: image, command: []string{"vllm", "bench", "serve"}}, "", "not that of a server"},
		{"arguments behind two dashes", profileCase{image: image, args: []string{"--model", "m", "--", "x"}}, "", script},
		{"SGLang", profileCase{command: []string{"python3", "-m", "sglang.launch_server"}}, "--mem-fraction-static=0.0937", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.switches = rewrite
			got := ProfileFor(tt.in.input())
			if diff := cmp.Diff(tt.args, strings.Join(got.Args, " ")); diff != "" {
				t.Errorf("added (-want +got)\n%s", diff)
			}
			var refusals []string
			for _, r := range got.Refusals {
				refusals = append(refusals, r.Detail)
			}
			if text := strings.Join(refusals, "\n"); tt.refusal == "" && text != "" || !strings.Contains(text, tt.refusal) || text != "" && !strings.Contains(text, "add --gpu-memory-utilization=0.1093") {
				t.Errorf("refused for %q, want %q", text, tt.refusal)
			}
		})
	}
}

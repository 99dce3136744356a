package enginememory

import (
	"strings"
	"testing"
)

func TestPositions(t *testing.T) {
	t.Parallel()
	const llama = `"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "vocab_size": 64`
	for _, c := range []struct {
		name, fields, engine string
		fails, assumed       bool
	}{
		{"as many as there are", `"max_position_embeddings": 8192`, vllm, false, false},
		{"more than there are", `"max_position_embeddings": 8191`, vllm, true, false},
		{"more, in SGLang", `"max_position_embeddings": 8191`, sglang, true, false},
		{"more, in an engine that starts", `"max_position_embeddings": 8191`, LlamaCPP, false, true},
		{"more than after scaling", `"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "llama3", "factor": 8}`, vllm, true, false},
		{"scaled by a factor", `"max_position_embeddings": 4096, "rope_scaling": {"type": "yarn", "factor": 4}`, vllm, false, false},
		{"no scaling", `"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}`, vllm, true, false},
		{"ten million", `"max_position_embeddings": 10485760`, vllm, false, false},
		{"none written", `"rope_scaling": null`, vllm, false, false},
		{"no number", `"max_position_embeddings": "many"`, vllm, false, false},
	} {
		e, err := New([]byte("{"+llama+", "+c.fields+"}"), Stored{}, Run{Engine: c.engine, Context: 8192, Concurrency: 1, TensorParallel: 1})
		if (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), "accepted: 1 to ") {
			t.Errorf("%s: error %v, want one: %t", c.name, err, c.fails)
			continue
		}
		if assumed := err == nil && strings.Contains(strings.Join(e.Assumed, "\n"), "positions"); assumed != c.assumed {
			t.Errorf("%s: assumed %t, want %t", c.name, assumed, c.assumed)
		}
	}
}

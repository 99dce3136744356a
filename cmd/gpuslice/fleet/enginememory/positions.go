package enginememory

import (
	"fmt"
	"slices"
)

// checkPositions holds a request against the model's longest. vLLM and SGLang do not start with more tokens than that; for other engines
// it adds to what is assumed.
func (c *config) checkPositions(r *Run) error {
	most := c.positions()
	if most == 0 || r.Context <= most {
		return nil
	}
	text := fmt.Sprintf("the model has %d positions (max_position_embeddings), and requests have %d tokens", most, r.Context)
	if r.Engine == vllm || r.Engine == sglang {
		return fmt.Errorf("context %d: %s: %s does not start with that; accepted: 1 to %d", r.Context, text, r.Engine, most)
	}
	c.assume("%s: beyond them the answers are of no use", text)
	return nil
}

// positions is how many tokens the model is made for; 0: config.json does not say.
func (c *config) positions() int {
	most := 0
	for _, name := range []string{"n_positions", "max_position_embeddings"} {
		if n, ok := c.text.value(name).(float64); ok && n >= 1 && n <= maxContext { // no dimension: some are larger than any of these
			most = int(n)
		}
	}
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		rope, found := c.text.in(name)
		if !found || len(rope.values) == 0 {
			continue
		}
		kind, _ := rope.values["rope_type"].(string)
		if kind == "" {
			kind, _ = rope.values["type"].(string)
		}
		// Their max_position_embeddings is after scaling.
		if slices.Contains([]string{"", "default", "llama3", "longrope", "su", "mrope"}, kind) {
			continue
		}
		return 0 // engines compute it from a factor, each by rules of its own
	}
	return most
}

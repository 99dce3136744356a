package enginememory

import (
	"fmt"
	"maps"
	"slices"
)

// kind is the state that a layer keeps of earlier tokens.
type kind int

const (
	full    kind = iota // keys and values of every token
	sliding             // keys and values of a window
	linear              // a state, whatever the number of tokens
	nothing             // MLP or experts alone
)

// kindNames are the words of layer_types and layers_block_type. Engines keep chunks of attention like every token.
var kindNames = map[string]kind{
	"full_attention": full, "attention": full, "chunked_attention": full, "mla_full": full, "global_attention": full,
	"deepseek_sparse_attention": full,
	"sliding_attention":         sliding, "sliding_window": sliding, "local_attention": sliding,
	"linear_attention": linear, "mamba": linear, "mamba2": linear, "kda_linear": linear, "conv": linear,
	"moe": nothing, "mlp": nothing,
}

// fullIf is the kind of a layer in models that have attention in some layers and a state in the others.
func fullIf(attention bool) kind {
	if attention {
		return full
	}
	return linear
}

// patternNames are the letters of hybrid_override_pattern.
var patternNames = map[rune]kind{'M': linear, '*': full, '-': nothing, 'E': nothing}

// kinds are those of the layers. The reason is not empty if they cannot be known.
func (c *config) kinds() (all []kind, reason string) {
	if c.layers == 0 {
		return nil, "config.json has no num_hidden_layers"
	}
	for _, rule := range []func() ([]kind, string){c.listedKinds, c.patternKinds, c.indexedKinds, c.periodicKinds} {
		if all, reason := rule(); all != nil || reason != "" {
			if reason == "" && len(all) < c.layers {
				reason = fmt.Sprintf("config.json has %d layers, and the kinds of %d", c.layers, len(all))
			}
			return all[:min(len(all), c.layers)], reason
		}
	}
	if name := c.stateField(); name != "" {
		return nil, fmt.Sprintf("%s describes states, and no rule is known for the layers that keep them", name)
	}
	return c.slidingKinds(), ""
}

// listedKinds reads a list with a name for each layer, or how many layers have each name.
func (c *config) listedKinds() (all []kind, reason string) {
	names := c.text.strings("layer_types")
	if len(names) == 0 {
		names = c.text.strings("layers_block_type")
	}
	if counts, ok := c.text.in("layer_types"); ok {
		return c.countedKinds(counts)
	}
	for _, name := range names {
		k, ok := kindNames[name]
		if !ok {
			return nil, fmt.Sprintf("no rule is known for layers of kind %q", name)
		}
		if k == sliding && c.window() == 0 {
			k = full
		}
		all = append(all, k)
	}
	return all, ""
}

// countedKinds spreads layers of the rarer kind evenly, each the last of its period.
func (c *config) countedKinds(counts object) (all []kind, reason string) {
	total, most := 0, ""
	for _, name := range slices.Sorted(maps.Keys(counts.values)) {
		if _, ok := kindNames[name]; !ok {
			return nil, fmt.Sprintf("no rule is known for layers of kind %q", name)
		}
		if total += counts.int(name); total > maxLayers {
			return nil, fmt.Sprintf("layer_types counts more than %d layers", maxLayers)
		}
		if most == "" || counts.int(name) > counts.int(most) {
			most = name
		}
	}
	all = slices.Repeat([]kind{kindNames[most]}, total)
	for name := range counts.values {
		for n, of := 0, counts.int(name); n < of && name != most; n++ {
			all[(n+1)*total/of-1] = kindNames[name]
		}
	}
	return all, ""
}

func (c *config) patternKinds() (all []kind, reason string) {
	for _, letter := range c.text.string("hybrid_override_pattern") {
		k, ok := patternNames[letter]
		if !ok {
			return nil, fmt.Sprintf("no rule is known for layers %q of hybrid_override_pattern", letter)
		}
		all = append(all, k)
	}
	if types := c.text.ints("attn_type_list"); len(all) == 0 {
		for _, t := range types {
			all = append(all, fullIf(t == 1))
		}
	}
	return all, ""
}

// indexedKinds reads lists of the layers that have attention. Kimi Linear counts them from 1.
func (c *config) indexedKinds() (all []kind, reason string) {
	at, first := append(c.text.ints("attn_layer_indices"), c.text.ints("full_attn_idxs")...), 0
	if listed, ok := c.text.in("linear_attn_config"); ok {
		at, first = listed.ints("full_attn_layers"), 1
	}
	if len(at) == 0 {
		return nil, ""
	}
	for i := range c.layers {
		all = append(all, fullIf(slices.Contains(at, i+first)))
	}
	return all, ""
}

// periodicKinds are those of models of which each n-th layer has attention, and the others a state.
func (c *config) periodicKinds() (all []kind, reason string) {
	period, offset := c.get("full_attention_interval"), -1
	if period == 0 {
		period, offset = c.get("attn_layer_period"), c.get("attn_layer_offset")
	}
	for i := 0; i < c.layers && period > 0; i++ {
		all = append(all, fullIf((i-offset)%period == 0))
	}
	return all, ""
}

// slidingKinds are those of models without layers of states.
func (c *config) slidingKinds() []kind {
	all := slices.Repeat([]kind{full}, c.layers)
	period := len(c.text.string("sliding_window_pattern")) // "LLLG"
	if period == 0 {
		period = c.get("sliding_window_pattern", "_sliding_window_pattern")
	}
	if period == 0 {
		period = slidingPeriods[c.kindOfModel]
	}
	for i := range all {
		switch {
		case c.window() == 0:
		case c.kindOfModel == "qwen2" || c.kindOfModel == "qwen3" || c.text.has("use_sliding_window"):
			if i >= c.get("max_window_layers") && c.text.has("use_sliding_window") {
				all[i] = sliding
			}
		case period > 1 && (i+1)%period != 0, alwaysSliding[c.kindOfModel]:
			all[i] = sliding
		}
	}
	return all
}

// window is the sliding window in tokens; 0: none is used.
func (c *config) window() int {
	if used, ok := c.text.value("use_sliding_window").(bool); ok && !used {
		return 0
	}
	return c.get("sliding_window", "sliding_window_size")
}

// stateField is a field with the size of states.
func (c *config) stateField() string {
	for _, name := range []string{"mamba_d_state", "ssm_state_size", "state_size", "mamba_num_heads", "mamba_n_heads", "linear_num_value_heads"} {
		if c.text.has(name) {
			return name
		}
	}
	return ""
}

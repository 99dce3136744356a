package enginememory

import (
	"fmt"
	"slices"
	"strings"
)

// config is config.json as the rules read it.
type config struct {
	outer, text   object   // text is the language model; the same as outer unless there is an encoder beside it
	kindOfModel   string   // model_type
	architectures []string // classes of the whole model, else of the part that is the language model
	layers        int
	assumed       []string
}

// languageModels are the fields under which models with encoders have their language model.
var languageModels = []string{"text_config", "llm_config", "language_config", "language_model_config"}

func newConfig(outer object) (*config, error) {
	c := &config{outer: outer, text: outer, architectures: outer.strings("architectures")}
	if thinker, ok := outer.in("thinker_config"); ok { // the part of an omni model that answers in text
		c.outer = thinker
	}
	if text, ok := c.outer.in(languageModels...); ok {
		c.text = text
	}
	if len(c.architectures) == 0 {
		c.architectures = append(c.outer.strings("architectures"), c.text.strings("architectures")...)
	}
	c.text.read = map[string]bool{}
	c.kindOfModel = c.text.string("model_type")
	if c.kindOfModel == "" {
		c.kindOfModel = c.outer.string("model_type")
	}
	c.layers = c.get("num_hidden_layers", "n_layer", "n_layers", "num_layers")
	if c.layers == 0 { // Nemotron lists its layers
		c.layers = max(len(c.text.strings("layers_block_type")), len(c.text.string("hybrid_override_pattern")))
	}
	if c.layers > maxLayers {
		return nil, fmt.Errorf("num_hidden_layers is %d: at most %d are read", c.layers, maxLayers)
	}
	c.hidden() // an answer without it is none: one that cannot be read is an error, not unknown
	return c, nil
}

// get is a number of the language model, else the default of its configuration class, which is noted.
func (c *config) get(names ...string) int {
	if n := c.text.int(names...); n > 0 {
		return n
	}
	for _, name := range names {
		_, written := c.text.values[name]
		if n := classDefaults[c.kindOfModel][name]; n > 0 && !written {
			c.assume("%s is absent: %d, the default of %s", name, n, c.kindOfModel)
			return n
		}
	}
	return 0
}

func (c *config) assume(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.assumed, text) {
		c.assumed = append(c.assumed, text)
	}
}

// heads are the attention heads, and those of keys and values of a layer.
func (c *config) heads(layer int) (query, kv int) {
	text := c.text
	if nested, ok := text.in("attn_config"); ok { // MPT
		if kv = nested.int("kv_n_heads"); nested.string("attn_type") == "multiquery_attention" {
			kv = 1
		}
	}
	query = text.intAt(layer, "num_attention_heads_per_layer", "num_attention_heads", "n_head", "n_heads", "num_heads")
	if query == 0 {
		query = c.get("num_attention_heads")
	}
	if kv > 0 {
		return query, kv
	}
	switch kind := c.kindOfModel; {
	case (kind == "falcon" || strings.HasPrefix(kind, "RefinedWeb")) && !text.bool("new_decoder_architecture") && !text.has("n_head_kv"):
		if multi, written := text.value("multi_query").(bool); multi || !written {
			return query, 1
		}
		return query, query
	case kind == "gpt_bigcode" && text.value("multi_query") != false:
		return query, 1
	case text.has("multi_query_group_num") && text.bool("multi_query_attention"):
		return query, text.int("multi_query_group_num")
	}
	if kv = text.intAt(layer, "num_key_value_heads", "num_kv_heads", "n_head_kv"); kv == 0 {
		kv = c.get("num_key_value_heads")
	}
	if kv == 0 {
		kv = query
		if _, written := text.values["num_key_value_heads"]; !written && kv > 0 {
			c.assume("num_key_value_heads is absent: %d, as many as attention heads", kv)
		}
	}
	return query, kv
}

// headDim is the width of a head.
func (c *config) headDim(query int) int {
	if d := c.get("head_dim", "kv_channels", "attention_head_dim"); d > 0 || query == 0 {
		return d
	}
	d := c.hidden() / query
	c.assume("head_dim is absent: %d, hidden_size by heads", d)
	return d
}

func (c *config) hidden() int { return c.get("hidden_size", "n_embd", "d_model", "n_embed") }

// tiedEmbeddings reports whether the embedding is the head too.
func (c *config) tiedEmbeddings() bool {
	for _, o := range []object{c.text, c.outer} {
		if t, ok := o.value("tie_word_embeddings").(bool); ok {
			return t
		}
	}
	t := tied[c.kindOfModel]
	c.assume("tie_word_embeddings is absent: %t", t)
	return t
}

package enginememory

import "fmt"

// model holds the properties of a language model that the rules need.
type model struct {
	layers    []layer
	attention string // for people: "grouped-query", "latent (MLA)", ...
	queries   int    // attention heads
	passes    int    // of a token through all layers, each with a cache of its own
	unknown   string // why attention is not known; "": it is
}

// layer is one layer's memory of earlier tokens.
type layer struct {
	kind    kind
	kvHeads int // heads whose keys and values are kept
	headDim int // values of a key, and of a value
	latent  int // values that latent attention keeps instead, whole on each GPU
	index   int // bytes a token of an index of tokens, whole on each GPU
	window  int // tokens, of sliding
	state   state
	shared  bool // takes keys and values of an earlier layer
}

// state is a linear layer's state of a sequence, in numbers of values; GPUs divide it.
type state struct {
	recurrent, convolution int
	wide                   bool // 4 bytes for each recurrent value, whatever the model has
}

// maxPasses bounds the passes of looped models; those that are published have 2 to 4.
const maxPasses = 64

func (c *config) model() *model {
	m := &model{passes: max(1, c.text.int("total_ut_steps"))}
	if m.unknown = c.withoutGeneration(); m.unknown != "" {
		return m
	}
	kinds, reason := c.kinds()
	if reason == "" {
		reason = c.addLayers(m, kinds)
	}
	c.readWeights(m)
	changing, others := c.unreadFields()
	switch {
	case changing != "":
		m.unknown = "no rule is known for the field " + changing
	case reason != "":
		m.unknown = reason
	case m.passes > maxPasses:
		m.unknown = fmt.Sprintf("total_ut_steps is %d: accepted: 1 to %d", m.passes, maxPasses)
	case others != "":
		c.assume("no rule reads %s: taken to need no memory", others)
	}
	return m
}

// readWeights marks the fields that the weights are computed from.
func (c *config) readWeights(m *model) {
	probe, before := *c, len(*c.text.problems)
	probe.matrices(m)
	_, _ = probe.dtypeBytes(&Run{})
	probe.positions()
	for name := range c.text.values {
		if c.isEncoder(name) {
			c.text.read[name] = true
		}
	}
	*c.text.problems = (*c.text.problems)[:before]
}

func (c *config) addLayers(m *model, kinds []kind) (unknown string) {
	shared := c.text.int("num_kv_shared_layers")
	for i, k := range kinds {
		l := layer{kind: k, shared: i >= len(kinds)-shared}
		attention, _ := c.block(i, "attention")
		perGroup := attention.int("n_heads_in_group") // attention heads to a head of keys and values
		switch {
		case k == linear:
			l.state, _ = c.linear(func(string, int, division, role) {})
		case k == nothing || attention.bool("no_op") || attention.bool("replace_with_linear"):
			l.kind = nothing
		case perGroup > 0 && (attention.has("window_length") || attention.has("sparsify")):
			return "no rule is known for a window of block_configs"
		case perGroup > 0:
			heads := c.text.int("num_attention_heads")
			l.kvHeads, l.headDim = heads/perGroup, c.headDim(heads)
		default:
			if unknown = c.addAttention(&l, i); unknown != "" {
				return unknown
			}
		}
		m.layers = append(m.layers, l)
	}
	m.queries, _ = c.heads(0)
	m.attention = m.describe()
	return ""
}

// block is a part of a layer after a search of architectures (block_configs); false: there was none.
func (c *config) block(i int, part string) (object, bool) {
	list, _ := c.text.value("block_configs").([]any)
	if i >= len(list) {
		return object{}, false
	}
	values, _ := list[i].(map[string]any)
	found, _ := object{values: values, problems: c.text.problems}.in(part)
	return found, true
}

// addAttention fills in the memory of a layer with attention.
func (c *config) addAttention(l *layer, i int) (unknown string) {
	query, kv := c.heads(i)
	if latent := c.get("kv_lora_rank"); latent > 0 && c.kindOfModel != "minicpm3" {
		l.latent = latent + c.get("qk_rope_head_dim")
		l.index = c.indexBytes(i)
		return ""
	}
	l.kvHeads, l.headDim = kv, c.headDim(query)
	if global := c.get("global_head_dim"); l.kind == full && global > 0 {
		l.headDim = global
		if n := c.text.int("num_global_key_value_heads"); n > 0 {
			l.kvHeads = n
		}
	}
	if l.kind == sliding {
		l.window = c.window()
	}
	v := c.text.int("v_head_dim")
	switch {
	case c.text.has("kv_lora_rank"):
		return "no rule is known for latent attention of " + c.kindOfModel
	case v > 0 && v != l.headDim:
		return fmt.Sprintf("no rule is known for keys of %d and values of %d", l.headDim, v)
	case l.kvHeads == 0 || l.headDim == 0:
		return "config.json has no number of attention heads, or no width of a head"
	case query > 0 && l.kvHeads > query:
		return fmt.Sprintf("config.json has %d attention heads, and %d of keys and values", query, l.kvHeads)
	}
	return ""
}

// indexBytes is the index of sparse attention: 8-bit values, and a scale of 4 bytes for 128 of them. Some layers use another's.
func (c *config) indexBytes(i int) int {
	dim := c.text.int("index_head_dim")
	if types := c.text.strings("indexer_types"); dim == 0 || i < len(types) && types[i] != "full" {
		return 0
	}
	if counts, ok := c.text.in("indexer_types"); ok && i >= counts.int("full") {
		return 0
	}
	return dim + 4*((dim+127)/128)
}

// linear is the state of a linear layer, by whichever fields describe it, and adds the layer's matrices.
func (c *config) linear(add adder) (s state, unknown string) {
	kernel := max(1, c.get("linear_conv_kernel_dim", "conv_kernel", "mamba_d_conv", "conv_L_cache")) - 1
	dtype := c.text.string("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
	h, wide := c.hidden(), dtype == "float32"
	if delta, ok := c.text.in("linear_attn_config"); ok { // Kimi Delta Attention
		heads, dim := delta.int("num_heads"), delta.int("head_dim")
		inner := heads * dim
		add("self_attn.qkvo_proj", 4*h*inner, divided, projection)
		gate := h*dim + dim*inner
		if delta.bool("use_full_rank_gate") {
			gate = h * inner
		}
		add("self_attn.f_proj", h*dim+dim*inner+gate+h*heads, divided, projection)
		return state{inner * dim, 3 * inner * (max(1, delta.int("short_conv_kernel_size")) - 1), true}, ""
	}
	if heads := c.get("linear_num_value_heads"); heads > 0 { // Gated DeltaNet
		keys, values := c.get("linear_num_key_heads")*c.get("linear_key_head_dim"), heads*c.get("linear_value_head_dim")
		add("linear_attn.in_proj_qkvz", h*(2*keys+2*values), divided, projection)
		add("linear_attn.in_proj_ba", h*2*heads, divided, precise)
		add("linear_attn.conv1d", (2*keys+values)*c.get("linear_conv_kernel_dim"), divided, precise)
		add("linear_attn.out_proj", values*h, divided, projection)
		return state{values * c.get("linear_key_head_dim"), (2*keys + values) * kernel, wide || dtype == ""}, ""
	}
	if heads := c.get("mamba_num_heads", "mamba_n_heads"); heads > 0 { // Mamba 2
		inner, size := heads*c.get("mamba_head_dim", "mamba_d_head"), c.get("ssm_state_size", "mamba_d_state")
		groups := 2 * max(1, c.get("n_groups", "mamba_n_groups")) * size
		add("mixer.in_proj", h*(2*inner+groups+heads), divided, projection)
		add("mixer.conv1d", (inner+groups)*c.get("conv_kernel", "mamba_d_conv"), divided, precise)
		add("mixer.out_proj", inner*h, divided, projection)
		return state{inner * size, (inner + groups) * kernel, wide}, ""
	}
	if expand := c.get("mamba_expand"); expand > 0 { // Mamba
		inner, size, rank := expand*h, c.get("mamba_d_state"), max(c.text.int("mamba_dt_rank"), ceil(h, 16))
		add("mamba.in_proj", h*2*inner, divided, projection)
		add("mamba.x_proj", inner*(rank+2*size)+rank*inner+inner*size, divided, precise)
		add("mamba.out_proj", inner*h, divided, projection)
		return state{inner * size, inner * kernel, wide}, ""
	}
	if c.text.has("conv_L_cache") { // short convolutions
		add("conv.in_proj", 3*h*h, divided, projection)
		add("conv.out_proj", h*h, divided, projection)
		return state{convolution: h * (c.text.int("conv_L_cache") - 1)}, ""
	}
	return state{}, "config.json does not describe its linear layers"
}

// describe names the attention for people.
func (m *model) describe() string {
	var name string
	has := map[kind]int{}
	for _, l := range m.layers {
		has[l.kind]++
		switch {
		case l.kind != full && l.kind != sliding:
		case l.latent > 0:
			name = "latent (MLA)"
		case l.kvHeads == 1:
			name = "multi-query"
		case l.kvHeads == m.queries:
			name = "multi-head"
		default:
			name = "grouped-query"
		}
	}
	for _, more := range []struct {
		kind kind
		text string
	}{{sliding, "sliding windows"}, {linear, "linear layers"}} {
		if n := has[more.kind]; n > 0 {
			name += fmt.Sprintf(", %s in %d of %d layers", more.text, n, len(m.layers))
		}
	}
	return name
}

package enginememory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// division is how GPUs divide a matrix.
type division int

const (
	divided  division = iota
	byKV              // one head of keys and values each at least
	repeated          // whole on each
)

// parts is how many parts of the matrix there are, one or more GPUs with each.
func (d division) parts(gpus, kvHeads int) int {
	switch d {
	case divided:
		return gpus
	case byKV:
		return min(gpus, kvHeads)
	}
	return 1
}

// matrix is one named matrix of a checkpoint, or the matrices of like names of all experts of a layer.
type matrix struct {
	name     string // from "layers.": the name in lists of a quantization
	layer    int    // -1: of no layer
	values   float64
	division division
	role     role
}

// role is the role of a matrix for a quantization and for an engine.
type role int

const (
	projection role = iota // quantized
	expert                 // quantized
	precise                // router, norms, embeddings: never quantized
	head                   // quantized by some methods
	tower                  // of an encoder for images or sound
	predictor              // of tokens further ahead: stored, and loaded for speculative decoding alone
)

// matrices are those of a checkpoint, but for biases and norms, which are less than a thousandth. The reason is not empty if they are
// not known.
func (c *config) matrices(m *model) (all []matrix, unknown string) {
	h, vocabulary := c.hidden(), c.get("vocab_size", "padded_vocab_size")
	if h == 0 || vocabulary == 0 {
		return nil, "config.json has no hidden_size or no vocab_size"
	}
	add := func(list ...matrix) { all = append(all, list...) }
	add(matrix{name: "embed_tokens", layer: -1, values: float64(vocabulary * h), role: precise})
	if !c.tiedEmbeddings() {
		add(matrix{name: "lm_head", layer: -1, values: float64(vocabulary * h), role: head})
	}
	for i := range m.layers {
		var list []matrix
		if list, unknown = c.layerMatrices(&m.layers[i], i); unknown != "" {
			return nil, unknown
		}
		add(list...)
	}
	if per := c.text.int("hidden_size_per_layer_input"); per > 0 { // an embedding for each layer
		n := len(m.layers) * per
		add(matrix{name: "embed_tokens_per_layer", layer: -1,
			values: float64(c.get("vocab_size_per_layer_input", "vocab_size")) * float64(n), role: precise},
			matrix{name: "per_layer_model_projection", layer: -1, values: float64(h) * float64(n+2*n), role: precise, division: repeated})
	}
	// Layers of multi-token prediction that a checkpoint has beside the model's.
	if n := c.text.int("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"); n > 0 && len(m.layers) > 0 {
		list, _ := c.layerMatrices(&m.layers[len(m.layers)-1], len(m.layers)-1)
		for _, x := range list {
			add(matrix{name: x.name, layer: x.layer, values: float64(n) * x.values, role: predictor})
		}
		add(matrix{name: "eh_proj", layer: -1, values: float64(n) * 2 * float64(h*h), role: predictor})
	}
	towers, unknown := c.towers(h)
	return append(all, towers...), unknown
}

func (c *config) layerMatrices(l *layer, i int) ([]matrix, string) {
	var list []matrix
	add := func(name string, values int, d division, r role) {
		list = append(list, matrix{fmt.Sprintf("layers.%d.%s", i, name), i, float64(values), d, r})
	}
	switch {
	case l.kind == linear:
		if _, unknown := c.linear(add); unknown != "" {
			return nil, unknown
		}
	case l.kind == nothing:
	case l.latent > 0:
		c.addLatent(add, l)
	default:
		c.addProjections(add, l, i)
	}
	return list, c.addFeedForward(add, &list, i)
}

// adder adds a matrix of a layer.
type adder func(name string, values int, d division, r role)

// addProjections adds those of attention by heads.
func (c *config) addProjections(add adder, l *layer, i int) {
	query, _ := c.heads(i)
	h, wide := c.hidden(), query*l.headDim
	gate := 1
	if c.text.bool("attn_output_gate") || c.text.bool("attention_output_gate") || c.kindOfModel == "qwen3_next" {
		gate = 2
	}
	add("self_attn.q_proj", gate*h*wide, divided, projection)
	add("self_attn.k_proj", h*l.kvHeads*l.headDim, byKV, projection)
	if !c.text.bool("attention_k_eq_v") || l.kind == sliding {
		add("self_attn.v_proj", h*l.kvHeads*l.headDim, byKV, projection)
	}
	add("self_attn.o_proj", wide*h, divided, projection)
}

// addLatent adds those of latent attention. The matrices down to the latent are whole on each GPU.
func (c *config) addLatent(add adder, l *layer) {
	query, _ := c.heads(0)
	h, latent, rope := c.hidden(), c.get("kv_lora_rank"), c.get("qk_rope_head_dim")
	nope, v, low := c.get("qk_nope_head_dim"), c.get("v_head_dim"), c.text.int("q_lora_rank")
	if low > 0 {
		add("self_attn.q_a_proj", h*low, repeated, projection)
		add("self_attn.q_b_proj", low*query*(nope+rope), divided, projection)
	} else {
		add("self_attn.q_proj", h*query*(nope+rope), divided, projection)
	}
	add("self_attn.kv_a_proj_with_mqa", h*l.latent, repeated, projection)
	add("self_attn.kv_b_proj", latent*query*(nope+v), divided, projection)
	add("self_attn.o_proj", query*v*h, divided, projection)
	if c.text.bool("mla_use_output_gate") {
		add("self_attn.g_proj", h*query*v, divided, projection)
	}
	if heads, dim := c.text.int("index_n_heads"), c.text.int("index_head_dim"); l.index > 0 {
		add("self_attn.indexer.wq_b", max(low, 1)*heads*dim, repeated, projection)
		add("self_attn.indexer.wk", h*(dim+heads), repeated, projection)
	}
}

// addFeedForward adds those of a layer's MLP or experts.
func (c *config) addFeedForward(add adder, list *[]matrix, i int) (unknown string) {
	block := c.blockName(i)
	if block == "mixer" {
		return ""
	}
	f := c.experts(i)
	if block == "mlp" {
		f = feedForward{dense: c.denseWidth(i)}
	}
	h, sides := c.hidden(), 3
	switch {
	case ungated[c.kindOfModel] || c.text.string("hidden_act", "mlp_hidden_act") == "relu2":
		sides = 2
	case !gated[c.kindOfModel]:
		name := cmp.Or(c.kindOfModel, strings.Join(c.architectures, ", "))
		c.assume("no rule is known for the MLP of %s: taken to have a gate, three matrices", shortName(name))
	}
	if f.count > 0 {
		add("mlp.gate", h*f.count, repeated, precise)
		width := h
		if latent := c.text.int("moe_latent_size", "routed_expert_hidden_size"); latent > 0 {
			width = latent
			add("mlp.fc_latent_proj", 2*h*latent, repeated, projection)
		}
		module := "mlp.experts"
		if c.text.bool("enable_moe_block") { // beside the MLP
			module = "experts"
		}
		*list = append(*list, matrix{fmt.Sprintf("layers.%d.%s.0.gate_proj", i, module),
			i, float64(f.count) * float64(sides*width) * float64(f.width), divided, expert})
		if f.shared > 0 {
			add("mlp.shared_experts.gate_proj", sides*h*f.shared, divided, projection)
		}
	}
	switch {
	case f.count > 0 && f.width == 0, f.count == 0 && f.dense == 0 && !f.none:
		return "config.json has no width of its MLP"
	case f.dense > 0:
		for _, name := range []string{"mlp.up_proj", "mlp.down_proj", "mlp.gate_proj"}[:sides] {
			add(name, h*f.dense, divided, projection)
		}
	}
	return ""
}

// patternBlocks are the letters of hybrid_override_pattern for layers without a mixer.
var patternBlocks = map[rune]string{'-': "mlp", 'E': "moe"}

// blockName is the kind of a layer in models whose layers have a mixer or an MLP alone: "mixer", "mlp" or "moe". "": it
// has both.
func (c *config) blockName(i int) string {
	names := c.text.strings("layers_block_type")
	for _, letter := range c.text.string("hybrid_override_pattern") {
		names = append(names, patternBlocks[letter])
	}
	switch alone := slices.Contains(names, "mlp") || slices.Contains(names, "moe"); {
	case !alone || i >= len(names):
		return ""
	case names[i] == "mlp" || names[i] == "moe":
		return names[i]
	}
	return "mixer"
}

// feedForward follows attention in a layer: an MLP, or experts with perhaps shared ones, or both.
type feedForward struct {
	count, width int // of the experts of which a router chooses
	shared       int // width of the part that every token goes through beside them
	dense        int // width of an MLP
	none         bool
}

func (c *config) experts(i int) (f feedForward) {
	dense := c.denseWidth(i)
	count := c.text.intAt(i, "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "num_routed_experts")
	if count == 0 && (c.kindOfModel == "mixtral" || c.kindOfModel == "gpt_oss" || c.kindOfModel == "llama4_text") {
		count = c.get("num_local_experts")
	}
	if nested, ok := c.text.in("ffn_config"); ok && nested.has("moe_num_experts") { // DBRX
		return feedForward{count: nested.int("moe_num_experts"), width: nested.int("ffn_hidden_size")}
	}
	if ffn, ok := c.block(i, "ffn"); ok {
		return c.nasFeedForward(ffn)
	}
	if count < 2 || !c.sparse(i) {
		return feedForward{dense: dense}
	}
	f = feedForward{count: count, width: c.text.intAt(i, "moe_intermediate_size", "moe_ffn_hidden_size", "expert_intermediate_size")}
	if f.width == 0 {
		f.width = cmp.Or(c.text.intAt(i, "intermediate_size"), c.get("intermediate_size"))
	}
	shared := c.text.intAt(i, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
	f.shared = c.text.intAt(i, "shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size")
	switch wide := c.text.int("moe_shared_expert_intermediate_size"); {
	case wide > 0 && shared > 0:
		f.shared = wide * shared
	case f.shared == 0:
		f.shared = shared * f.width
	}
	if c.kindOfModel == "llama4_text" {
		f.shared = f.width
	}
	if c.text.bool("enable_moe_block") {
		f.dense = dense
	}
	return f
}

func (c *config) nasFeedForward(ffn object) feedForward {
	if ffn.bool("no_op") {
		return feedForward{none: true}
	}
	if ffn.bool("replace_with_linear") {
		return feedForward{dense: ceil(c.hidden(), 3)}
	}
	if width := ffn.int("intermediate_size"); width > 0 {
		return feedForward{dense: width}
	}
	width := int(2 * ffn.ratio("ffn_mult") * float64(c.hidden()) / 3)
	return feedForward{dense: ceil(width, 256) * 256}
}

func (c *config) denseWidth(i int) int {
	width := c.text.intAt(i, "intermediate_size_mlp", "dense_intermediate_size", "intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim")
	switch kind := c.kindOfModel; {
	case kind == "llama4_text":
		return c.get("intermediate_size_mlp")
	case kind == "qwen": // of both halves
		return width / 2
	case kind == "granitemoehybrid": // an MLP beside the experts, or alone
		return c.text.int("shared_intermediate_size")
	case c.text.bool("block_auto_adjust_ff_dim"): // LFM2
		return ceil(2*max(width, c.text.int("block_ff_dim"))/3, 256) * 256
	case c.text.bool("use_double_wide_mlp") && i >= c.layers-c.text.int("num_kv_shared_layers"):
		return 2 * width
	case width > 0:
		return width
	case ungated[kind]:
		return max(c.text.int("expansion_ratio"), 4) * c.hidden()
	}
	return c.get("intermediate_size")
}

// sparse reports whether a layer of a model with experts has them.
func (c *config) sparse(i int) bool {
	text := c.text
	if types := text.strings("mlp_layer_types"); i < len(types) {
		return types[i] == "sparse"
	}
	for _, listed := range []string{"moe_layers_enum", "moe_layers"} { // "4,5,6", or a list
		if names := strings.Split(text.string(listed), ","); len(names) > 1 {
			return containsNumber(names, i)
		}
		if at := text.ints(listed); len(at) > 0 {
			return containsNumber(at, i)
		}
	}
	if freq := text.ints("moe_layer_freq"); i < len(freq) {
		return freq[i] != 0
	}
	first := text.int("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers")
	last := text.int("moe_layer_end_index")
	if i < first || last > 0 && i > last || containsNumber(text.ints("mlp_only_layers"), i) {
		return false
	}
	if every := text.int("expert_layer_period"); every > 0 { // Jamba
		return (i-text.int("expert_layer_offset"))%every == 0
	}
	if every := max(text.int("decoder_sparse_step"), c.get("interleave_moe_layer_step")); every > 1 {
		return (i+1)%every == 0
	}
	every := max(text.int("moe_layer_freq", "moe_layer_interval"), 1)
	return i%every == 0
}

func containsNumber[T any](list []T, i int) bool {
	for _, e := range list {
		if strings.TrimSpace(fmt.Sprint(e)) == fmt.Sprint(i) {
			return true
		}
	}
	return false
}

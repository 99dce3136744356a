package enginememory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// encoderNames are the usual fields of encoders. One of them without a size is unknown; a network under another name is one if it has
// layers and a width.
var encoderNames = []string{"vision_config", "audio_config", "vision_tower_config", "visual"}

// towers are the matrices of encoders for images and sound. Engines keep them whole on each GPU.
func (c *config) towers(hidden int) (all []matrix, unknown string) {
	names := slices.Sorted(maps.Keys(c.outer.values))
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(encoderNames, n) || slices.Contains(languageModels, n) })
	for i, name := range slices.Concat(encoderNames, names) {
		t, ok := c.outer.in(name)
		if !ok {
			continue
		}
		var problems []error
		t.problems = &problems // an encoder that cannot be read leaves the rest known
		values := c.encoder(t, hidden, i >= len(encoderNames))
		switch {
		case i >= len(encoderNames) && values == 0:
			continue
		case len(problems) > 0:
			return nil, fmt.Sprintf("the encoder in %s: %v", name, problems[0])
		case values == 0:
			return nil, "the size of the encoder in " + name + " is not in config.json"
		}
		c.assume("the encoder in %s has %.2f billion parameters, by its dimensions", name, values/1e9)
		all = append(all, matrix{name: name, layer: -1, values: values, role: tower, division: repeated})
	}
	return all, ""
}

// encoderDefaults are the values that transformers' configuration classes take for an encoder where config.json has none, by model_type.
var encoderDefaults = map[string]map[string]int{
	"siglip_vision_model": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12},
	"clip_vision_model":   {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12},
	"pixtral":             {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24},
	"qwen2_vl":            {"embed_dim": 1280, "depth": 32},
	"qwen2_5_vl":          {"hidden_size": 3584, "intermediate_size": 3420, "depth": 32},
}

// encoder is the number of values of a transformer for images or sound, and of the projection of its output to the
// language model. 0: they are not known, or a network that must have layers has none.
func (c *config) encoder(t object, hidden int, mustHaveLayers bool) float64 {
	kind := t.string("model_type")
	get := func(names ...string) int {
		n := t.int(names...)
		for i := 0; n == 0 && i < len(names); i++ {
			n = encoderDefaults[kind][names[i]]
		}
		return n
	}
	depth := get("depth", "num_hidden_layers", "vt_num_hidden_layers", "encoder_layers", "layers")
	wide := get("embed_dim", "hidden_size", "vt_hidden_size", "d_model", "width")
	inner := get("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim")
	if inner == 0 {
		inner = int(float64(wide) * cmp.Or(t.ratio("mlp_ratio"), 4))
	}
	if mustHaveLayers && (depth == 0 || wide == 0) {
		return 0
	}
	sides := 2
	if gatedEncoders[kind] || t.string("hidden_act") == "silu" && kind != "qwen2_vl" {
		sides = 3
	}
	merge := max(t.int("spatial_merge_size"), c.outer.int("spatial_merge_size"), 1)
	if kind == "" && c.outer.has("downsample_ratio") || len(t.ints("merge_kernel_size")) > 0 { // InternVL, Kimi
		merge = 2
	}
	values := float64(depth) * (4*float64(wide*wide) + float64(sides)*float64(wide)*float64(inner))
	joined := float64(wide * merge * merge)
	switch { // two matrices, of which mergers of Qwen begin with one as wide as it reads
	case t.has("out_hidden_size") || kind == "qwen2_vl":
		mergers := 1 + len(t.ints("deepstack_visual_indexes"))
		values += float64(mergers) * (joined*joined + joined*float64(hidden))
	case values > 0:
		values += joined*float64(hidden) + float64(hidden)*float64(hidden)
	}
	if kind == "pixtral" && merge > 1 {
		values += joined * float64(wide)
	}
	positions := max(t.int("num_position_embeddings"), t.int("position_embedding_size"))
	return values + float64(positions*wide) + float64(3*max(t.int("temporal_patch_size"), 1)*t.int("patch_size")*t.int("patch_size")*wide)
}

// gatedEncoders have a gate in their MLP.
var gatedEncoders = words("qwen2_5_vl pixtral gemma4_vision")

// isEncoder reports whether a field of a model without a part for text is an encoder, which towers counts.
func (c *config) isEncoder(name string) bool {
	t, ok := object{values: c.text.values, problems: new([]error)}.in(name)
	return ok && c.encoder(t, 0, true) > 0
}

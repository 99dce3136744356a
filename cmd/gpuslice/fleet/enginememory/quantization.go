package enginememory

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// quantization is how a checkpoint stores the matrices that are quantized.
type quantization struct {
	method  string
	bytes   float64 // of a value, its part of scales and zero points included; 0: not known
	unknown string  // why it is not
	head    bool    // the head is quantized too
	experts bool    // experts alone are
	kv      float64 // bytes of a value of the KV cache that the checkpoint is made for; 0: none is named

	skipped  map[int][]string // names from "layers.", by layer
	anywhere []string         // names without a layer
	patterns []*regexp.Regexp
	targets  []*regexp.Regexp // if not empty, only these are quantized
}

// quantization reads quantization_config, or modelopt's file beside config.json.
func (c *config) quantization(beside *object) (*quantization, error) {
	q, ok := c.outer.in("quantization_config", "compression_config")
	if !ok {
		q, ok = c.text.in("quantization_config", "compression_config")
	}
	if !ok && beside != nil {
		if q, ok = beside.in("quantization"); ok {
			q.values["quant_method"] = "modelopt"
		}
	}
	if !ok {
		return nil, nil
	}
	var problems []error
	q.problems = &problems
	out := &quantization{method: strings.ToLower(q.string("quant_method")), skipped: map[int][]string{}}
	if out.method == "" && q.has("quant_algo") {
		out.method = "modelopt"
	}
	if out.method == "" && (q.bool("load_in_4bit") || q.bool("load_in_8bit")) {
		out.method = "bitsandbytes"
	}
	out.bytes, out.unknown = out.size(q)
	if scheme, ok := q.in("kv_cache_scheme"); ok && scheme.int("num_bits") == 8 ||
		strings.EqualFold(q.string("kv_cache_quant_algo", "kv_cache_scheme"), "fp8") {
		out.kv = 1
	}
	err := out.skip(q)
	if len(problems) > 0 {
		out.bytes, out.unknown = 0, "quantization_config: "+problems[0].Error()
	}
	return out, err
}

// size is the bytes of a value by method.
func (out *quantization) size(q object) (bytes float64, unknown string) {
	switch out.method {
	case "fp8", "fbgemm_fp8", "compressed-tensors-fp8":
		return 1, ""
	case "mxfp4":
		out.experts = true
		return withScales(4, 32, 8), ""
	case "awq", "gptq", "auto-round", "auto_round", "gptq_marlin", "awq_marlin", "intel/auto-round":
		bits, group := q.int("bits", "w_bit"), q.int("group_size", "q_group_size")
		if bits == 0 || bits > 16 {
			return 0, fmt.Sprintf("quantization_config of %s has no bits", out.method)
		}
		out.head = q.bool("lm_head")
		return withScales(bits, group, 16+bits), ""
	case "bitsandbytes":
		if !q.bool("load_in_4bit") && !q.bool("_load_in_4bit") {
			return 1, ""
		}
		if q.values["bnb_4bit_use_double_quant"] == false {
			return withScales(4, 64, 32), ""
		}
		return withScales(4, 64, 8), ""
	case "compressed-tensors":
		out.targets = targets(q)
		return compressedTensors(q)
	case "modelopt", "modelopt_fp4", "modelopt_mixed":
		switch algorithm := strings.ToUpper(q.string("quant_algo")); algorithm {
		case "FP8", "FP8_PB_WO", "FP8_PER_CHANNEL_PER_TOKEN", "W8A8_SQ_PER_CHANNEL":
			return 1, ""
		case "NVFP4", "W4A16_NVFP4", "NVFP4_AWQ":
			return withScales(4, 16, 8), ""
		case "W4A16_AWQ", "W4A8_AWQ":
			return withScales(4, max(q.int("group_size"), 128), 16), ""
		default:
			return 0, fmt.Sprintf("quantization %q of modelopt", algorithm)
		}
	case "quark":
		return quark(q)
	}
	return 0, fmt.Sprintf("quantization method %q", out.method)
}

// withScales is the bytes of a value of so many bits, if each group of values has so many bits of scale and zero point. A group of 0
// is a row or column, whose scale is next to nothing.
func withScales(bits, group, scale int) float64 {
	all := float64(bits)
	if group > 0 {
		all += float64(scale) / float64(group)
	}
	return all / 8
}

func compressedTensors(q object) (bytes float64, unknown string) {
	groups, _ := q.in("config_groups")
	for name := range groups.values {
		group, _ := groups.in(name)
		weights, ok := group.in("weights")
		if !ok {
			continue
		}
		bits, size, scale := weights.int("num_bits"), weights.int("group_size"), 16
		if bits == 0 || bits > 16 {
			return 0, "a group of quantization_config has no num_bits"
		}
		switch {
		case strings.HasPrefix(q.string("format")+group.string("format"), "marlin-24"):
			return 0, "quantization with 2:4 sparsity"
		case bits == 4 && weights.string("type") == "float": // NVFP4, MXFP4
			scale = 8
		case bits == 8 && weights.string("strategy") == "block":
			size = 0
		case weights.values["symmetric"] == false:
			scale += bits
		}
		if b := withScales(bits, size, scale); bytes != 0 && bytes != b {
			return 0, "quantization_config with groups of several sizes"
		} else {
			bytes = b
		}
	}
	if bytes == 0 {
		return 0, "quantization_config without the size of weights"
	}
	return bytes, ""
}

// targets are the patterns of quantized layers, if it is not each linear layer.
func targets(q object) (all []*regexp.Regexp) {
	groups, _ := q.in("config_groups")
	for name := range groups.values {
		group, _ := groups.in(name)
		for _, target := range group.strings("targets") {
			pattern, isRegexp := strings.CutPrefix(target, "re:")
			if !isRegexp {
				return nil
			}
			all = addPattern(all, pattern)
		}
	}
	return all
}

func quark(q object) (bytes float64, unknown string) {
	global, _ := q.in("global_quant_config")
	weight, _ := global.in("weight")
	switch dtype := weight.string("dtype"); dtype {
	case "fp8_e4m3", "int8":
		return 1, ""
	case "fp4":
		return withScales(4, weight.int("group_size"), 8), ""
	case "int4", "uint4":
		return withScales(4, weight.int("group_size"), 16), ""
	default:
		return 0, fmt.Sprintf("quantization %q of quark", dtype)
	}
}

// skip reads the names that stay as they are.
func (out *quantization) skip(q object) error {
	names := q.strings("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "exclude", "llm_int8_skip_modules")
	if rules, ok := q.in("dynamic"); ok { // of GPTQModel
		for name := range rules.values {
			if rest, minus := strings.CutPrefix(name, "-:"); minus {
				names = append(names, "re:"+rest)
			}
		}
	}
	if extra, ok := q.in("extra_config"); ok { // of AutoRound
		for name := range extra.values {
			if its, _ := extra.in(name); its.int("bits") >= 16 {
				names = append(names, name)
			}
		}
	}
	if len(names) > maxNames {
		return fmt.Errorf("quantization_config leaves out %d names, at most %d are read", len(names), maxNames)
	}
	for _, name := range names {
		out.skipName(name)
	}
	return nil
}

// modules are other names of matrices that have one name here.
var modules = strings.NewReplacer(
	"mixer.q_proj", "self_attn.q_proj", "mixer.k_proj", "self_attn.k_proj",
	"mixer.v_proj", "self_attn.v_proj", "mixer.o_proj", "self_attn.o_proj", "mixer.shared_experts", "mlp.shared_experts",
	"mixer.experts", "mlp.experts", "block_sparse_moe", "mlp",
	"in_proj_qkv", "in_proj_qkvz", "shared_expert.", "shared_experts.")

var ofLayer = regexp.MustCompile(`layers\.([0-9]{1,4})(\..*|\*?)$`)

func (out *quantization) skipName(name string) {
	name = modules.Replace(name)
	pattern, isRegexp := strings.CutPrefix(name, "re:")
	if at := ofLayer.FindStringSubmatch(name); at != nil && !isRegexp {
		layer, _ := strconv.Atoi(at[1]) // four digits
		out.skipped[layer] = append(out.skipped[layer], strings.TrimSuffix(at[0], "*"))
		return
	}
	if !isRegexp && !strings.Contains(name, "*") {
		out.anywhere = append(out.anywhere, "."+name+".")
		return
	}
	if !isRegexp {
		if at := strings.Index(name, "layers."); at >= 0 {
			name = name[at:]
		}
		pattern = strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, `.*`)
	}
	out.patterns = addPattern(out.patterns, pattern)
}

// addPattern adds a regular expression that matches from the beginning of a word of a name. One that Go does not know is left out.
func addPattern(all []*regexp.Regexp, pattern string) []*regexp.Regexp {
	const most = 256
	if r, err := regexp.Compile(`^(?:.*\.)?(?:` + pattern + `)`); err == nil && len(all) < most {
		return append(all, r)
	}
	return all
}

func matchesAny(all []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(all, func(r *regexp.Regexp) bool { return r.MatchString(name) })
}

// of is the bytes of a value of a matrix, where plain is that of one that is not quantized.
func (out *quantization) of(x *matrix, plain float64) float64 {
	switch {
	case out == nil, x.role == precise, x.role == tower, x.role == head && !out.head, out.experts && x.role != expert,
		len(out.targets) > 0 && !matchesAny(out.targets, x.name), out.skips(x.name, x.layer):
		return plain
	}
	return out.bytes
}

func (out *quantization) skips(name string, layer int) bool {
	words := "." + name + "."
	return slices.ContainsFunc(out.skipped[layer], func(s string) bool { return strings.HasPrefix(name, s) }) ||
		slices.ContainsFunc(out.anywhere, func(s string) bool { return strings.Contains(words, s) }) || matchesAny(out.patterns, name)
}

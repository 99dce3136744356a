package enginememory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/enginememory"
)

// run is the command's default.
func run() enginememory.Run {
	return enginememory.Run{Engine: "vllm", Context: 8192, Concurrency: 16, TensorParallel: 1}
}

// small is a model without rules of its own.
const small = `"architectures":["SmallForCausalLM"],` +
	`"hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":4,"num_attention_heads":8,"vocab_size":32000`

func estimate(t *testing.T, config string, r enginememory.Run) *enginememory.Estimate {
	t.Helper()
	e, err := enginememory.New([]byte("{"+config+"}"), enginememory.Stored{}, r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestUnknownAttention(t *testing.T) {
	for _, c := range []struct{ name, config, reason string }{
		{"a field that no rule reads", small + `,"rwkv_head_size":64`, "no rule is known for the field rwkv_head_size"},
		{"a cache that is compressed", small + `,"compress_ratios":[4,4]`, "the field compress_ratios"},
		{"sparse attention", small + `,"sparse_attention_config":{"block":64}`, "the field sparse_attention_config"},
		{"cross-attention", small + `,"cross_attention_layers":[3]`, "the field cross_attention_layers"},
		{"a kind of layer", small + `,"layer_types":["full_attention","spiral_attention"]`, `layers of kind "spiral_attention"`},
		{"too few kinds", small + `,"layer_types":["full_attention"]`, "4 layers, and the kinds of 1"},
		{"two widths", small + `,"v_head_dim":64`, "keys of 128 and values of 64"},
		{"an encoder with a decoder", small + `,"is_encoder_decoder":true`, "an encoder and a decoder"},
		{"an encoder", small + `,"model_type":"bert"`, "type bert has no KV cache"},
		{"no heads", `"model_type":"llm","is_decoder":true,"hidden_size":1024,"num_hidden_layers":4`, "no number of attention heads"},
		{"no layers", `"is_decoder":true,"hidden_size":1024`, "no num_hidden_layers"},
		{"a layer of eight that has attention (Ling 2.5)",
			small + `,"model_type":"bailing_hybrid","kv_lora_rank":512,"qk_rope_head_dim":64,"layer_group_size":8`,
			"the field layer_group_size"},
		{"a state in half of the layers (Phi-4-mini-flash)", small + `,"mamba_d_state":16,"mamba_expand":2,"mb_per_layer":2`,
			"the field mb_per_layer"},
		{"a state beside attention in each layer (Falcon-H1)", small + `,"attention_in_multiplier":1.5,"mamba_d_ssm":3072,"mamba_d_state":256`,
			"the field mamba_d_ssm"},
		{"states without a rule for their layers", small + `,"mamba_d_state":256`, "mamba_d_state describes states"},
		{"layers that are run again and again (Huginn)", small + `,"mean_recurrence":32,"n_layers_in_recurrent_block":4`,
			"the field mean_recurrence"},
		{"a loop (IQuest-Coder)", small + `,"loop_num":2,"loop_window_size":64`, "the field loop_num"},
		{"shared layers (Zamba2)", small + `,"hybrid_layer_ids":[1,3],"num_mem_blocks":2`, "the field hybrid_layer_ids"},
		{"windows under another name (MiMo-V2)", small + `,"hybrid_layer_pattern":[0,1],"swa_head_dim":192`, "the field hybrid_layer_pattern"},
		{"too many passes", small + `,"total_ut_steps":100000`, "total_ut_steps is 100000"},
		{"more heads of keys", small + `,"num_key_value_heads":16`, "8 attention heads, and 16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := estimate(t, c.config, run())
			if e.KVBytesPerToken != nil || e.KVBytes != nil || e.SliceBytes != nil || len(e.Flags) > 0 {
				t.Errorf("an answer: %+v", e)
			}
			if !strings.Contains(e.Unknown, "this model's attention is unknown: ") || !strings.Contains(e.Unknown, c.reason) {
				t.Errorf("unknown: %q, want %q", e.Unknown, c.reason)
			}
		})
	}
}

func TestKVBytesPerToken(t *testing.T) {
	const dense = small + `,"torch_dtype":"bfloat16"`
	for _, c := range []struct {
		name, config string
		gpus         int
		kvType       string
		want         int64
	}{
		{"four passes, each with a cache (Ouro)", dense + `,"total_ut_steps":4`, 1, "", 4 * 4 * 2 * 8 * 128 * 2},
		{"query heads that differ by layer (Laguna)",
			dense + `,"num_key_value_heads":2,"head_dim":128,"num_attention_heads_per_layer":[8,16,16,8]`, 1, "", 4 * 2 * 2 * 128 * 2},
		{"as many as attention heads", dense, 1, "", 4 * 2 * 8 * 128 * 2},
		{"grouped", dense + `,"num_key_value_heads":2`, 1, "", 4 * 2 * 2 * 128 * 2},
		{"fewer heads than GPUs", dense + `,"num_key_value_heads":2`, 4, "", 4 * 2 * 1 * 128 * 2},
		{"8 bits", dense, 1, "fp8", 4 * 2 * 8 * 128},
		{"a head of its own width", dense + `,"head_dim":64`, 1, "", 4 * 2 * 8 * 64 * 2},
		{"windows that are switched off", dense + `,"sliding_window":128,"use_sliding_window":false`, 1, "", 4 * 2 * 8 * 128 * 2},
		{"layers without attention", dense + `,"block_configs":[{"attention":{"n_heads_in_group":4},"ffn":{"ffn_mult":2}},{"attention":{"no_op":true},"ffn":{"ffn_mult":2}},{"attention":{"n_heads_in_group":4},"ffn":{"no_op":true}},{"attention":{"n_heads_in_group":8},"ffn":{"ffn_mult":1}}]`, 1, "", 2 * (2 + 2 + 1) * 128 * 2},
		{"one head by the class",
			`"model_type":"falcon","hidden_size":1024,"num_hidden_layers":4,"num_attention_heads":8,"multi_query":true,"vocab_size":32000`,
			1, "", 4 * 2 * 128 * 2},
		{"other names", `"model_type":"gpt2","n_embd":1024,"n_layer":4,"n_head":8,"vocab_size":50257`, 1, "", 4 * 2 * 8 * 128 * 2},
		{"groups of ChatGLM", `"model_type":"chatglm","hidden_size":1024,"num_layers":4,"num_attention_heads":8,"multi_query_attention":true,"multi_query_group_num":2,"kv_channels":128,"ffn_hidden_size":4096,"padded_vocab_size":65024`, 1, "", 4 * 2 * 2 * 128 * 2},
		{"sharing between layers that is switched off", dense + `,"use_cla":false,"cla_share_factor":2`, 1, "", 4 * 2 * 8 * 128 * 2},
		{"a class's defaults", `"text_config":{"model_type":"gemma3_text","hidden_size":2560,"num_hidden_layers":34}`,
			1, "", 7 * 5 * 2 * 4 * 256 * 2},
		{"a checkpoint for 8 bits", dense + `,"quantization_config":{"quant_method":"compressed-tensors","kv_cache_scheme":{"num_bits":8,"type":"float"},"config_groups":{"a":{"targets":["Linear"],"weights":{"num_bits":8,"type":"float"}}}}`, 1, "", 4 * 2 * 8 * 128},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run()
			r.TensorParallel, r.KVDType = c.gpus, c.kvType
			if e := estimate(t, c.config, r); e.KVBytesPerToken == nil || *e.KVBytesPerToken != c.want {
				t.Errorf("%v (%s), want %d", deref(e.KVBytesPerToken), e.Unknown, c.want)
			}
		})
	}
}

func deref(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

func TestQuantizations(t *testing.T) {
	const layer, layers, fixed = 4*1024*1024 + 3*1024*4096, 4, 2 * 32000 * 1024 // values
	const dense = small + `,"torch_dtype":"bfloat16","tie_word_embeddings":false`
	for _, c := range []struct {
		name, config string
		bits         float64 // of a value of a layer
	}{
		{"none", ``, 16},
		{"fp8", `{"quant_method":"fp8"}`, 8},
		{"awq", `{"quant_method":"awq","bits":4,"group_size":128}`, 4 + 20.0/128},
		{"gptq by columns", `{"quant_method":"gptq","bits":8,"group_size":-1}`, 8},
		{"bitsandbytes", `{"quant_method":"bitsandbytes","load_in_4bit":true}`, 4 + 8.0/64},
		{"bitsandbytes, 8 bits", `{"quant_method":"bitsandbytes","load_in_8bit":true}`, 8},
		{"compressed-tensors", `{"quant_method":"compressed-tensors","config_groups":{"a":{"targets":["Linear"],` +
			`"weights":{"num_bits":4,"type":"int","group_size":32,"symmetric":true}}},"ignore":["lm_head"]}`, 4 + 16.0/32},
		{"modelopt", `{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["lm_head"]}`, 4 + 8.0/16},
		{"all layers left out", `{"quant_method":"fp8","ignored_layers":["re:.*layers.*"]}`, 16},
		{"names left out", `{"quant_method":"fp8","modules_to_not_convert":["model.layers.0","model.layers.1.self_attn","model.layers.1.mlp","model.layers.2.*","self_attn","mlp"]}`, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := dense
			if c.config != "" {
				config += `,"quantization_config":` + c.config
			}
			e := estimate(t, config, run())
			want := int64(layers*layer*c.bits/8 + fixed*2)
			if got := deref(e.WeightsBytes); got < want-1 || got > want+1 {
				t.Errorf("%d bytes (%s), want %d", got, e.Unknown, want)
			}
		})
	}
	t.Run("one that is not known", func(t *testing.T) {
		e := estimate(t, dense+`,"quantization_config":{"quant_method":"aqlm"}`, run())
		if e.WeightsBytes != nil || e.KVBytesPerToken == nil || !strings.Contains(e.Unknown, `quantization method "aqlm"`) {
			t.Errorf("%+v", e)
		}
	})
	t.Run("one that is not known, with sizes", func(t *testing.T) {
		e, err := enginememory.New([]byte("{"+dense+`,"quantization_config":{"quant_method":"aqlm"}}`),
			enginememory.Stored{Bytes: 1 << 30}, run())
		if err != nil || deref(e.WeightsBytes) != 1<<30 || e.Unknown != "" {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// TestParameters: the names of models state their parameters. Weights are 2 bytes for each.
func TestParameters(t *testing.T) {
	for _, c := range []struct {
		name, config string
		billions     float64
	}{
		{"Granite 4.0 H 1B, an MLP beside states", `"model_type":"granitemoehybrid","num_hidden_layers":40,"hidden_size":1536,"intermediate_size":512,"shared_intermediate_size":4096,"num_local_experts":0,"num_attention_heads":12,"num_key_value_heads":4,"mamba_n_heads":48,"mamba_d_head":64,"mamba_d_state":128,"mamba_d_conv":4,"mamba_n_groups":1,"mamba_expand":2,"layer_types":{"mamba":36,"attention":4},"vocab_size":100352,"tie_word_embeddings":true`, 1.46},
		{"LFM2 1.2B, short convolutions", `"model_type":"lfm2","num_hidden_layers":16,"hidden_size":2048,"block_ff_dim":12288,"block_auto_adjust_ff_dim":true,"num_attention_heads":32,"num_key_value_heads":8,"conv_L_cache":3,"full_attn_idxs":[2,5,8,10,12,14],"vocab_size":65536,"tie_word_embeddings":true`, 1.17},
		{"Mixtral 8x7B, experts", `"model_type":"mixtral"`, 46.7},
		{"Llama 4 Scout, experts beside a shared one",
			`"model_type":"llama4_text","hidden_size":5120,"intermediate_size":8192,"num_hidden_layers":48,"vocab_size":202048,"attention_chunk_size":8192`, 107.8},
		{"DeepSeek-V3, predictors left out", deepseekR1, 671},
		{"Falcon 7B, one head of keys",
			`"model_type":"falcon","hidden_size":4544,"num_hidden_layers":32,"num_attention_heads":71,"multi_query":true,"vocab_size":65024`, 6.92},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := estimate(t, c.config, run())
			if got := float64(deref(e.WeightsBytes)) / 2e9; got < 0.98*c.billions || got > 1.02*c.billions {
				t.Errorf("%.2f billion (%s), want %.2f", got, e.Unknown, c.billions)
			}
		})
	}
}

// TestStored: sizes of a checkpoint count more than what is computed, and GPUs divide most of them.
func TestStored(t *testing.T) {
	for _, c := range []struct {
		name   string
		stored int64
		gpus   int
		want   float64 // GiB
	}{
		{"as computed", 16060522496, 1, 14.96},
		{"a tenth more", 17666574745, 1, 16.45},
		{"on two GPUs", 16060522496, 2, 7.48},
		{"of another model", 1 << 30, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run()
			r.TensorParallel = c.gpus
			e, err := enginememory.New([]byte("{"+llama8B+"}"), enginememory.Stored{Bytes: c.stored}, r)
			if err != nil {
				t.Fatal(err)
			}
			if got := float64(*e.WeightsBytes) / (1 << 30); got < c.want-0.01 || got > c.want+0.01 {
				t.Errorf("%.3f GiB, want %.2f", got, c.want)
			}
		})
	}
	t.Run("predictors of further tokens are not loaded", func(t *testing.T) {
		r := run()
		e, err := enginememory.New([]byte("{"+deepseekR1+fp8+"}"), enginememory.Stored{Bytes: 688586727753}, r)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(*e.WeightsBytes) / 1e9; got < 660 || got > 685 {
			t.Errorf("%.0f GB of 688 GB are loaded", got)
		}
	})
}

// TestMonotone: more tokens, requests or layers never take less; more GPUs never take more of each, nor less in all.
func TestMonotone(t *testing.T) {
	configs := []string{qwen7B, deepseekR1 + fp8, gemma1B, qwen35B, nemotron30B, gptOSS20B + mx4, exaone32B}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		config := configs[random.IntN(len(configs))]
		r := enginememory.Run{Engine: enginememory.Engines()[random.IntN(3)], Context: 1 + random.IntN(1<<17),
			Concurrency: 1 + random.IntN(64), TensorParallel: 1}
		one := estimate(t, config, r)
		if *one.SliceBytes < *one.WeightsBytes+*one.KVBytes+*one.OverheadBytes {
			t.Fatalf("%+v: the slice is less than its parts: %+v", r, one)
		}
		longer, more := r, r
		longer.Context += random.IntN(1000)
		more.Concurrency++
		if l, m := estimate(t, config, longer), estimate(t, config, more); *l.KVBytes < *one.KVBytes || *m.KVBytes <= *one.KVBytes {
			t.Fatalf("%+v takes %d, longer %d, with one request more %d", r, *one.KVBytes, *l.KVBytes, *m.KVBytes)
		}
		if both, err := enginememory.New([]byte("{"+config+"}"), enginememory.Stored{}, withGPUs(r, 2)); err == nil {
			if *both.WeightsBytes > *one.WeightsBytes || *both.KVBytesPerToken > *one.KVBytesPerToken+1 || 2**both.WeightsBytes < *one.WeightsBytes {
				t.Fatalf("%+v: one GPU %+v, each of two %+v", r, one, both)
			}
		}
	}
}

func withGPUs(r enginememory.Run, n int) enginememory.Run {
	r.TensorParallel = n
	return r
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		name, config string
		change       func(*enginememory.Run, *enginememory.Stored)
		want         string
	}{
		{"no JSON", `[`, nil, "no JSON object"},
		{"no object", `[1]`, nil, "no JSON object"},
		{"null", `null`, nil, "no JSON object"},
		{"too deep", strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40), nil, "nested more than 32 deep"},
		{"too long", `{"a":"` + strings.Repeat("x", enginememory.MaxConfig) + `"}`, nil, "are read"},
		{"too many layers", `{"num_hidden_layers":5000}`, nil, "at most 1024"},
		{"a dimension beyond reason", `{"num_hidden_layers":2,"hidden_size":1e18}`, nil, "hidden_size is 1e+18"},
		{"half a layer", `{"num_hidden_layers":2.5}`, nil, "num_hidden_layers is 2.5"},
		{"heads that GPUs cannot divide", `{` + qwen7B + `}`,
			func(r *enginememory.Run, _ *enginememory.Stored) { r.TensorParallel = 3 }, "28 attention heads"},
		{"no context", `{}`, func(r *enginememory.Run, _ *enginememory.Stored) { r.Context = 0 }, "context 0: accepted: 1 to"},
		{"an engine", `{}`, func(r *enginememory.Run, _ *enginememory.Stored) { r.Engine = "tgi" }, `engine "tgi": accepted: vllm`},
		{"a type", `{` + qwen7B + `}`, func(r *enginememory.Run, _ *enginememory.Stored) { r.KVDType = "int2" },
			`KV dtype "int2": vllm accepts: auto, fp8`},
		{"sizes", `{}`, func(_ *enginememory.Run, s *enginememory.Stored) { s.Bytes = -1 }, "weights of -1 bytes"},
		{"a second file", `{}`, func(_ *enginememory.Run, s *enginememory.Stored) { s.Quantization = []byte("x") }, "hf_quant_config.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, stored := run(), enginememory.Stored{}
			if c.change != nil {
				c.change(&r, &stored)
			}
			if _, err := enginememory.New([]byte(c.config), stored, r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestIndexBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{
		{`{"metadata":{"total_size":16060522496},"weight_map":{"a":"b"}}`, 16060522496},
		{`{"metadata":{"total_size":16060522496.0}}`, 16060522496},
		{`{"metadata":{}}`, 0}, {`{}`, 0}, {`x`, 0}, {`{"metadata":{"total_size":-1}}`, 0}, {`{"metadata":{"total_size":1e300}}`, 0},
	} {
		if got, err := enginememory.IndexBytes([]byte(c.text)); got != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s: %d, %v", c.text, got, err)
		}
	}
}

func FuzzNew(f *testing.F) {
	for _, r := range rows {
		f.Add([]byte("{"+r.config+"}"), []byte(nil), int64(0), 8192, 16, 1)
	}
	f.Add([]byte(`{"layers_block_type":["mamba","moe"],"ffn_config":{"moe_num_experts":4},"block_configs":[{}]}`),
		[]byte(`{"quantization":{"quant_algo":"FP8"}}`), int64(5), 1, 1, 2)
	f.Fuzz(func(t *testing.T, config, quantization []byte, bytes int64, context, concurrency, gpus int) {
		for i, engine := range enginememory.Engines() {
			e, err := enginememory.New(config, enginememory.Stored{Bytes: bytes, Quantization: quantization},
				enginememory.Run{Engine: engine, Context: context, Concurrency: concurrency, TensorParallel: gpus})
			if err != nil {
				continue
			}
			for name, n := range map[string]*int64{"weights": e.WeightsBytes, "KV": e.KVBytes, "token": e.KVBytesPerToken,
				"slice": e.SliceBytes, "overhead": e.OverheadBytes} {
				if n != nil && *n < 0 {
					t.Errorf("%d: %s: %d bytes", i, name, *n)
				}
			}
			if (e.SliceBytes == nil) != (e.Unknown != "") {
				t.Errorf("slice %v, unknown %q", fmt.Sprint(e.SliceBytes), e.Unknown)
			}
		}
	})
}

// TestFieldsThatChangeNothing are those of published models that keep attention as it is.
func TestFieldsThatChangeNothing(t *testing.T) {
	plain := estimate(t, qwen7B, run())
	for _, field := range []string{`"query_pre_attn_scalar":256`, `"sliding_window_size":4096`, `"scale_attention_softmax_in_fp32":true`,
		`"use_cla":false,"cla_share_factor":2`, `"use_logn_attn":true`, `"n_head_kv":4`} {
		if e := estimate(t, qwen7B+","+field, run()); e.Unknown != "" || *e.KVBytesPerToken != *plain.KVBytesPerToken {
			t.Errorf("%s: %+v", field, e)
		}
	}
}

// TestWrongTypes returns an error for a number that is written as something else.
func TestWrongTypes(t *testing.T) {
	const dense = small + `,"num_key_value_heads":`
	for _, value := range []string{`"8"`, `-8`, `true`, `2.5`} {
		if _, err := enginememory.New([]byte("{"+dense+value+"}"), enginememory.Stored{}, run()); err == nil ||
			!strings.Contains(err.Error(), "num_key_value_heads is") {
			t.Errorf("%s: error %v", value, err)
		}
	}
	const mpt = `"model_type":"mpt","d_model":4096,"n_heads":32,"n_layers":32,"vocab_size":50432,"attn_config":{"attn_type":"multiquery_attention"}`
	if e := estimate(t, mpt, run()); e.KVBytesPerToken == nil || *e.KVBytesPerToken != 2*128*2*32 {
		t.Errorf("multi-query attention of MPT: %+v", e)
	}
}

// TestLongLists returns an error for lists and patterns that are longer than models can be.
func TestLongLists(t *testing.T) {
	const dense = `"model_type":"llama","hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":1024,` +
		`"num_attention_heads":8,"vocab_size":32000`
	for name, field := range map[string]string{
		"hybrid_override_pattern": `"hybrid_override_pattern":"` + strings.Repeat("M", 3_600_000) + `"`,
		"moe_layers_enum":         `"num_experts":8,"moe_layers_enum":"` + strings.Repeat("1,", 1_000_000) + `"`,
		"quantization_config":     `"quantization_config":{"quant_method":"fp8","ignored_layers":["a"` + strings.Repeat(`,"b"`, 65_000) + `]}`,
	} {
		e, err := enginememory.New([]byte("{"+dense+","+field+"}"), enginememory.Stored{}, run())
		if err == nil && e.WeightsBytes == nil {
			err = errors.New(e.Unknown) // what only weights depend on leaves the rest known
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	r := run()
	if r.Engine, r.TensorParallel = "llama.cpp", 2; true {
		if _, err := enginememory.New([]byte("{"+qwen7B+"}"), enginememory.Stored{Bytes: 1 << 30}, r); err == nil ||
			!strings.Contains(err.Error(), "llama.cpp") {
			t.Errorf("llama.cpp on two GPUs: error %v", err)
		}
	}
}

// TestKVFlags has the flag of each engine for the type of its cache, and an error for what it does not take.
func TestKVFlags(t *testing.T) {
	for _, c := range []struct{ engine, kvType, want string }{
		{"vllm", "fp8", "--kv-cache-dtype=fp8"}, {"vllm", "q8_0", ""}, {"vllm", "int8", ""},
		{"sglang", "fp8", "--kv-cache-dtype=fp8_e4m3"}, {"sglang", "bfloat16", ""},
		{"tensorrt-llm", "fp8", "--kv_cache_dtype=fp8"}, {"tensorrt-llm", "auto", "--kv_cache_dtype=auto"},
		{"llama.cpp", "q8_0", "--cache-type-k=q8_0 --cache-type-v=q8_0"}, {"llama.cpp", "fp8", ""},
	} {
		r := run()
		r.Engine, r.KVDType = c.engine, c.kvType
		e, err := enginememory.New([]byte("{"+qwen7B+"}"), enginememory.Stored{Bytes: 15 << 30}, r)
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), c.engine+" accepts: auto, ")):
			t.Errorf("%s with %s: error %v", c.engine, c.kvType, err)
		case c.want != "" && (err != nil || !strings.Contains(strings.Join(e.Flags, " "), c.want)):
			t.Errorf("%s with %s: error %v: %+v", c.engine, c.kvType, err, e)
		}
	}
}

// TestShareOfGPU: the part of the GPU that an engine takes is of the memory that it sees, and unknown without that.
func TestShareOfGPU(t *testing.T) {
	for _, c := range []struct{ engine, flag, of24, of80 string }{
		{"vllm", "--gpu-memory-utilization", "0.7083", "0.2125"},
		{"sglang", "--mem-fraction-static", "0.6615", "0.1985"},
		{"tensorrt-llm", "--kv_cache_free_gpu_memory_fraction", "0.1044", "0.0135"},
		{"llama.cpp", "", "", ""},
	} {
		for memory, want := range map[int64]string{0: "", 24: c.of24, 80: c.of80} {
			r := run()
			r.Engine, r.Context, r.Concurrency, r.DeviceMemory = c.engine, 4096, 4, memory<<30
			e, err := enginememory.New([]byte("{"+qwen7B+"}"), enginememory.Stored{Bytes: 15 << 30}, r)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, flag := range e.Flags {
				if name, value, _ := strings.Cut(flag, "="); name == c.flag {
					got = value
				}
			}
			isLeftOut := strings.Contains(strings.Join(e.Assumed, "; "), "--device-memory")
			if got != want || isLeftOut != (want == "" && c.flag != "") {
				t.Errorf("%s on %dGi: %q, want %q: %+v", c.engine, memory, got, want, e)
			}
		}
	}
	r := run()
	r.DeviceMemory = 16 << 30
	if _, err := enginememory.New([]byte("{"+qwen7B+"}"), enginememory.Stored{Bytes: 15 << 30}, r); err == nil ||
		!strings.Contains(err.Error(), "is more than the GPU's memory, 16.0Gi") {
		t.Errorf("a slice of more than the GPU has: error %v", err)
	}
}

// TestUnreadFields: a field that no rule reads is beside the point by its name, or it is named.
func TestUnreadFields(t *testing.T) {
	const dense = small + `,"torch_dtype":"bfloat16"`
	for _, c := range []struct{ name, config, named string }{
		{"positions, norms, tokens, routers, scales",
			`,"rope_theta":1e6,"partial_rotary_factor":0.5,"rms_norm_eps":1e-6,"use_qk_norm":true,"image_token_index":7,` +
				`"router_dtype":"fp32","attention_in_multiplier":1.5,"activation_situ_linear_beta":25,"add_swa_attention_sink_bias":true`, ""},
		{"what a class writes of generation", `,"id2label":{"0":"a"},"num_beams":1,"top_p":1.0,"chunk_size_feed_forward":0,"lm_head":true`, ""},
		{"fields that are switched off", `,"recurrent_blocks":0,"use_hybrid":false,"loop_num":null,"swa_layers":[]`, ""},
		{"predictors of further tokens", `,"mtp_transformer_layers":1`, "mtp_transformer_layers"},
		{"two others", `,"thinking_depthwise":3,"flux":2`, "flux, thinking_depthwise"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := estimate(t, dense+c.config, run())
			if e.KVBytesPerToken == nil || *e.KVBytesPerToken != 4*2*8*128*2 {
				t.Fatalf("%v bytes a token (%s)", deref(e.KVBytesPerToken), e.Unknown)
			}
			all := strings.Join(e.Assumed, "; ")
			if want := "no rule reads " + c.named + ": "; strings.Contains(all, want) != (c.named != "") ||
				strings.Contains(all, "no rule reads") != (c.named != "") {
				t.Errorf("assumed: %s, want %q", all, c.named)
			}
		})
	}
	t.Run("a name that goes on and on", func(t *testing.T) {
		if e := estimate(t, dense+`,"attn_`+strings.Repeat("x", 10_000)+`":1`, run()); len(e.Unknown) > 400 {
			t.Errorf("%d bytes", len(e.Unknown))
		}
	})
}

// TestUnreadableParts: a value that cannot be read leaves unknown what depends on it, and nothing else.
func TestUnreadableParts(t *testing.T) {
	const dense = small + `,"torch_dtype":"bfloat16"`
	for _, c := range []struct{ name, config, unknown string }{
		{"an encoder", `,"vision_config":{"depth":2.5,"hidden_size":64}`, "the encoder in vision_config: depth is 2.5"},
		{"an encoder with its sizes elsewhere (DeepSeek-OCR)",
			`,"vision_config":{"mlp_ratio":3.7362,"width":{"sam_vit_b":{"layers":12,"width":768}}}`,
			"the size of the encoder in vision_config"},
		{"experts", `,"num_experts":8,"moe_intermediate_size":2.5`, "moe_intermediate_size is 2.5"},
		{"a quantization", `,"quantization_config":{"quant_method":"awq","bits":4.5}`, "quantization_config: bits is 4.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := estimate(t, dense+c.config, run())
			if deref(e.KVBytesPerToken) != 4*2*8*128*2 || e.WeightsBytes != nil || e.SliceBytes != nil || !strings.Contains(e.Unknown, c.unknown) {
				t.Errorf("%v bytes a token, weights %v: %q, want %q", deref(e.KVBytesPerToken), deref(e.WeightsBytes), e.Unknown, c.unknown)
			}
		})
	}
}

// TestEncoders: a network beside the language model is an encoder, whatever its field; GPUs do not divide it.
func TestEncoders(t *testing.T) {
	const text = `"architectures":["SmallForConditionalGeneration"],"text_config":{"hidden_size":2560,"intermediate_size":9728,"num_hidden_layers":36,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":151936,"tie_word_embeddings":false,"torch_dtype":"bfloat16"}`
	const encoder = `{"hidden_size":1152,"intermediate_size":4304,"num_hidden_layers":27}`
	r := withGPUs(run(), 2)
	without, usual := estimate(t, text, r), estimate(t, text+`,"vision_config":`+encoder, r)
	for _, name := range []string{"vit_config", "image_encoder", "speech_config"} {
		e := estimate(t, text+`,"`+name+`":`+encoder+`,"adapter_config":{"hidden_size":1152}`, r)
		if deref(e.WeightsBytes) != deref(usual.WeightsBytes) || deref(e.WeightsBytes)-deref(without.WeightsBytes) < 800<<20 {
			t.Errorf("%s: %d bytes, %d under vision_config, %d without", name, deref(e.WeightsBytes), deref(usual.WeightsBytes),
				deref(without.WeightsBytes))
		}
	}
}

// TestWithoutGeneration: a model that does not generate text from a KV cache has no slice, and its weights are those of its files alone.
func TestWithoutGeneration(t *testing.T) {
	const base = `"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,"intermediate_size":3072,"vocab_size":50265`
	// published are whole configurations, but for fields of training.
	const (
		esm2 = `"architectures":["EsmForMaskedLM"],"model_type":"esm","hidden_act":"gelu","hidden_size":1280,"intermediate_size":5120,` +
			`"max_position_embeddings":1026,"num_attention_heads":20,"num_hidden_layers":33,"position_embedding_type":"rotary",` +
			`"token_dropout":true,"torch_dtype":"float32","use_cache":true,"vocab_size":33`
		clipText = `"architectures":["CLIPTextModel"],"model_type":"clip_text_model","hidden_act":"quick_gelu","hidden_size":768,` +
			`"intermediate_size":3072,"max_position_embeddings":77,"num_attention_heads":12,"num_hidden_layers":12,"projection_dim":768,` +
			`"vocab_size":49408`
		siglip = `"architectures":["SiglipModel"],"model_type":"siglip","text_config":{"hidden_size":1152,"intermediate_size":4304,` +
			`"num_attention_heads":16,"num_hidden_layers":27,"model_type":"siglip_text_model","vocab_size":32000},` +
			`"vision_config":{"hidden_size":1152,"intermediate_size":4304,"num_hidden_layers":27,"patch_size":14}`
		layoutLM3 = `"architectures":["LayoutLMv3Model"],"model_type":"layoutlmv3","coordinate_size":128,"input_size":224,"shape_size":128,` +
			`"visual_embed":true,` + base
	)
	for _, c := range []struct{ name, config, reason string }{
		{"ESM-2 650M", esm2, "a model of type esm has no KV cache"},
		{"CLIP's text encoder", clipText, "a model of type clip_text_model has no KV cache"},
		{"SigLIP", siglip, "a model of type siglip_text_model has no KV cache"},
		{"LayoutLMv3", layoutLM3, "a model of type layoutlmv3 has no KV cache"},
		{"an encoder without architectures", `"model_type":"hubert",` + base, "a model of type hubert has no KV cache"},
		{"an encoder that is set to decode", `"model_type":"bert","is_decoder":true,"architectures":["BertLMHeadModel"],` + base,
			"no rule is known for a decoder of type bert"},
		{"a class for generation of a family of encoders",
			`"model_type":"blip_text_model","architectures":["BlipForConditionalGeneration"],` + base,
			"a model of type blip_text_model has no KV cache"},
		{"tokens of sound", `"model_type":"csm","architectures":["CsmForConditionalGeneration"],` + base,
			"no rule is known for models of type csm"},
		{"an encoder of a type that nobody knows", `"model_type":"myth","architectures":["MythForMaskedLM"],` + base,
			"MythForMaskedLM is no architecture that is known to generate text"},
		{"embeddings by a decoder", `"model_type":"mistral","architectures":["MistralModel"],` + base,
			"MistralModel is no architecture that is known to generate text"},
		{"a score by a decoder", `"model_type":"llama","architectures":["LlamaForSequenceClassification"],` + base,
			"LlamaForSequenceClassification is no architecture"},
		{"embeddings, with a language model inside",
			`"architectures":["NVEmbedModel"],"text_config":{"model_type":"mistral","architectures":["MistralForCausalLM"],` + base + `}`,
			"NVEmbedModel is no architecture"},
		{"attention both ways", `"model_type":"qwen2","architectures":["Qwen2ForCausalLM"],"is_causal":false,` + base,
			"its attention is not causal"},
		{"a type that nobody knows", `"model_type":"myth",` + base,
			"config.json has no architectures, and no rule is known for models of type myth"},
		{"neither", base, "config.json has no architectures and no model_type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, engine := range enginememory.Engines() {
				r := run()
				r.Engine = engine
				e := estimate(t, c.config, r)
				if e.WeightsBytes != nil || e.KVBytesPerToken != nil || e.KVBytes != nil || e.SliceBytes != nil || len(e.Flags) > 0 {
					t.Errorf("%s: an answer: %+v", engine, e)
				}
				if !strings.Contains(e.Unknown, "this model's attention is unknown: "+c.reason) {
					t.Errorf("%s: unknown: %q, want %q", engine, e.Unknown, c.reason)
				}
			}
			e, err := enginememory.New([]byte("{"+c.config+"}"), enginememory.Stored{Bytes: 1 << 30}, run())
			if err != nil || deref(e.WeightsBytes) != 1<<30 || e.KVBytes != nil || e.SliceBytes != nil {
				t.Errorf("with sizes: %+v, %v", e, err)
			}
		})
	}
}

// TestGeneration: what config.json says of generation, by whichever field, is an answer, and a gate that is assumed is named.
func TestGeneration(t *testing.T) {
	const base = `"hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":4,"num_attention_heads":8,"vocab_size":32000,` +
		`"tie_word_embeddings":true,"torch_dtype":"bfloat16"`
	const gate = "taken to have a gate, three matrices"
	for _, c := range []struct {
		name, config string
		matrices     int64 // of an MLP
		assumed      bool
	}{
		{"a known type", `"model_type":"llama",` + base, 3, false},
		{"a known type without a gate", `"model_type":"gpt_neox","architectures":["GPTNeoXForCausalLM"],` + base, 2, false},
		{"an architecture", `"model_type":"myth","architectures":["MythForCausalLM"],` + base, 3, true},
		{"an architecture alone", `"architectures":["MythLMHeadModel"],` + base, 3, true},
		{"a decoder", `"model_type":"myth","is_decoder":true,` + base, 3, true},
		{"a name of its own", `"model_type":"chatglm","architectures":["ChatGLMModel"],` + base, 3, false},
		{"a language model inside", `"architectures":["InternVLChatModel"],` +
			`"llm_config":{"model_type":"internlm2","architectures":["InternLM2Model"],` + base + `}`, 3, false},
		{"the language model alone says it", `"model_type":"myth","text_config":{"model_type":"m","architectures":["MForCausalLM"],` + base + `}`,
			3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := estimate(t, c.config, run())
			want := 2 * (32000*1024 + 4*(4*1024*1024+c.matrices*1024*4096))
			if deref(e.WeightsBytes) != want || deref(e.KVBytesPerToken) != 4*2*1024*2 {
				t.Errorf("weights %d, want %d, %d bytes a token (%s)", deref(e.WeightsBytes), want, deref(e.KVBytesPerToken), e.Unknown)
			}
			if all := strings.Join(e.Assumed, "; "); strings.Contains(all, gate) != c.assumed {
				t.Errorf("assumed: %s, want a gate: %t", all, c.assumed)
			}
		})
	}
}

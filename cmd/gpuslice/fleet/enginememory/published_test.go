package enginememory_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/enginememory"
)

var update = flag.Bool("update", false, "rewrite the table of README.md")

// Configurations of models whose logs are published.
const (
	qwen3MoE    = `"model_type":"qwen3_moe","num_hidden_layers":94,"hidden_size":4096,"intermediate_size":12288,"moe_intermediate_size":1536,"num_attention_heads":64,"num_key_value_heads":4,"head_dim":128,"num_experts":128,"vocab_size":151936,"tie_word_embeddings":false,"torch_dtype":"bfloat16"`
	qwen14B     = `"model_type":"qwen2","num_hidden_layers":48,"hidden_size":5120,"intermediate_size":13824,"num_attention_heads":40,"num_key_value_heads":8,"vocab_size":152064,"torch_dtype":"bfloat16","tie_word_embeddings":false`
	qwen7B      = `"model_type":"qwen2","num_hidden_layers":28,"hidden_size":3584,"intermediate_size":18944,"num_attention_heads":28,"num_key_value_heads":4,"vocab_size":152064,"torch_dtype":"bfloat16","tie_word_embeddings":false`
	qwenHalfB   = `"model_type":"qwen2","num_hidden_layers":24,"hidden_size":896,"intermediate_size":4864,"num_attention_heads":14,"num_key_value_heads":2,"vocab_size":151936,"tie_word_embeddings":true,"torch_dtype":"bfloat16"`
	llama8B     = `"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"tie_word_embeddings":false,"torch_dtype":"bfloat16"`
	llama7B     = `"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,"vocab_size":32000,"torch_dtype":"float16"`
	phi4        = `"model_type":"phi3","num_hidden_layers":40,"hidden_size":5120,"intermediate_size":17920,"num_attention_heads":40,"num_key_value_heads":10,"vocab_size":100352,"torch_dtype":"bfloat16","tie_word_embeddings":false`
	mistral24B  = `"model_type":"mistral3","torch_dtype":"bfloat16","text_config":{"model_type":"mistral","num_hidden_layers":40,"hidden_size":5120,"intermediate_size":32768,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":131072,"sliding_window":null},"vision_config":{"model_type":"pixtral","hidden_size":1024,"num_hidden_layers":24,"intermediate_size":4096,"patch_size":14},"spatial_merge_size":2,"tie_word_embeddings":false`
	deepseekR1  = `"model_type":"deepseek_v3","num_hidden_layers":61,"hidden_size":7168,"intermediate_size":18432,"moe_intermediate_size":2048,"num_attention_heads":128,"num_key_value_heads":128,"kv_lora_rank":512,"q_lora_rank":1536,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"n_routed_experts":256,"n_shared_experts":1,"first_k_dense_replace":3,"moe_layer_freq":1,"num_nextn_predict_layers":1,"vocab_size":129280,"tie_word_embeddings":false,"torch_dtype":"bfloat16"`
	deepseekV2L = `"model_type":"deepseek_v2","num_hidden_layers":27,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":16,"kv_lora_rank":512,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"n_routed_experts":64,"vocab_size":102400,"torch_dtype":"bfloat16"`
	qwen27B     = `"model_type":"qwen3_5_text","dtype":"bfloat16","num_hidden_layers":64,"hidden_size":5120,"intermediate_size":17408,"num_attention_heads":24,"num_key_value_heads":4,"head_dim":256,"full_attention_interval":4,"attn_output_gate":true,"mamba_ssm_dtype":"float32","linear_num_value_heads":48,"linear_num_key_heads":16,"linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4,"vocab_size":248320,"tie_word_embeddings":false`
	qwen35B     = `"model_type":"qwen3_5_moe_text","dtype":"bfloat16","num_hidden_layers":40,"hidden_size":2048,"moe_intermediate_size":512,"num_attention_heads":16,"num_key_value_heads":2,"head_dim":256,"full_attention_interval":4,"attn_output_gate":true,"mamba_ssm_dtype":"float32","linear_num_value_heads":32,"linear_num_key_heads":16,"linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4,"num_experts":256,"shared_expert_intermediate_size":512,"vocab_size":248320,"tie_word_embeddings":false`
	nemotron30B = `"model_type":"nemotron_h","num_hidden_layers":52,"hidden_size":2688,"intermediate_size":1856,"moe_intermediate_size":1856,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"hybrid_override_pattern":"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME","mamba_num_heads":64,"mamba_head_dim":64,"ssm_state_size":128,"n_groups":8,"conv_kernel":4,"mlp_hidden_act":"relu2","time_step_limit":[0.0,Infinity],"n_routed_experts":128,"n_shared_experts":1,"moe_shared_expert_intermediate_size":3712,"vocab_size":131072,"tie_word_embeddings":false,"torch_dtype":"bfloat16"`
	exaone32B   = `"model_type":"exaone4","num_hidden_layers":64,"hidden_size":5120,"intermediate_size":27392,"num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,"vocab_size":102400,"sliding_window":4096,"sliding_window_pattern":"LLLG","torch_dtype":"bfloat16","tie_word_embeddings":false`
	gemma1B     = `"model_type":"gemma3_text","num_hidden_layers":26,"hidden_size":1152,"intermediate_size":6912,"num_attention_heads":4,"num_key_value_heads":1,"head_dim":256,"vocab_size":262144,"sliding_window":512,"sliding_window_pattern":6,"torch_dtype":"bfloat16"`
	gemma26B    = `"model_type":"gemma4","dtype":"bfloat16","text_config":{"model_type":"gemma4_text","num_hidden_layers":30,"hidden_size":2816,"intermediate_size":2112,"moe_intermediate_size":704,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,"global_head_dim":512,"num_global_key_value_heads":2,"num_kv_shared_layers":0,"sliding_window":1024,"layer_types":{"sliding_attention":25,"full_attention":5},"num_experts":128,"enable_moe_block":true,"attention_k_eq_v":true,"vocab_size":262144}`
	gemmaE4B    = `"model_type":"gemma4","dtype":"bfloat16","text_config":{"model_type":"gemma4_text","num_hidden_layers":42,"hidden_size":2560,"intermediate_size":10240,"num_attention_heads":8,"num_key_value_heads":2,"head_dim":256,"global_head_dim":512,"num_kv_shared_layers":18,"hidden_size_per_layer_input":256,"vocab_size_per_layer_input":262144,"sliding_window":512,"layer_types":{"sliding_attention":35,"full_attention":7},"vocab_size":262144}`
	gptOSS20B   = `"model_type":"gpt_oss","num_hidden_layers":24,"hidden_size":2880,"intermediate_size":2880,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"sliding_window":128,"num_local_experts":32,"vocab_size":201088,"tie_word_embeddings":false,"torch_dtype":"bfloat16"`
	kimiLinear  = `"model_type":"kimi_linear","num_hidden_layers":27,"hidden_size":2304,"num_attention_heads":32,"kv_lora_rank":512,"qk_rope_head_dim":64,"layer_types":{"kda_linear":20,"mla_full":7},"vocab_size":163840,"torch_dtype":"bfloat16"`
	glm5        = `"model_type":"glm_moe_dsa","num_hidden_layers":78,"hidden_size":6144,"intermediate_size":12288,"moe_intermediate_size":2048,"num_attention_heads":64,"num_key_value_heads":64,"kv_lora_rank":512,"q_lora_rank":2048,"qk_rope_head_dim":64,"qk_nope_head_dim":192,"v_head_dim":256,"index_head_dim":128,"index_n_heads":32,"indexer_types":{"full":21,"shared":57},"n_routed_experts":256,"n_shared_experts":1,"first_k_dense_replace":3,"vocab_size":154880,"dtype":"bfloat16"`

	fp8 = `,"quantization_config":{"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,128]}`
	nf4 = `,"quantization_config":{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_use_double_quant":true}`
	mx4 = `,"quantization_config":{"quant_method":"mxfp4"}`
)

// published is what somebody else's engine logged.
type published struct {
	model, config   string
	engine          string
	gpus, context   int
	kvType          string
	weightsGiB      float64 // on each GPU; 0: not logged
	kvBytesPerToken float64 // cache by tokens, as logged; 0: not logged
	source          string
	poor            string // why the estimate is not close
}

const (
	issue   = "https://github.com/vllm-project/vllm/issues/"
	planner = "https://github.com/llm-d-incubation/llm-d-planner/blob/e50305af90f0812e77e1827f3bc740fe75b76370/docs/empirical-vllm-memory-results.md"
	logLine = "log: "
)

var rows = []published{
	{"Qwen2.5-7B-Instruct", qwen7B, "vllm", 1, 32768, "", 14.25, 57328.1, logLine + "03-27 12:24:24 kv_cache_utils.py:1316", ""},
	{"R1-Distill-Qwen-14B", qwen14B, "vllm", 2, 131072, "", 13.9476, 114438, issue + "13061",
		"tokens are of the GPU with least room, gibibytes of the other"},
	{"Llama-3.1-8B-Instruct", llama8B, "vllm", 1, 20000, "", 14.9888, 130986.1, issue + "10517", ""},
	{"Llama-3.1-8B-Instruct", llama8B, "vllm", 1, 16000, "", 14.99, 0, planner, ""},
	{"Llama-3.1-8B nf4", llama8B + nf4, "vllm", 1, 512, "", 5.3541, 130944.1, logLine + "02-13 15:56:21 executor_base.py:110", ""},
	{"Qwen2.5-0.5B nf4", qwenHalfB + nf4, "vllm", 1, 32768, "", 0.5151, 12289.8, logLine + "08-16 20:01:31 executor_base.py:113",
		"the checkpoint leaves out layers, and this config.json does not name them"},
	{"Qwen2.5-0.5B", qwenHalfB, "sglang", 1, 32768, "", 0.98, 12287.9, logLine + "2026-07-08 16:06:49 KV Cache is allocated",
		"SGLang logs by how much free memory fell, 0.06 GiB more"},
	{"Phi-4 nf4", phi4 + nf4, "vllm", 1, 512, "", 8.6253, 204791.9, logLine + "07-02 17:08:07 executor_base.py:111", ""},
	{"Llama-2-7B", llama7B, "tensorrt-llm", 1, 5120, "", 0, 524288, "https://github.com/NVIDIA/TensorRT-LLM/issues/1400", ""},
	{"Mistral-Small-3.2-24B", mistral24B, "vllm", 1, 16000, "", 44.76, 163821.8, planner, ""},
	{"Qwen3-235B-A22B fp8", qwen3MoE + fp8, "sglang", 4, 8192, "", 0, 48104.5, issue + "21348", ""},
	{"Qwen3-235B-A22B fp8", qwen3MoE + fp8, "vllm", 4, 8192, "", 0, 48680.9, issue + "21348", ""},
	{"Qwen3-235B-A22B fp8", qwen3MoE + fp8, "vllm", 8, 32768, "", 0, 48126, logLine + "09-29 11:34:06 kv_cache_utils.py:864", ""},
	{"DeepSeek-R1-0528 fp8", deepseekR1 + fp8, "vllm", 8, 8192, "", 79.739, 70271.1, logLine + "12-03 17:37:46 kv_cache_utils.py:1229", ""},
	{"DeepSeek-V3 fp8", deepseekR1 + fp8, "sglang", 8, 8192, "fp8", 0, 35143.7, logLine + "2025-11-04 05:27:13 DP0 TP0 EP0", ""},
	{"DeepSeek-V2-Lite", deepseekV2L, "vllm", 2, 32768, "", 0, 31129.6, issue + "15871", ""},
	{"GLM-5.3", glm5 + fp8, "vllm", 4, 1048576, "fp8", 0, 47738.8, logLine + "Available KV cache memory: 152.98 GiB", ""},
	{"EXAONE-4.0-32B fp8", exaone32B + fp8, "vllm", 1, 4096, "", 30.9891, 262179.8, logLine + "03-03 07:21:37 kv_cache_utils.py:1087", ""},
	{"Gemma 3 1B", gemma1B, "vllm", 1, 2048, "", 0, 28671.1, logLine + "01-16 14:20:25 kv_cache_utils.py:1291", ""},
	{"Gemma 4 26B-A4B", gemma26B, "sglang", 1, 8192, "fp8", 0, 92082.2, logLine + "SWAKVPool mem usage: 3.18 GB", ""},
	{"Gemma 4 E4B", gemmaE4B, "sglang", 1, 8192, "", 15.56, 86020.2, logLine + "SWAKVPool swa size: 798276",
		"this config.json lacks the encoders for images and sound"},
	{"gpt-oss-20b", gptOSS20B + mx4, "vllm", 1, 16000, "", 13.47, 0, planner, ""},
	{"gpt-oss-20b", gptOSS20B + mx4, "vllm", 1, 131072, "", 13.72, 0, "https://myoceane.fr/index.php/ai-vllm-a100-gemma-4/", ""},
	{"gpt-oss-20b", gptOSS20B + mx4, "llama.cpp", 1, 131072, "", 0, 24720, logLine + "llama_context: n_ctx = 131072", ""},
	{"Qwen3.6-27B fp8", qwen27B + fp8, "sglang", 1, 8192, "", 0, 65556.4, logLine + "#tokens: 403904", ""},
	{"Qwen3.6-27B int4", qwen27B, "vllm", 2, 262144, "fp8_e5m2", 0, 17063.3, "https://github.com/noonghunna/club-3090/issues/104", ""},
	{"Qwen3.6-35B-A3B", qwen35B, "vllm", 1, 131072, "fp8", 0, 11323.8, "https://github.com/noonghunna/club-3090/issues/652", ""},
	{"Nemotron 3 Nano 30B-A3B", nemotron30B, "sglang", 4, 8192, "", 14.76, 3074.7, logLine + "test_nvidia_nemotron_3_nano.py, run 3", ""},
	{"Kimi Linear 48B-A3B", kimiLinear, "vllm", 2, 120000, "", 0, 32563.4, issue + "28228", ""},
}

// The share by which an estimate may be off.
const (
	kvWithin      = 0.02
	weightsWithin = 0.03
)

// TestPublished prints estimates beside what engines of others logged, and holds README.md's table against them.
func TestPublished(t *testing.T) {
	var table strings.Builder
	table.WriteString(
		"| model | engine, GPUs | weights GiB: estimate, log | KV bytes a token: estimate, log | source |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		concurrency := 16
		if r.engine == "llama.cpp" {
			concurrency = 1
		}
		run := enginememory.Run{Engine: r.engine, Context: r.context, Concurrency: concurrency, TensorParallel: r.gpus, KVDType: r.kvType}
		e, err := enginememory.New([]byte("{"+r.config+"}"), enginememory.Stored{}, run)
		if err != nil {
			t.Fatalf("%s: %v", r.model, err)
		}
		weights, offWeights := beside(e.WeightsBytes, r.weightsGiB, 1<<30)
		kv, offKV := beside(e.KVBytesPerToken, r.kvBytesPerToken, 1)
		t.Logf("%-24s %-12s x%d weights %-28s KV %s", r.model, r.engine, r.gpus, weights, kv)
		if closing := offWeights <= weightsWithin && offKV <= kvWithin; closing != (r.poor == "") {
			t.Errorf("%s on %s: weights %s, KV %s; noted as poor: %q", r.model, r.engine, weights, kv, r.poor)
		}
		if r.poor != "" {
			r.source += ": " + r.poor
		}
		fmt.Fprintf(&table, "| %s | %s, %d | %s | %s | %s |\n", r.model, r.engine, r.gpus, weights, kv, r.source)
	}
	holdTable(t, table.String())
}

// beside writes an estimate beside what was logged, with the difference as a share.
func beside(estimate *int64, logged, unit float64) (text string, off float64) {
	if logged == 0 {
		return "-", 0
	}
	if estimate == nil {
		return "unknown", math.Inf(1)
	}
	got := float64(*estimate) / unit
	digits := 2
	if unit == 1 {
		digits = 0
	}
	return fmt.Sprintf("%.*f, %.*f (%+.1f %%)", digits, got, digits, logged, 100*(got/logged-1)), math.Abs(got/logged - 1)
}

// holdTable compares the table with the page's.
func holdTable(t *testing.T, want string) {
	const page, begin, end = "README.md", "<!-- published -->\n\n", "\n<!-- end -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	have, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("%s does not have this table, go test ./cmd/gpuslice/fleet/enginememory -update writes it:\n%s", page, want)
	}
}

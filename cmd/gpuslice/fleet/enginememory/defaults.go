package enginememory

import "strings"

// classDefaults are the values that transformers' configuration classes take where config.json has none, by model_type. Only classes whose
// published models leave values out are here.
var classDefaults = map[string]map[string]int{
	"llama": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000},
	"mistral": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
		"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000},
	"mixtral": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
		"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8},
	"qwen2": {"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
		"num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 151936},
	"qwen3":     {"head_dim": 128},
	"qwen3_moe": {"head_dim": 128},
	"gemma":     {"head_dim": 256, "num_key_value_heads": 16, "num_attention_heads": 16, "vocab_size": 256000},
	"gemma2":    {"head_dim": 256, "num_key_value_heads": 4, "num_attention_heads": 8, "vocab_size": 256000, "sliding_window": 4096},
	"gemma3_text": {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
		"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "sliding_window": 4096},
	"gpt_oss": {"head_dim": 64, "num_key_value_heads": 8, "num_local_experts": 128, "sliding_window": 128},
	"cohere2": {"sliding_window": 4096},
	"opt":     {"ffn_dim": 3072},
	"qwen3_next": {"linear_num_value_heads": 32, "linear_num_key_heads": 16,
		"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "head_dim": 256, "full_attention_interval": 4},
	"deepseek_v2": {"num_hidden_layers": 30, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128},
	"deepseek_v3": {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "n_shared_experts": 1},
	"llama4_text": {"head_dim": 128, "num_key_value_heads": 8, "num_attention_heads": 40,
		"num_local_experts": 16, "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 1},
	"gemma4_text": {"head_dim": 256, "global_head_dim": 512, "sliding_window": 512},
}

// slidingPeriods are the models of which every n-th layer alone has full attention where config.json does not list the kinds of layers.
var slidingPeriods = map[string]int{"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4, "gpt_oss": 2, "exaone4": 4, "olmo3": 4}

// alwaysSliding are the models that use sliding_window in every layer, if it is set.
var alwaysSliding = words("mistral mixtral phi3 starcoder2 phimoe ministral")

// ungated are the models whose MLP has two matrices, no gate beside the first.
var ungated = words(`gpt2 gpt_neox gptj gpt_neo opt phi phi-msft mixformer-sequential bloom falcon mpt moss starcoder2 codegen gpt_bigcode
	persimmon nemotron arcee nemotron_h apertus RefinedWeb RefinedWebModel`)

// gated are the models whose MLP, or each expert, has a gate: three matrices. With those of ungated they are the known decoders.
var gated = words(`
	afmoe aquila arctic aria_text baichuan bailing_hybrid bailing_moe bailing_moe_linear bailing_moe_v2 bamba bitnet chameleon chatglm
	cohere cohere2 cwm dbrx deepseek deepseek_v2 deepseek_v3 deepseek_v32 diffllama dots1 emu3_text_model ernie4_5 ernie4_5_moe
	ernie4_5_vl_moe_text exaone exaone4 falcon_h1 flex_olmo gemma gemma2 gemma3 gemma3_text gemma3n_text gemma4 gemma4_text glm glm4
	glm4_moe glm4_moe_lite glm4v_moe_text glm4v_text glm_moe_dsa gpt_oss granite granitemoe granitemoehybrid granitemoeshared grok-1
	helium hunyuan hunyuan_v1_dense hunyuan_v1_moe internlm internlm2 internlm3 jamba jetmoe kimi_k2 kimi_linear lfm2 lfm2_moe llama
	llama4 llama4_text llava llava_llama llava_mistral llava_qwen mimo minicpm minicpm3 minicpmo minicpmv minimax minimax_m1 minimax_m2
	minimax_text_01 ministral ministral3 mistral mixtral mllama_text_model nemotron-nas olmo olmo2 olmo3 olmoe orion ouro phi3 phi3_v
	phi4mm phimoe plamo plamo2 qwen qwen2 qwen2_5_omni_text qwen2_5_vl qwen2_5_vl_text qwen2_moe qwen2_vl qwen2_vl_text qwen3
	qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next qwen3_omni_moe_text qwen3_vl_moe_text qwen3_vl_text seed_oss smollm3 solar
	stablelm stablelm_epoch step3_text telechat vaultgemma xverse Yi zamba2`)

// tied are the models that use the embedding as the head unless config.json has tie_word_embeddings.
var tied = words("gemma gemma2 gemma3 gemma3_text gemma4 gemma4_text gpt2 opt bloom gpt_bigcode cohere cohere2 starcoder2 falcon mpt")

func words(text string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(text) {
		all[w] = true
	}
	return all
}

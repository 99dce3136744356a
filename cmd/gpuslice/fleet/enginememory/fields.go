package enginememory

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A field of config.json that no rule reads is ignored if its name shows that it takes no memory. Otherwise attention is unknown if the
// field may change it, or the field is listed as assumed. Those that a rule reads for some models only are listed.

// ignoredWords are words of a name, one of which shows a field that takes no memory worth counting: positions, norms, tokens, routers,
// scales, functions, training.
var ignoredWords = words(`rope rotary yarn ntk theta alibi mscale position positions positional nope
	norm norms layernorm rmsnorm rms eps epsilon ln
	tok tokenizer vocab bos eos pad
	router topk topp scoring score probs prob gate
	scale scales scaling scaled multiplier multipliers softcap softcapping logit logits clip clamp limit temperature alpha beta sink sinks
	act activation gelu silu swiglu bias biases fn
	dropout drop pdrop init initializer std jitter aux loss train training pretraining pruned gradient
	dtype precision fp32 quantization
	architectures transformers version auto label labels beam generation cache`)

// ofTokens are names of fields that number tokens or count them.
var ofTokens = regexp.MustCompile(`_tokens?(_ids?|_index|_indices)?$|_id$`)

// weightWords are words of fields that are about matrices, not about attention.
var weightWords = words("expert experts moe mlp ffn ff feedforward mtp nextn")

// attentionWords are words of fields that may change what a token takes.
var attentionWords = words(`attn attns attention attentions mha gqa mqa mla head heads kv key keys value values lightning gla
	mamba mamba2 ssm ssd linear recurrent recurrence recursion recursions recursive retention rwkv lru gdn kda delta deltanet conv state states
	window windows swa sliding local global chunk sparse block blocks layer layers hybrid pattern interval period mb
	compress compressed compressor index indexer indices idx idxs indexes rank
	cla share shared sharing reuse yoco cross encoder decoder memory memories
	loop loops looped ut step steps iteration iterations repeat repeats repeated depth pass passes recur`)

// fieldsOfRules are those that a rule reads for some models only, and those whose words mislead.
var fieldsOfRules = words(`
	attn_config attn_type_list attn_layer_indices attn_layer_period attn_layer_offset attention_head_dim attention_type attention_k_eq_v
	attention_output_gate attn_output_gate attention_chunk_size attn_hidden_size attn_factor attn_scale attn_qk_norm attn_res_block_size
	full_attention_layernorm full_attention_interval attn_implementation _attn_implementation _attn_implementation_autoset
	_attn_implementation_internal query_pre_attn_scalar use_attn_res use_bidirectional_attention use_parallel_attn parallel_attn
	apply_query_key_layer_scaling masked_softmax_fusion add_cross_attention output_attentions output_hidden_states use_flash_attn
	flash_attention flash_attn use_flash_attention use_flash_attention_2 use_logn_attn reorder_and_upcast_attn attention_in_fp32
	attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx cross_attention_hidden_size
	head_dim v_head_dim qk_head_dim qk_nope_head_dim qk_rope_head_dim global_head_dim
	num_attention_heads num_attention_heads_per_layer num_key_value_heads num_global_key_value_heads num_kv_heads num_kv_shared_layers
	multi_query multi_query_attention multi_query_group_num kv_channels kv_lora_rank q_lora_rank o_lora_rank qk_lora_rank kv_n_heads n_head_kv
	num_hidden_layers n_layer n_layers num_layers layer_types mlp_layer_types layers_block_type block_types_index mtp_layers_block_type
	hybrid_override_pattern mtp_hybrid_override_pattern block_configs full_attn_idxs block_auto_adjust_ff_dim block_ff_dim block_dim
	block_ffn_dim_multiplier block_multiple_of block_use_swiglu block_use_xavier_init
	mamba_head_dim mamba_num_heads mamba_hidden_act mamba_proj_bias mamba_conv_bias mamba_ssm_cache_dtype mamba_ssm_dtype mamba_n_heads
	mamba_d_head mamba_d_state mamba_d_conv mamba_expand mamba_n_groups mamba_dt_rank mamba_chunk_size use_mamba_kernels
	mamba_inner_layernorms ssm_state_size conv_kernel conv_L_cache conv_bias conv_use_xavier_init chunk_size time_step_limit time_step_min time_step_max
	time_step_floor time_step_rank linear_num_value_heads linear_num_key_heads linear_key_head_dim linear_value_head_dim
	linear_conv_kernel_dim linear_attn_config linear_bias
	sliding_window sliding_window_size sliding_window_pattern _sliding_window_pattern use_sliding_window max_window_layers layer_switch
	index_head_dim index_n_heads index_topk index_topk_freq index_topk_pattern index_skip_topk_offset index_share_for_mtp_iteration
	indexer_types cla_share_factor
	first_k_dense_replace num_nextn_predict_layers num_mtp_modules mtp_num_hidden_layers mtp_num_layers mtp_use_dedicated_embeddings
	decoder_sparse_step is_decoder is_encoder_decoder early_exit_threshold hidden_size_per_layer_input vocab_size_per_layer_input
	next_n_predict_layers nextn_predict_layers num_predict_layers tie_encoder_decoder chunk_size_feed_forward n_group topk_group
	quantization_config compression_config torch_dtype dtype model_type language name_or_path _name_or_path _from_model_config
	tie_word_embeddings hidden_size vocab_size num_labels problem_type return_dict torchscript finetuning_task task_specific_params
	ep_size id2label label2id num_beams num_beam_groups top_k top_p top_k_experts num_expert_group moe_renormalize moe_layer_freq
	moe_shared_expert_overlap expand rescale_prenorm_residual initial_context_length use_bfloat16 tf_legacy_loss do_sample max_length min_length num_return_sequences repetition_penalty length_penalty diversity_penalty
	no_repeat_ngram_size encoder_no_repeat_ngram_size early_stopping prefix bad_words_ids suppress_tokens begin_suppress_tokens
	lm_head remove_invalid_values exponential_decay_length_penalty decoder_start_token_id typical_p seq_length n_positions max_sequence_length
	n_inner mup_base_width model_max_length max_seq_len n_ctx sequence_length is_causal residual_in_fp32 fused_add_norm`)

// neverIgnored are fields that are read although a word of their names is ignored.
var neverIgnored = words("compress_ratios sparse_attention_config cross_attention_layers use_cla")

// unreadFields are the first field that no rule read and that may change the memory of attention, and the names of the others that may
// take memory, for people; "": there are none.
func (c *config) unreadFields() (changing, others string) {
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(c.text.values)) {
		if !switchesOn(c.text.values[name]) {
			continue
		}
		switch parts := nameWords(name); {
		case neverIgnored[name]:
			return name, ""
		case c.text.read[name], fieldsOfRules[name], hasWord(parts, ignoredWords), ofTokens.MatchString(name):
		case !hasWord(parts, weightWords) && hasWord(parts, attentionWords):
			return shortName(name), ""
		default:
			rest = append(rest, shortName(name))
		}
	}
	const most = 12 // names in one sentence
	if more := len(rest) - most; more > 0 {
		rest = append(rest[:most], fmt.Sprintf("%d more", more))
	}
	return "", strings.Join(rest, ", ")
}

// nameWords are those of "use_qk_norm" and of "convBias".
func nameWords(name string) []string {
	var split strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			split.WriteByte('_')
		}
		split.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(split.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func hasWord(parts []string, set map[string]bool) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return set[p] })
}

// shortName bounds a name that somebody else chose.
func shortName(name string) string {
	const most = 60
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}

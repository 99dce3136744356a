package enginememory

import (
	"fmt"
	"regexp"
)

// generating are the names of classes that generate text, by how transformers and vLLM's registry of models name them.
var generating = regexp.MustCompile(`(CausalLM|ForConditionalGeneration|StreamingGeneration|LMHeadModel|LMHead|ChatModel)$|` +
	`^(AquilaModel|ChatGLMModel|Llama_Nemotron_Nano_VL|MiDashengLMModel|MiniCPM[VO]|NVLM_D|NemotronH_Nano_VL_V2|` +
	`Ovis[0-9_]*|Qwen2_5OmniModel|UltravoxModel)$`)

// withoutGeneration is why the model is not one that generates text from a KV cache; "": it is one. Of the architectures, the first that
// config.json lists decides: a model for embeddings may have a language model inside. A model type decides where there is none.
func (c *config) withoutGeneration() string {
	kind := shortName(c.kindOfModel)
	for _, o := range []object{c.text, c.outer} {
		switch {
		case o.bool("is_encoder_decoder"):
			return "the model has an encoder and a decoder"
		case encoders[c.kindOfModel] && o.bool("is_decoder"):
			return fmt.Sprintf("no rule is known for a decoder of type %s", kind)
		case !encoders[c.kindOfModel] && (o.value("is_causal") == false || o.value("causal") == false):
			return "its attention is not causal, and it has no KV cache"
		}
	}
	switch {
	case encoders[c.kindOfModel]:
		return fmt.Sprintf("a model of type %s has no KV cache", kind)
	case generators[c.kindOfModel]:
		return fmt.Sprintf("no rule is known for models of type %s", kind)
	case len(c.architectures) > 0 && generating.MatchString(c.architectures[0]):
		return ""
	case len(c.architectures) > 0:
		return fmt.Sprintf("%s is no architecture that is known to generate text", shortName(c.architectures[0]))
	case c.text.bool("is_decoder"), gated[c.kindOfModel], ungated[c.kindOfModel]:
		return ""
	case kind == "":
		return "config.json has no architectures and no model_type"
	}
	return fmt.Sprintf("config.json has no architectures, and no rule is known for models of type %s", kind)
}

// encoders are the model types that do not generate text, or only if is_decoder is set: the families of transformers' documentation without
// a class for generation. An architecture decides most of them too. The list is for those without one, and for those whose family shares
// the names of classes that generate.
var encoders = words(`
	albert bert big_bird bert-generation bros camembert canine convbert data2vec-text deberta deberta-v2 distilbert
	dpr electra ernie ernie_m esm eurobert flaubert fnet funnel ibert layoutlm layoutlmv2 layoutlmv3 lilt longformer
	luke markuplm mega megatron-bert mobilebert modernbert mpnet mra nezha nomic_bert nystromformer qdqbert realm rembert retribert roberta
	roberta-prelayernorm roc_bert roformer splinter squeezebert tapas xlm xlm-roberta xlm-roberta-xl xmod yoso
	align align_text_model align_vision_model altclip altclip_text_model altclip_vision_model blip blip_text_model blip_vision_model
	bridgetower bridgetower_text_model chinese_clip chinese_clip_text_model chinese_clip_vision_model clap clap_text_model clap_audio_model
	clip clip_text_model clip_vision_model clipseg clipseg_text_model flava flava_text_model groupvit groupvit_text_model
	lxmert metaclip_2 metaclip_2_text_model owlvit owlvit_text_model owlv2 owlv2_text_model perceiver siglip siglip_text_model
	siglip_vision_model siglip2 siglip2_text_model siglip2_vision_model tvlt tvp vilt vision-text-dual-encoder visual_bert xclip
	xclip_text_model
	beit bit conditional_detr convnext convnextv2 cvt data2vec-vision deformable_detr deit depth_anything deta detr dinat dinov2
	dinov2_with_registers dinov3_vit dinov3_convnext dpt efficientformer efficientnet focalnet glpn grounding-dino hiera ijepa levit
	mask2former maskformer mgp-str mobilenet_v1 mobilenet_v2 mobilevit mobilevitv2 nat omdet-turbo oneformer poolformer pvt pvt_v2 regnet
	resnet rt_detr rt_detr_v2 sam sam2 seggpt segformer superpoint swiftformer swin swin2sr swinv2 table-transformer textnet timesformer
	timm_wrapper upernet van videomae vit vit_hybrid vit_mae vit_msn vitdet vitmatte vitpose vivit vjepa2 yolos zoedepth
	audio-spectrogram-transformer data2vec-audio dac encodec fastspeech2_conformer hubert mctct mimi parakeet_ctc parakeet_encoder sew sew-d
	unispeech unispeech-sat univnet vits wav2vec2 wav2vec2-bert wav2vec2-conformer wavlm
	autoformer decision_transformer graphormer informer patchtsmixer patchtst time_series_transformer timesfm trajectory_transformer`)

// generators are the model types that generate with other layers than the rules', or no text.
var generators = words(`bark clvp clvp_decoder csm dia git imagegpt kyutai_speech_to_text moshi musicgen musicgen_decoder musicgen_melody
	musicgen_melody_decoder reformer rwkv transfo-xl trocr xlnet`)

// Package enginememory estimates the memory of an inference engine on each GPU for a language model: weights, KV cache
// and the engine's own overhead. It knows rules, no models:
//
//	config.json -> object (parse.go) -> model of layers (generation.go, model.go, kinds.go) -> matrices (matrices.go, towers.go)
//	            -> bytes of weights (weights.go, quantization.go) and of KV cache (kv.go) -> Estimate (estimate.go)
//
// All amounts are bytes on one GPU. Values that config.json omits are assumed, and the assumption is listed; parts that
// no rule covers are listed as unknown, and no number is given for them.
//
// Sources: the engines' own code, as vLLM 0.20 (v1/core/kv_cache_utils.py groups layers and counts blocks,
// v1/kv_cache_interface.py sizes pages), SGLang 0.5 (two pools for sliding windows, a pool of states for linear
// layers), llama.cpp (cells of sliding layers); and transformers, for the defaults of configuration classes.
// published_test.go checks the rules against logs.
package enginememory

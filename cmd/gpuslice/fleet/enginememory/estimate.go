package enginememory

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The engines whose rules are known.
const (
	vllm     = "vllm"
	sglang   = "sglang"
	tensorRT = "tensorrt-llm"
	LlamaCPP = "llama.cpp" // whose weights are a GGUF file
)

// Engines are the names that Run.Engine takes.
func Engines() []string { return []string{vllm, sglang, tensorRT, LlamaCPP} }

// Bounds of a run.
const (
	maxContext     = 1 << 26 // tokens
	maxConcurrency = 1 << 20
	maxGPUs        = 1024
	maxStored      = 1 << 50 // bytes
)

// Run is how a model is to be served.
type Run struct {
	Engine         string // one of Engines
	Context        int    // tokens of a request: prompt and answer
	Concurrency    int    // requests at a time
	TensorParallel int    // GPUs that divide each layer
	DType          string // of weights; "" or "auto": those of config.json
	KVDType        string // of the KV cache; "" or "auto": that of the model
	DeviceMemory   int64  // bytes of the GPU or MIG instance, as the engine sees them; 0: not known
}

func (r *Run) tokens() float64 { return float64(r.Context) * float64(r.Concurrency) }

// Stored holds the facts about a checkpoint beside its config.json.
type Stored struct {
	Bytes        int64  // of all weights; 0: not known
	Quantization []byte // hf_quant_config.json; nil: there is none

	quantization *object
}

// Estimate is the memory of an engine on each GPU, in bytes. An unknown part is nil, and Unknown has the reason.
type Estimate struct {
	WeightsBytes    *int64   `json:"weightsBytes"`
	KVBytesPerToken *int64   `json:"kvBytesPerToken"` // of each token as the engine counts them in its log
	KVBytes         *int64   `json:"kvBytes"`         // of all requests at full length
	OverheadBytes   *int64   `json:"overheadBytes"`   // activations, CUDA graphs and context: no rule, a guess
	SliceBytes      *int64   `json:"sliceBytes"`
	Attention       string   `json:"attention,omitempty"`
	Flags           []string `json:"flags"` // of the engine, with which it stays inside the slice
	Assumed         []string `json:"assumed"`
	Unknown         string   `json:"unknown"` // "": all is known
}

// New estimates the memory of an engine for the model of a config.json. An error means that the input is not valid.
func New(configJSON []byte, stored Stored, r Run) (*Estimate, error) {
	if err := r.check(stored); err != nil {
		return nil, err
	}
	outer, err := parse(configJSON)
	if err != nil {
		return nil, fmt.Errorf("read config.json: %w", err)
	}
	if stored.Quantization != nil {
		beside, err := parse(stored.Quantization)
		if err != nil {
			return nil, fmt.Errorf("read hf_quant_config.json: %w", err)
		}
		beside.problems = outer.problems
		stored.quantization = &beside
	}
	c, err := newConfig(outer)
	if err != nil {
		return nil, fmt.Errorf("read config.json: %w", err)
	}
	e, err := c.estimate(&r, stored)
	if problems := *outer.problems; len(problems) > 0 {
		return nil, fmt.Errorf("read config.json: %w", problems[0])
	}
	return e, err
}

func (r *Run) check(stored Stored) error {
	for _, bound := range []struct {
		name        string
		value, most int
	}{{"context", r.Context, maxContext}, {"concurrency", r.Concurrency, maxConcurrency},
		{"tensor parallel size", r.TensorParallel, maxGPUs}} {
		if bound.value < 1 || bound.value > bound.most {
			return fmt.Errorf("%s %d: accepted: 1 to %d", bound.name, bound.value, bound.most)
		}
	}
	if !slices.Contains(Engines(), r.Engine) {
		return fmt.Errorf("engine %q: accepted: %s", r.Engine, strings.Join(Engines(), ", "))
	}
	if r.Engine == LlamaCPP && r.TensorParallel > 1 {
		return fmt.Errorf("tensor parallel size %d: llama.cpp gives each GPU whole layers, for which no rule is known: accepted: 1",
			r.TensorParallel)
	}
	if stored.Bytes < 0 || stored.Bytes > maxStored {
		return fmt.Errorf("weights of %d bytes: accepted: up to %d", stored.Bytes, int64(maxStored))
	}
	return nil
}

func (c *config) estimate(r *Run, stored Stored) (*Estimate, error) {
	m := c.model()
	if m.unknown == "" && m.queries%r.TensorParallel != 0 {
		return nil, fmt.Errorf("tensor parallel size %d: the model has %d attention heads, which must be divisible by it",
			r.TensorParallel, m.queries)
	}
	if m.unknown == "" {
		if err := c.checkPositions(r); err != nil {
			return nil, err
		}
	}
	var reasons []string
	out := &Estimate{Attention: m.attention, Flags: []string{}}
	weights, unknown, err := c.weights(r, m, stored)
	if err != nil {
		return nil, err
	}
	if unknown == "" {
		if out.WeightsBytes, err = whole(weights); err != nil {
			return nil, err
		}
	} else {
		reasons = append(reasons, unknown)
	}
	element, err := c.element(r, stored)
	if err != nil {
		return nil, err
	}
	if m.unknown != "" {
		reasons = append(reasons, "this model's attention is unknown: "+m.unknown)
	} else if err := out.addCache(c, m, r, element); err != nil {
		return nil, err
	}
	if out.WeightsBytes != nil && out.KVBytes != nil {
		err = out.addSlice(c, r)
	}
	out.Assumed, out.Unknown = append([]string{}, c.assumed...), strings.Join(reasons, "; ")
	return out, err
}

func (e *Estimate) addCache(c *config, m *model, r *Run, element kvElement) error {
	kept, err := m.cache(r, element)
	if err != nil {
		return err
	}
	if m.has(linear) && !m.knowsStates() {
		c.assume("config.json does not have the size of states: linear layers are counted like those with attention")
	}
	if r.Engine == vllm && m.has(sliding) {
		c.assume("vLLM counts its tokens as if sliding windows kept every token: requests take kvBytes, which is less for long contexts")
	}
	if e.KVBytesPerToken, err = whole(kept.perToken); err != nil {
		return err
	}
	e.KVBytes, err = whole(kept.bytes)
	return err
}

// kvTypes are the bytes of a value of the KV cache, those of llama.cpp with their scales.
var kvTypes = map[string]float64{"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
	"fp8_inc": 1, "int8": 1, "q8_0": 34.0 / 32, "q5_1": 24.0 / 32, "q5_0": 22.0 / 32,
	"q4_1": 20.0 / 32, "q4_0": 18.0 / 32, "iq4_nl": 18.0 / 32, "nvfp4": 9.0 / 16, "fp4_e2m1": 9.0 / 16}

// engineKVTypes are those that engines take beside auto.
var engineKVTypes = map[string]string{vllm: "fp8 fp8_e4m3 fp8_e5m2 fp8_inc", sglang: "fp8 fp8_e4m3 fp8_e5m2", tensorRT: "fp8 nvfp4",
	LlamaCPP: "f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl"}

// element is how a value of keys and values is kept.
func (c *config) element(r *Run, stored Stored) (kvElement, error) {
	plain, err := c.dtypeBytes(r)
	if err != nil {
		return kvElement{}, err
	}
	e := kvElement{bytes: plain, stateBytes: plain}
	if r.KVDType != "" && r.KVDType != "auto" {
		if accepted := strings.Fields(engineKVTypes[r.Engine]); !slices.Contains(accepted, r.KVDType) {
			return e, fmt.Errorf("KV dtype %q: %s accepts: auto, %s", r.KVDType, r.Engine, strings.Join(accepted, ", "))
		}
		e.bytes = max(dtypes[r.KVDType], kvTypes[r.KVDType])
		return e, nil
	}
	q, err := c.quantization(stored.quantization)
	if err == nil && q != nil && q.kv > 0 && r.Engine != LlamaCPP {
		e.bytes = q.kv
		c.assume("the checkpoint is made for a KV cache of 8 bits: one byte for each value")
	}
	return e, err
}

// whole rounds bytes up.
func whole(bytes float64) (*int64, error) {
	if math.IsNaN(bytes) || bytes < 0 || bytes > maxStored {
		return nil, errors.New("the dimensions in config.json give more than a PiB")
	}
	return new(int64(math.Ceil(bytes))), nil
}

const (
	// inside is counted by an engine beside weights, cache and activations: CUDA context, libraries. 0.05 to 0.35 GiB
	// are published for libraries on one GPU; a context takes some 0.3 GiB.
	inside = 640 << 20
	// outside is not counted by it: CUDA graphs (up to 1.9 GiB are published), and memory that the allocator cannot
	// use.
	outside = 1 << 30
	// bytesOfLogit are those of a logit while tokens are sampled: probabilities, sorted copies.
	bytesOfLogit = 40
	// sliceUnit is the unit to which a slice is rounded up.
	sliceUnit = 512 << 20
)

// addSlice adds the overhead, the slice and the flags.
func (e *Estimate) addSlice(c *config, r *Run) error {
	prefill := float64(min(prefillTokens, max(r.Context, 1)))
	widest := c.denseWidth(0) + c.experts(c.layers-1).width
	activations := 2*prefill*float64(4*c.hidden()+3*ceil(widest, r.TensorParallel)) +
		bytesOfLogit*float64(r.Concurrency*c.get("vocab_size", "padded_vocab_size"))
	overhead, err := whole(activations + inside + outside)
	if err != nil {
		return err
	}
	need := *e.WeightsBytes + *e.KVBytes + *overhead
	slice := (need + sliceUnit - 1) / sliceUnit * sliceUnit
	e.OverheadBytes, e.SliceBytes = overhead, new(slice)
	if r.DeviceMemory > 0 && slice > r.DeviceMemory {
		return fmt.Errorf("the slice of %s is more than the GPU's memory, %s: weights %s, KV cache %s, overhead %s", gibibytes(slice),
			gibibytes(r.DeviceMemory), gibibytes(*e.WeightsBytes), gibibytes(*e.KVBytes), gibibytes(*overhead))
	}
	e.Flags = r.flags(float64(slice), float64(*e.WeightsBytes), float64(*e.KVBytes))
	if share := engineFlags[r.Engine].share; share != "" && r.DeviceMemory == 0 {
		c.assume("%s is left out: it is a part of the GPU's memory, which --device-memory gives", share)
	}
	c.assume("overhead is a guess, for %d tokens of prefill at a time: no configuration has it; compare with the engine's log", prefillTokens)
	return nil
}

func gibibytes(n int64) string { return fmt.Sprintf("%.1fGi", float64(n)/(1<<30)) }

// flagNames are an engine's flags.
type flagNames struct{ context, requests, prefill, share, gpus, kvDType string }

var engineFlags = map[string]flagNames{
	vllm: {"--max-model-len", "--max-num-seqs", "--max-num-batched-tokens", "--gpu-memory-utilization",
		"--tensor-parallel-size", "--kv-cache-dtype"},
	sglang: {"--context-length", "--max-running-requests", "--chunked-prefill-size",
		"--mem-fraction-static", "--tp-size", "--kv-cache-dtype"},
	tensorRT: {"--max_seq_len", "--max_batch_size", "--max_num_tokens", "--kv_cache_free_gpu_memory_fraction",
		"--tp_size", "--kv_cache_dtype"},
}

// flags are those with which the engine stays inside a slice. The share of the GPU is left out where the GPU's memory is not known.
func (r *Run) flags(slice, weights, kv float64) (all []string) {
	add := func(name string, value any) { all = append(all, fmt.Sprintf("%s=%v", name, value)) }
	if r.Engine == LlamaCPP {
		add("--ctx-size", r.Context*r.Concurrency)
		add("--parallel", r.Concurrency)
		if r.KVDType != "" && r.KVDType != "auto" {
			add("--cache-type-k", r.KVDType)
			add("--cache-type-v", r.KVDType)
		}
		return all
	}
	part := func(bytes, of float64) float64 { return math.Floor(bytes/of*1e4) / 1e4 }
	names, prefill, share, kvDType := engineFlags[r.Engine], prefillTokens, 0.0, r.KVDType
	device := float64(r.DeviceMemory)
	switch r.Engine {
	case vllm:
		prefill, share = max(prefillTokens, r.Concurrency), part(slice-outside, device)
	case sglang:
		share = min(math.Round(part(weights+kv, device)*1e4+1)/1e4, 1)
		if kvDType == "fp8" { // which SGLang has no name for without the kind
			kvDType = "fp8_e4m3"
		}
	case tensorRT:
		share = part(kv, device-weights-inside) // of the memory without weights and context
	}
	add(names.context, r.Context)
	add(names.requests, r.Concurrency)
	add(names.prefill, prefill)
	if r.DeviceMemory > 0 {
		add(names.share, share)
	}
	if r.TensorParallel > 1 {
		add(names.gpus, r.TensorParallel)
	}
	if kvDType != "" {
		add(names.kvDType, kvDType)
	}
	return all
}

// IndexBytes reads the bytes of all weights from a model.safetensors.index.json.
func IndexBytes(index []byte) (int64, error) {
	if len(index) > MaxIndex {
		return 0, fmt.Errorf("it has %d bytes, at most %d are read", len(index), MaxIndex)
	}
	var document struct {
		Metadata struct {
			TotalSize json.Number `json:"total_size"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(index, &document); err != nil {
		return 0, fmt.Errorf("it is no index of safetensors: %w", err)
	}
	size, err := document.Metadata.TotalSize.Float64()
	if document.Metadata.TotalSize == "" {
		return 0, errors.New("it has no metadata.total_size")
	}
	if err != nil || size < 1 || size > maxStored {
		return 0, fmt.Errorf("metadata.total_size is %s: accepted: 1 to %d", document.Metadata.TotalSize, int64(maxStored))
	}
	return int64(size), nil
}

// MaxIndex is the bytes of a model.safetensors.index.json that are read at most:
// those of models with a hundred thousand tensors have some 15 MiB.
const MaxIndex = 64 << 20

package enginememory

import "fmt"

// weights are the bytes of weights on each GPU. If the bytes of a checkpoint are known, they count more than the
// computed ones, and config.json only decides which part of them each GPU holds.
func (c *config) weights(r *Run, m *model, stored Stored) (bytes float64, unknown string, err error) {
	if r.Engine == LlamaCPP && stored.Bytes == 0 {
		return 0, "llama.cpp loads a GGUF file, whose size is not in config.json: put that file beside it, and no other, and name the folder", nil
	}
	if r.Engine == LlamaCPP {
		return float64(stored.Bytes), "", nil
	}
	q, err := c.quantization(stored.quantization)
	if err != nil {
		return 0, "", err
	}
	before := len(*c.text.problems)
	all, unknown := []matrix(nil), "its layers are not known"
	if m.unknown == "" {
		all, unknown = c.matrices(m)
	}
	if problems := *c.text.problems; len(problems) > before && unknown == "" { // they are of the weights alone
		unknown = problems[before].Error()
	}
	*c.text.problems = (*c.text.problems)[:before]
	if unknown == "" && q != nil && q.bytes == 0 {
		unknown = q.unknown
	}
	if unknown != "" {
		if stored.Bytes == 0 {
			return 0, "the weights cannot be computed: " + unknown, nil
		}
		c.assume("weights are the checkpoint's bytes divided by the GPUs: %s", unknown)
		return float64(stored.Bytes) / float64(r.TensorParallel), "", nil
	}
	kvHeads := 1
	for i := range m.layers {
		kvHeads = max(kvHeads, m.layers[i].kvHeads)
	}
	plain, err := c.dtypeBytes(r)
	if err != nil {
		return 0, "", err
	}
	onGPU, checkpoint, inCheckpoint := 0.0, 0.0, c.storedBytes(plain)
	for i := range all {
		x := &all[i]
		checkpoint += x.values * q.of(x, inCheckpoint)
		if x.role != predictor {
			onGPU += x.values * q.of(x, plain) / float64(x.division.parts(r.TensorParallel, kvHeads))
		}
	}
	extra := c.copies(m, r, q)
	if stored.Bytes == 0 {
		c.assume("no sizes of weights were found: computed from the dimensions in config.json")
		return onGPU + extra, "", nil
	}
	if ratio := float64(stored.Bytes) / checkpoint; ratio < 0.8 || ratio > 1.25 {
		c.assume("weights are the checkpoint's bytes divided by the GPUs: the dimensions in config.json give %.0f %% of them", 100/ratio)
		return float64(stored.Bytes) / float64(r.TensorParallel), "", nil
	}
	return float64(stored.Bytes)*onGPU/checkpoint + extra, "", nil
}

// Widths to which vLLM's kernels for MXFP4 pad experts.
const (
	paddedHidden = 256
	paddedInner  = 128
)

// copies are the bytes that an engine adds to the weights of a checkpoint.
func (c *config) copies(m *model, r *Run, q *quantization) (bytes float64) {
	for i := range m.layers {
		l := &m.layers[i]
		if l.latent > 0 && r.Engine == vllm && q != nil { // 16-bit copies of the matrices up from the latent
			query, _ := c.heads(i)
			bytes += 2 * float64(c.get("kv_lora_rank")*query) * float64(c.get("qk_nope_head_dim")+c.get("v_head_dim")) / float64(r.TensorParallel)
		}
		if f := c.experts(i); f.count > 0 && q != nil && q.method == "mxfp4" && r.Engine == vllm {
			h, inner := c.hidden(), ceil(f.width, r.TensorParallel)
			padded := float64(ceil(h, paddedHidden)*paddedHidden) * float64(ceil(inner, paddedInner)*paddedInner)
			bytes += 3 * float64(f.count) * q.bytes * (padded - float64(h)*float64(f.width)/float64(r.TensorParallel))
		}
	}
	return bytes
}

// dtypes are the bytes of a value by the names that engines and config.json give it.
var dtypes = map[string]float64{"bfloat16": 2, "bf16": 2, "float16": 2,
	"fp16": 2, "f16": 2, "half": 2, "float32": 4, "fp32": 4, "f32": 4, "float": 4}

// dtypeBytes is the size of a value that is not quantized.
func (c *config) dtypeBytes(r *Run) (float64, error) {
	if r.DType != "" && r.DType != "auto" {
		if b := dtypes[r.DType]; b > 0 {
			return b, nil
		}
		return 0, fmt.Errorf("dtype %q: accepted: auto, bfloat16, float16, float32", r.DType)
	}
	switch name := c.dtypeName(); name {
	case "":
		c.assume("torch_dtype is absent: 2 bytes for each value that is not quantized")
	case "float32", "float64":
		c.assume("torch_dtype is %s: engines load it as 2 bytes for each value", name)
	}
	return 2, nil
}

func (c *config) dtypeName() string {
	if name := c.text.string("dtype", "torch_dtype"); name != "" {
		return name
	}
	return c.outer.string("dtype", "torch_dtype")
}

// storedBytes is the bytes of a value in the checkpoint.
func (c *config) storedBytes(plain float64) float64 {
	if b := dtypes[c.dtypeName()]; b > 0 {
		return b
	}
	return plain
}

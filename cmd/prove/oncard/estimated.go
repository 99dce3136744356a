package oncard

import (
	"context"
	_ "embed" // model.json
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// model is the config.json of a small model with about 470 MiB of weights.
//
//go:embed model.json
var model []byte

const (
	modelRequests, modelTokens = 8, 1024 // of each request
	// weightsTolerance and cacheTolerance are the fractions by which estimates differ from engines' logs at most.
	weightsTolerance, cacheTolerance = 0.03, 0.02
)

// estimate is what is read of the program's answer. A nil amount is one that it does not know.
type estimate struct {
	Weights *int64 `json:"weightsBytes"`
	Cache   *int64 `json:"kvBytes"`
}

func estimated(ctx context.Context, c *card) []check {
	const subject = "gpuslice estimate"
	folder, err := os.MkdirTemp("", "gpuslice-card")
	if err != nil {
		return []check{broken(subject, err)}
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "config.json"), model, 0o644); err != nil {
		return []check{broken(subject, err)}
	}
	e, err := c.estimate(ctx, folder)
	if err != nil {
		return []check{broken(subject, err)}
	}
	return []check{
		c.taken(ctx, "tensors of the model's shapes by PyTorch", "torch", torchModel, folder, e),
		c.taken(ctx, "model by transformers", "transformers", transformersModel, folder, e),
		notRun("overhead", "needs an engine: compare overheadBytes with the log of yours"),
	}
}

// estimate runs the program.
func (c *card) estimate(ctx context.Context, folder string) (e estimate, err error) {
	program, err := filepath.Abs(filepath.Join(c.bin, "gpuslice"))
	if err != nil {
		return e, err
	}
	cmd := exec.CommandContext(ctx, program, "estimate", folder, "--concurrency", strconv.Itoa(modelRequests),
		"--context", strconv.Itoa(modelTokens), "-o", "json")
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, oneLine(string(failed.Stderr)))
	}
	if err != nil {
		return e, fmt.Errorf("run gpuslice estimate: %w", err)
	}
	if err := json.Unmarshal(out, &e); err != nil {
		return e, fmt.Errorf("read the answer of gpuslice estimate: %w", err)
	}
	if e.Weights == nil || e.Cache == nil {
		return e, errors.New("gpuslice estimate does not know the model")
	}
	return e, nil
}

// taken compares an estimate with what a library takes for the model.
func (c *card) taken(ctx context.Context, subject, module, task, folder string, e estimate) check {
	p, a, err := c.python(ctx, module, task, 4*gibibyte, "HF_HUB_OFFLINE=1", "GPUSLICE_CARD_MODEL="+folder,
		fmt.Sprintf("GPUSLICE_CARD_REQUESTS=%d", modelRequests), fmt.Sprintf("GPUSLICE_CARD_TOKENS=%d", modelTokens))
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	found, _, err := c.listed(ctx, p.pid)
	if err != nil {
		return broken(subject, err)
	}
	return verdict(subject+" "+a.Version, relativeError(*e.Weights, a.Weights) <= weightsTolerance && relativeError(*e.Cache, a.Cache) <= cacheTolerance,
		"MiB of weights: estimate %.1f, taken %.1f; of KV cache for %d requests of %d tokens: estimate %.1f, taken %.1f; reserved %d, by NVML %d",
		mebibytes(*e.Weights), mebibytes(a.Weights), modelRequests, modelTokens, mebibytes(*e.Cache), mebibytes(a.Cache),
		a.Reserved/mebibyte, found.UsedBytes/mebibyte)
}

// relativeError is the part by which an estimate differs.
func relativeError(estimate, taken int64) float64 {
	return math.Abs(float64(estimate)/float64(taken) - 1) // of nothing: infinite
}

func mebibytes(n int64) float64 { return float64(n) / mebibyte }

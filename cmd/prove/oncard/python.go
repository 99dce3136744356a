package oncard

import (
	"context"
	_ "embed" // framework.py
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
)

// python.go starts framework.py: a process that does with a framework what its argument names.

//go:embed framework.py
var framework string

// What framework.py does.
const (
	torchTensor       = "torch-tensor"
	torchGraph        = "torch-graph"
	torchProduct      = "torch-product"
	torchFill         = "torch-fill"
	torchModel        = "torch-model"
	transformersModel = "transformers-model"
	jaxFill           = "jax-fill"
	tensorflowFill    = "tensorflow-fill"
	cupyFill          = "cupy-fill"
)

// account is the line that framework.py prints: the process's own account of its memory.
type account struct {
	Version     string `json:"version"`
	Reserved    int64  `json:"reserved"`    // bytes that the allocator holds
	OutOfMemory bool   `json:"outOfMemory"` // the allocator denied more
	Weights     int64  `json:"weights"`     // bytes of a model
	Cache       int64  `json:"cache"`       // bytes of its keys and values
	Failure     string `json:"failure"`
}

// interpreter returns the path of python3, or an error where it or the module is missing.
func interpreter(ctx context.Context, module string) (string, error) {
	program, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("there is no python3 in PATH")
	}
	find := exec.CommandContext(ctx, program, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('"+module+"') is None)")
	if err := find.Run(); err != nil {
		return "", fmt.Errorf("python3 has no %s", module)
	}
	return program, nil
}

// python has framework.py do something in at most so many bytes, and returns the process, which holds them until it is stopped.
func (c *card) python(ctx context.Context, module, task string, most int64, environment ...string) (*process, account, error) {
	program, err := interpreter(ctx, module)
	if err != nil {
		return nil, account{}, err
	}
	if err := c.requireFree(ctx, most); err != nil {
		return nil, account{}, err
	}
	cmd := exec.CommandContext(ctx, program, "-c", framework, task, about+about)
	cmd.Env = append(c.environment(), append(environment, fmt.Sprintf("GPUSLICE_CARD_BOUND=%d", most))...)
	p, err := c.launch(cmd)
	if err != nil {
		return nil, account{}, err
	}
	text, err := p.line(ctx)
	if err != nil {
		return nil, account{}, err
	}
	var a account
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, a, fmt.Errorf("read the account of %s: %w", module, err)
	}
	if a.Failure != "" {
		return nil, a, errors.New(a.Failure)
	}
	return p, a, nil
}

func (c *card) torchHolds(ctx context.Context, subject, task string) check {
	p, a, err := c.python(ctx, "torch", task, 3*gibibyte)
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	return c.compare(ctx, subject+" "+a.Version, p.pid, a.Reserved)
}

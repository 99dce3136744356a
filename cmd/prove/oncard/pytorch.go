package oncard

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/shim"
)

const (
	// capBytes is the limit that a framework gets, capSlack how far its allocator may stay below.
	capBytes, capSlack = 2 * gibibyte, 256 * mebibyte
	// tensorflowSlack is larger: TensorFlow's limit counts from the memory that is free at its start, without the context and the
	// driver's own memory.
	tensorflowSlack = capBytes - 512*mebibyte
	// firstFraction is the first PyTorch with per_process_memory_fraction.
	firstFraction = "2.10"
)

// pytorch fills memory until PyTorch's allocator denies more.
func pytorch(ctx context.Context, c *card) []check {
	p, a, err := c.python(ctx, "torch", torchProduct, 2*gibibyte)
	if err != nil {
		return []check{broken("per_process_memory_fraction", err)}
	}
	p.stop()
	if gpu.Older(a.Version, firstFraction) {
		return []check{notRun("per_process_memory_fraction", "PyTorch %s, and %s is needed", a.Version, firstFraction), c.shimmed(ctx)}
	}
	var checks []check
	for _, more := range []string{"", ",max_split_size_mb:128", ",expandable_segments:True"} {
		settings := "per_process_memory_fraction:" + c.fraction() + more
		checks = append(checks, c.capped(ctx, settings, "torch", torchFill, capSlack, "PYTORCH_CUDA_ALLOC_CONF="+settings))
	}
	return checks
}

// fraction is the part of the device's memory that is the cap.
func (c *card) fraction() string {
	return strconv.FormatFloat(math.Floor(1e6*capBytes/float64(c.device.TotalBytes))/1e6, 'f', -1, 64)
}

// capped fills memory by a framework under a limit, from which its allocator may stay away by slack.
func (c *card) capped(ctx context.Context, subject, module, task string, slack int64, environment ...string) check {
	p, a, err := c.python(ctx, module, task, 2*capBytes, environment...)
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	found, _, err := c.listed(ctx, p.pid)
	if err != nil {
		return broken(subject, err)
	}
	return verdict(subject, a.OutOfMemory && a.Reserved <= capBytes && a.Reserved >= capBytes-slack,
		"version %s, cap %d MiB: out of memory %t at %d MiB, %d MiB by NVML",
		a.Version, capBytes/mebibyte, a.OutOfMemory, a.Reserved/mebibyte, found.UsedBytes/mebibyte)
}

// shimmed fills memory by a PyTorch that the shim limits.
func (c *card) shimmed(ctx context.Context) check {
	const subject = "shim"
	folder, err := os.MkdirTemp("", "gpuslice-card")
	if err != nil {
		return broken(subject, err)
	}
	defer os.RemoveAll(folder)
	if err := shim.Write(folder, filepath.Join(c.bin, "gpuslice-exec")); err != nil {
		return broken(subject, err)
	}
	path := strings.TrimSuffix(folder+":"+os.Getenv("PYTHONPATH"), ":")
	return c.capped(ctx, subject, "torch", torchFill, capSlack, "PYTHONPATH="+path, fmt.Sprintf("GPUSLICE_ALLOCATOR_BYTES=%d", int64(capBytes)))
}

// frameworks fills memory by frameworks that have a limit of their own.
func frameworks(ctx context.Context, c *card) []check {
	headroom := fmt.Sprintf("TF_DEVICE_MIN_SYS_MEMORY_IN_MB=%d", (c.device.TotalBytes-capBytes+mebibyte-1)/mebibyte)
	return []check{
		c.capped(ctx, "XLA_PYTHON_CLIENT_MEM_FRACTION for "+guard.FormatBytes(capBytes), "jax", jaxFill, capSlack,
			"XLA_PYTHON_CLIENT_MEM_FRACTION="+c.fraction(), "XLA_PYTHON_CLIENT_PREALLOCATE=false"),
		c.capped(ctx, headroom, "tensorflow", tensorflowFill, tensorflowSlack, "TF_FORCE_GPU_ALLOW_GROWTH=true", headroom),
		c.capped(ctx, "CUPY_GPU_MEMORY_LIMIT for "+guard.FormatBytes(capBytes), "cupy", cupyFill, capSlack,
			fmt.Sprintf("CUPY_GPU_MEMORY_LIMIT=%d", int64(capBytes))),
	}
}

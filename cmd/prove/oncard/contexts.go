package oncard

import (
	"context"
)

// allowance is what policies assume by default for a process's memory outside its framework's allocator: contextAllowance.
const allowance = 512 * mebibyte

// contexts measures what a process has on the device besides its allocations.
func contexts(ctx context.Context, c *card) []check {
	return []check{c.bareContext(ctx), c.torchContext(ctx)}
}

func (c *card) bareContext(ctx context.Context) check {
	const subject = "context"
	p, err := c.start(ctx, nil)
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	return c.outside(ctx, subject, p.pid, 0)
}

// outside compares a process's memory outside its allocator with the allowance.
func (c *card) outside(ctx context.Context, subject string, pid int, allocated int64) check {
	found, there, err := c.listed(ctx, pid)
	if err != nil {
		return broken(subject, err)
	}
	if !there || !found.Known {
		return notRun(subject, "NVML has no amount for the process")
	}
	used := found.UsedBytes - allocated
	return verdict(subject, used <= allowance, "%d MiB", used/mebibyte)
}

func (c *card) torchContext(ctx context.Context) check {
	const subject = "context with PyTorch and cuBLAS"
	p, a, err := c.python(ctx, "torch", torchProduct, 2*gibibyte)
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	return c.outside(ctx, subject+" of PyTorch "+a.Version, p.pid, a.Reserved)
}

package oncard

import (
	"context"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
)

// firstLimits is the first driver that counts memory by cgroup.
const firstLimits = "615"

// charged reads the driver's own figure for this program's cgroup. It sets no limit.
func charged(ctx context.Context, c *card) []check {
	const subject, cgroup = "nvmlDeviceGetMemoryLimits", "/sys/fs/cgroup"
	if gpu.Older(c.version, firstLimits) {
		return []check{notRun(subject, "driver %s, and %s is needed", c.version, firstLimits)}
	}
	p, err := c.start(ctx, nil)
	if err == nil {
		_, err = p.do(ctx, order{Do: "allocate", Bytes: gibibyte})
	}
	if err != nil {
		return []check{broken(subject, err)}
	}
	defer p.stop()
	used, limit, ok := c.driver.Charge(ctx, c.device.ID, cgroup)
	return []check{verdict(subject, ok && used >= gibibyte, "answered: %t; %s used, of which a process of this cgroup holds 1Gi; limit %s (0: none)",
		ok, guard.FormatBytes(used), guard.FormatBytes(limit))}
}

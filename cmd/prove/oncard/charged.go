package oncard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
	"github.com/gpuslice/gpuslice/guard/gpu"
)

// firstLimits is the first driver that counts memory by cgroup.
const firstLimits = "615"

// charged reads the driver's own figure for this program's cgroup. It sets no limit.
func charged(ctx context.Context, c *card) []check {
	const subject = "nvmlDeviceGetMemoryLimits"
	if gpu.Older(c.version, firstLimits) {
		return []check{notRun(subject, "driver %s, and %s is needed", c.version, firstLimits)}
	}
	folder, err := c.ownCgroup()
	if err != nil {
		return []check{broken(subject, err)}
	}
	p, err := c.start(ctx, nil)
	if err == nil {
		_, err = p.do(ctx, order{Do: "allocate", Bytes: gibibyte})
	}
	if err != nil {
		return []check{broken(subject, err)}
	}
	defer p.stop()
	used, limit, ok := c.driver.Charge(ctx, c.device.ID, folder)
	if _, err := c.read(ctx); !ok && err != nil {
		return []check{broken(subject, err)} // NVML answers nothing
	}
	return []check{verdict(subject, ok && used >= gibibyte, "answered: %t; %s used, of which a process of this cgroup holds 1Gi; limit %s (0: none)",
		ok, guard.FormatBytes(used), guard.FormatBytes(limit))}
}

// ownCgroup is the folder of this program's cgroup, which has to be one of version 2.
func (c *card) ownCgroup() (string, error) {
	folder := c.cgroup
	if folder == "" {
		text, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			return "", fmt.Errorf("read this program's cgroup: %w", err)
		}
		at, err := cgroup.Path(string(text))
		if err != nil {
			return "", fmt.Errorf("read this program's cgroup: %w", err)
		}
		folder = filepath.Join("/sys/fs/cgroup", at)
	}
	if _, err := os.Stat(filepath.Join(folder, "cgroup.procs")); err != nil {
		return "", fmt.Errorf("find this program's cgroup of version 2: %w", err)
	}
	return folder, nil
}

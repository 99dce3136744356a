package gpu

import (
	"context"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// charge is what the driver charges a cgroup.
type charge struct {
	used, limit int64
	ok          bool
}

// Charge implements guard.Reader. Drivers from 615 on keep the figure.
func (d *Driver) Charge(ctx context.Context, id, cgroup string) (used, limit int64, ok bool) {
	c, err := bounded(ctx, d.watchdog, func() (charge, error) {
		for _, dev := range d.devices {
			if dev.id == id && dev.missing == nil && d.has["nvmlDeviceGetMemoryLimits_v1"] && !dev.instance {
				return read(dev.handle.GetMemoryLimits_v1(cgroup)), nil
			}
		}
		return charge{}, nil
	})
	return c.used, c.limit, c.ok && err == nil
}

func read(l nvml.MemoryLimits_v1, ret nvml.Return) charge {
	if ret != nvml.SUCCESS || l.CurrentUsed > math.MaxInt64 {
		return charge{}
	}
	return charge{used: int64(l.CurrentUsed), limit: signed(l.HardLimit), ok: true}
}

package gpu

import (
	"context"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// charge is the driver's charge to a cgroup.
type charge struct {
	used, limit int64
	ok          bool
}

// Charge implements guard.Reader. Drivers from 615 on keep the figure.
func (d *Driver) Charge(ctx context.Context, id, cgroup string) (used, limit int64, ok bool) {
	named := slices.DeleteFunc(d.found(), func(dev *device) bool {
		return dev.id != id || dev.missing != nil || dev.instance || !d.has["nvmlDeviceGetMemoryLimits_v1"]
	})
	for _, c := range ask(ctx, d, charging, named, func(dev *device, _ bool) (charge, error) { return read(dev.handle.GetMemoryLimits_v1(cgroup)), nil }) {
		return c.value.used, c.value.limit, c.value.ok && c.err == nil
	}
	return 0, 0, false
}

func read(l nvml.MemoryLimits_v1, ret nvml.Return) charge {
	if ret != nvml.SUCCESS || l.CurrentUsed > math.MaxInt64 {
		return charge{}
	}
	return charge{used: int64(l.CurrentUsed), limit: signed(l.HardLimit), ok: true}
}

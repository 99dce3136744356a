package pools

import (
	"cmp"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Usable is the largest slice: floor((DeviceMemory - Reserve) / Replicas) of a shared device, all of these together on
// a granular pool, all memory of a device that nobody shares, an instance's memory under MIG, and a replica's part of it if instances are shared; of claims the
// largest, less the reserve beside it. 0: unknown, because the device memory, the number of replicas or the strategy
// is.
func (p *Pool) Usable() quantity.MiB {
	if p.Sharing().Claims {
		return max(cmp.Or(p.LargestClaim, p.DeviceMemory)-p.Reserve, 0)
	}
	if p.Strategy == "" || p.Replicas < 1 {
		return 0
	}
	if p.Sharing().Whole() {
		return p.DeviceMemory
	}
	one := p.Burst() / quantity.MiB(p.Replicas)
	if p.Granular {
		return one * quantity.MiB(p.Replicas)
	}
	return one
}

// Granule is the memory of one part of a granular pool's devices; 0: the pool is not granular.
func (p *Pool) Granule() quantity.MiB {
	if !p.Granular {
		return 0
	}
	return p.Usable() / quantity.MiB(max(p.Replicas, 1))
}

// Held is the memory of a device that a slice takes of the pool: its parts of a granular pool, its own size as a claim, or the one size
// that there is. It may be larger than Usable, where the slice does not fit. 0: unknown.
func (p *Pool) Held(slice quantity.MiB) quantity.MiB {
	switch {
	case p.Sharing().Claims:
		return slice
	case p.Granular:
		return quantity.MiB(p.Units(slice)) * p.Granule()
	}
	return p.Usable()
}

// Units is how many units of the pool's resource a slice takes: as many parts as it needs of a granular pool, and one elsewhere.
func (p *Pool) Units(slice quantity.MiB) int64 {
	granule := p.Granule()
	if granule == 0 {
		return 1
	}
	return int64(max((slice+granule-1)/granule, 1))
}

// Share is the part of a device in one unit of the pool's resource, or in the claim of a slice: its charge in quotas of
// devices. If the number of units is unknown, each counts as a device. A MIG instance counts by its compute slices:
// 1g.10gb is a seventh.
func (p *Pool) Share(slice quantity.MiB) quantity.Devices {
	if p.Sharing().Claims && p.DeviceMemory > 0 {
		return quantity.Device * quantity.Devices(min(slice+p.Reserve, p.DeviceMemory)) / quantity.Devices(p.DeviceMemory)
	}
	if p.Strategy == "" || p.Replicas < 1 || p.Sharing().Whole() {
		return quantity.Device
	}
	held, all := int64(1), int64(1)
	if p.MIGProfile != "" {
		held, all = migSlices(p.MIGProfile, p.Product)
		if parts := p.memoryShare(); parts*all > held*memoryParts { // 1g.20gb has two of eight parts of the memory, and one of seven slices
			held, all = parts, memoryParts
		}
	}
	return quantity.Device * quantity.Devices(held) / quantity.Devices(all*int64(p.Replicas))
}

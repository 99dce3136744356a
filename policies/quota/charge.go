package quota

import "github.com/gpuslice/gpuslice/policies/internal/quantity"

// Plus is c and d together, each dimension saturating far below an overflow.
func (c Charge) Plus(d Charge) Charge {
	return Charge{
		Memory: min(quantity.MiB(quantity.Sum(int64(c.Memory), int64(d.Memory))), quantity.MaxMemory), Slices: quantity.Sum(c.Slices, d.Slices),
		GPUs: quantity.Sum(c.GPUs, d.GPUs), Devices: quantity.Devices(quantity.Sum(int64(c.Devices), int64(d.Devices))),
	}
}

// Most is the larger of c and d in each dimension.
func (c Charge) Most(d Charge) Charge {
	return Charge{max(c.Memory, d.Memory), max(c.Slices, d.Slices), max(c.GPUs, d.GPUs), max(c.Devices, d.Devices)}
}

// Charge is the charge of a container or pod: the dimensions of limits and quota.
type Charge struct {
	Memory quantity.MiB `json:"memory,omitzero"` // slices x GPUs
	Slices int64        `json:"slices,omitempty"`
	GPUs   int64        `json:"gpus,omitempty"` // whole devices
	// Devices are GPU equivalents: 1/4 of a device counts "0.25", a whole one 1.
	Devices quantity.Devices `json:"devices,omitzero"`
}

// Sound reports whether no dimension is negative or too large for sums.
func (c Charge) Sound() bool {
	least, most := min(int64(c.Memory), c.Slices, c.GPUs, int64(c.Devices)), max(c.Slices, c.GPUs, int64(c.Devices))
	return least >= 0 && most <= quantity.MaxCharge && c.Memory <= quantity.MaxMemory
}

package quota

import (
	"strconv"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// dimension is one thing that a quota counts. Everything that handles quotas loops over Dimensions; nothing else knows
// which there are.
type dimension struct {
	// Name is the word of the policy document, of denials and of metrics.
	Name string
	// Amount is the part of a charge in this dimension.
	Amount func(Charge) int64
	// Limit is the most that a quota allows; false: it does not limit this dimension.
	Limit func(Limits) (int64, bool)
	// Unknown reports whether the pod's holding is unknown. A quota on such a dimension denies it.
	Unknown func(Holding) bool
	// Unit and Parts are how much one of the amount is where plain numbers are written: Unit / Parts.
	Unit, Parts int64
	// Text prints an amount for people.
	Text func(int64) string
}

// Dimensions lists the dimensions of quotas, in the order of denials.
func Dimensions() []dimension {
	return []dimension{
		{
			Name:    "memory",
			Amount:  func(c Charge) int64 { return int64(c.Memory) },
			Limit:   func(l Limits) (int64, bool) { return limitOf(l.Memory) },
			Unknown: func(h Holding) bool { return h.MemoryUnknown },
			Unit:    quantity.Mebibyte,
			Parts:   1,
			Text:    func(n int64) string { return quantity.MiB(n).String() },
		},
		{
			Name:    "slices",
			Amount:  func(c Charge) int64 { return c.Slices },
			Limit:   func(l Limits) (int64, bool) { return limitOf(l.Slices) },
			Unknown: neverUnknown,
			Unit:    1,
			Parts:   1,
			Text:    formatCount,
		},
		{
			Name:    "gpus",
			Amount:  func(c Charge) int64 { return c.GPUs },
			Limit:   func(l Limits) (int64, bool) { return limitOf(l.GPUs) },
			Unknown: neverUnknown,
			Unit:    1,
			Parts:   1,
			Text:    formatCount,
		},
		{
			Name:    "devices",
			Amount:  func(c Charge) int64 { return int64(c.Devices) },
			Limit:   func(l Limits) (int64, bool) { return limitOf(l.Devices) },
			Unknown: neverUnknown,
			Unit:    1,
			Parts:   int64(quantity.Device),
			Text:    func(n int64) string { return quantity.Devices(n).String() },
		},
	}
}

// Plain is an amount as a plain number: bytes of memory, devices.
func (d dimension) Plain(amount int64) float64 {
	return float64(amount*d.Unit) / float64(d.Parts)
}

func limitOf[N ~int64](limit *N) (int64, bool) {
	if limit == nil {
		return 0, false
	}
	return int64(*limit), true
}

func neverUnknown(Holding) bool { return false }

func formatCount(n int64) string { return strconv.FormatInt(n, 10) }

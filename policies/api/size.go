package api

import (
	"errors"
	"fmt"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Size is the size of a slice: at most one of Memory, Fraction and Class. The zero Size leaves it to policy.
type Size struct {
	Memory      quantity.MiB      `json:"memory,omitzero"`
	MemoryLimit quantity.MiB      `json:"memoryLimit,omitzero"`
	Fraction    quantity.Fraction `json:"fraction,omitzero"`
	Class       string            `json:"class,omitempty"`
	Compute     int               `json:"compute,omitempty"`
	Processes   int               `json:"processes,omitempty"`
}

// Named reports whether a size is named.
func (a Size) Named() bool { return a.Memory != 0 || !a.Fraction.Zero() || a.Class != "" }

// Check denies errors that no field shows by itself.
func (a Size) Check(report func(field, format string, args ...any)) {
	sizes := 0
	for _, sized := range []bool{a.Memory != 0, !a.Fraction.Zero(), a.Class != ""} {
		if sized {
			sizes++
		}
	}
	if sizes > 1 {
		report("", "memory, fraction and class each say how large the slice is; write one of them")
	}
	if a.Memory != 0 && a.MemoryLimit != 0 && a.MemoryLimit < a.Memory {
		report("memoryLimit", "%q is less than memory %q; write at least that, or leave it out", a.MemoryLimit, a.Memory)
	}
	if a.Compute < 0 || a.Compute > 100 {
		report("compute", "%d is out of range; accepted: 1 to 100", a.Compute)
	}
	if a.Processes < 0 || a.Processes > MaxProcesses {
		report("processes", "%d is out of range; accepted: 1 to %d", a.Processes, MaxProcesses)
	}
}

func SameSize(a, b Size) bool {
	return a.Memory == b.Memory && a.Class == b.Class &&
		(a.Fraction == b.Fraction || a.Fraction.Zero() == b.Fraction.Zero() && a.Fraction.Num*b.Fraction.Den == b.Fraction.Num*a.Fraction.Den)
}

// Describe is the size as an author writes it.
func (a Size) Describe() string {
	switch {
	case a.Memory != 0:
		return fmt.Sprintf("memory %q", a.Memory)
	case !a.Fraction.Zero():
		return fmt.Sprintf("fraction %q", a.Fraction)
	case a.Class != "":
		return fmt.Sprintf("class %q", a.Class)
	}
	return "no size"
}

// Bounded checks a size that gpuslice recorded. It stands beside Check: what authors may write can become less, while the pods that run
// keep what they have.
func (a Size) Bounded() error {
	sizes := 0
	for _, given := range []bool{a.Memory != 0, !a.Fraction.Zero(), a.Class != ""} {
		if given {
			sizes++
		}
	}
	if sizes > 1 || a.Compute < 0 || a.Compute > 100 || a.Processes < 0 || a.Processes > MaxProcesses {
		return errors.New("it is out of range")
	}
	return nil
}

// MaxProcesses bounds the processes of one container that share its slice.
const MaxProcesses = 64

package policies

import (
	"errors"
	"fmt"
)

// Ask is the size of a slice: at most one of Memory, Fraction and Class. The zero Ask leaves it to policy.
type Ask struct {
	Memory      MiB      `json:"memory,omitzero"`
	MemoryLimit MiB      `json:"memoryLimit,omitzero"`
	Fraction    Fraction `json:"fraction,omitzero"`
	Class       string   `json:"class,omitempty"`
	Compute     int      `json:"compute,omitempty"`
	Processes   int      `json:"processes,omitempty"`
}

// sized reports whether the ask names a size.
func (a Ask) sized() bool { return a.Memory != 0 || !a.Fraction.Zero() || a.Class != "" }

func sameSize(a, b Ask) bool {
	return a.Memory == b.Memory && a.Class == b.Class &&
		(a.Fraction == b.Fraction || a.Fraction.Zero() == b.Fraction.Zero() && a.Fraction.Num*b.Fraction.Den == b.Fraction.Num*a.Fraction.Den)
}

// describe says the size of an ask as an author writes it.
func (a Ask) describe() string {
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

// bounded holds an ask to what labels and the annotation may say.
func (a Ask) bounded() error {
	sizes := 0
	for _, said := range []bool{a.Memory != 0, !a.Fraction.Zero(), a.Class != ""} {
		if said {
			sizes++
		}
	}
	if sizes > 1 || a.Compute < 0 || a.Compute > 100 || a.Processes < 0 || a.Processes > maxProcesses {
		return errors.New("it is out of range")
	}
	return nil
}

// maxProcesses bounds the processes of one container that share its slice.
const maxProcesses = 64

package proof

import "slices"

// Way is a way past a slice.
type Way string

// The ways, in the order in which they are tried.
const (
	Alloc         Way = "cuMemAlloc"
	Managed       Way = "cuMemAllocManaged"
	Create        Way = "cuMemCreate"
	ManySmall     Way = "many-small"
	ManyProcesses Way = "many-processes"
	MPSUnset      Way = "mps-unset"     // without CUDA_MPS_PIPE_DIRECTORY
	MPSElsewhere  Way = "mps-elsewhere" // with a CUDA_MPS_PIPE_DIRECTORY that is not there
	MPSLimit      Way = "mps-limit"     // with a CUDA_MPS_PINNED_DEVICE_MEM_LIMIT for a device that is not there
)

// Ways returns all of them.
func Ways() []Way {
	return []Way{Alloc, Managed, Create, ManySmall, ManyProcesses, MPSUnset, MPSElsewhere, MPSLimit}
}

// EvadesMPS reports whether the way is one around an MPS daemon: there is none where there is no daemon.
func (w Way) EvadesMPS() bool { return w == MPSUnset || w == MPSElsewhere || w == MPSLimit }

// Holder is the limit that stopped a program: a tier of enforcement by its name in
// policies, or one of the words below.
type Holder string

// The holders.
const (
	Nothing  Holder = "nothing"
	Unknown  Holder = "unknown" // a limit whose owner cannot be named
	Guard    Holder = "guard"
	MPS      Holder = "mps"
	Driver   Holder = "driver"
	Hardware Holder = "hardware"
)

// Holders returns all of them, the weakest first.
func Holders() []Holder { return []Holder{Nothing, Unknown, Guard, MPS, Driver, Hardware} }

// rank orders the holders and the tiers of policies. Tiers below a guard must prove
// as much as a guard: they bind frameworks alone, and the program of a proof has
// none.
func rank(name string) int {
	return max(slices.Index(Holders(), Holder(name)), slices.Index(Holders(), Guard))
}

// promises reports whether a tier promises to hold a way. Managed memory is seen by no reading of processes, counted by no limit
// of the driver, and lies in memory of the host where a device has no more. A limit of MPS is each process's own.
func promises(tier string, w Way) bool {
	switch w {
	case Managed:
		return false
	case ManyProcesses:
		return tier != string(MPS)
	}
	return true
}

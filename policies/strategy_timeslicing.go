package policies

import "github.com/gpuslice/gpuslice/policies/internal/frameworks"

// timeSlicing shares a device by turns: every replica sees the whole memory, and nothing but the guard, the driver's
// own limit or the framework holds a slice.
func timeSlicing() Strategy {
	return Strategy{
		Name:   "time-slicing",
		Doc:    "processes take turns on a device; memory is not divided by the device itself",
		View:   frameworks.ViewWhole,
		Tier:   TierNone,
		Inject: driverLimit,
	}
}

// driverLimit writes the two variables from which the container toolkit (1.20.1 or later) sets the driver's own limit.
// Its hook fails the container where that limit cannot be set (a driver before 615, cgroup v1), so only pools that are
// known to hold it get them.
func driverLimit(g SliceGrant) Injection {
	if g.Slice == 0 || !g.Pool.DriverLimits {
		return Injection{}
	}
	return Injection{Env: []Variable{
		{VarDriverLimit, formatInt(int64(g.Limit))},
		{VarDriverRequest, formatInt(int64(g.Slice))},
	}}
}

package policies

// timeSlicing shares a device by turns: every replica sees the whole memory, and nothing but the guard, the driver's
// own limit or the framework holds a slice.
func timeSlicing() Strategy {
	return Strategy{
		Name:   "time-slicing",
		Doc:    "processes take turns on a device; memory is not divided by the device itself",
		View:   ProfileViewWhole,
		Tier:   TierNone,
		Inject: driverLimit,
	}
}

// driverLimit writes the two variables from which the container toolkit (1.20.1, with driver 615) sets the driver's own
// limit. They are inert on older nodes, and set all the same so that a value of the tenant's cannot survive.
func driverLimit(g SliceGrant) Injection {
	if g.Slice == 0 {
		return Injection{}
	}
	return Injection{Env: []Variable{
		{VarDriverLimit, formatInt(int64(g.Limit))},
		{VarDriverRequest, formatInt(int64(g.Slice))},
	}}
}

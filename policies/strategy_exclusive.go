package policies

// exclusive gives a container whole devices.
func exclusive() Strategy {
	return Strategy{
		Name:   "exclusive",
		Doc:    "whole devices, shared with nobody",
		Unit:   UnitDevice,
		View:   ProfileViewWhole,
		Tier:   TierHardware,
		Await:  ResourceGPU,
		Inject: func(SliceGrant) Injection { return Injection{} },
	}
}

package policies

// exclusive gives a container whole devices.
func exclusive() Strategy {
	return Strategy{
		Name:    "exclusive",
		Doc:     "whole devices, shared with nobody",
		Several: true,
		View:    ProfileViewWhole,
		Tier:    TierHardware,
		Inject:  func(SliceGrant) Injection { return Injection{} },
	}
}

package policies

import "github.com/gpuslice/gpuslice/policies/internal/frameworks"

// mig gives a container an instance of a partitioned device, with memory and multiprocessors of its own.
func mig() Strategy {
	return Strategy{
		Name:        "mig",
		Doc:         "a MIG instance: memory and compute divided by the hardware",
		Unit:        UnitInstance,
		OnInstances: true,
		OwnCompute:  "a MIG instance has multiprocessors of its own",
		View:        frameworks.ViewSliced,
		Tier:        TierHardware,
		// Nothing to await: no profile can be guessed. Nothing to inject: the driver's cgroup limits deny MIG handles,
		// and the instance is the limit.
		Inject: func(SliceGrant) Injection { return Injection{} },
	}
}

package doctor

import "github.com/gpuslice/gpuslice/policies/api"

// contextMemory is the memory of a CUDA context with its libraries, by policy's default.
const contextMemory api.MiB = 512

// checkReplicaSize looks for replicas that a CUDA context fills, or half fills.
func checkReplicaSize(f *Facts) []Finding {
	var all []Finding
	pools := f.snapshot().Pools()
	for i := range pools {
		p := &pools[i]
		usable := p.Usable()
		if p.Replicas < 2 || usable <= 0 || usable >= 2*contextMemory {
			continue
		}
		found := newFinding(Warning, "half of each replica of pool %s or more is taken by the CUDA context (%s) of the first process",
			p.Name, contextMemory.Human())
		if usable <= contextMemory {
			found = newFinding(Problem, "replicas of pool %s are smaller than a CUDA context (%s): no program starts in one",
				p.Name, contextMemory.Human())
		}
		found = found.With("pool/"+p.Name, "replicas", decimal(p.Replicas)).With("pool/"+p.Name, "memory of a replica", usable.Human())
		if most := int(usable) * p.Replicas / int(2*contextMemory); most >= 2 {
			found = found.WithRemedy("configure %d replicas a device, or fewer", most)
		} else {
			found = found.WithRemedy("do not share this device: remove it from sharing in the device plugin's configuration")
		}
		all = append(all, found)
	}
	return all
}

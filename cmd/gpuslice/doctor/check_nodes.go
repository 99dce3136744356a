package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// checkNodes reports the pools, and on which nodes they are.
func checkNodes(f *Facts) []Finding {
	if f.unread(whatNodes) {
		return nil
	}
	pools := f.snapshot().Pools()
	if len(pools) == 0 {
		return []Finding{newFinding(Warning, "none of the %d nodes offers a resource of NVIDIA's", len(f.Nodes)).
			With("nodes", "status.allocatable", "no name begins with nvidia.com/").
			WithRemedy("install NVIDIA's device plugin or the GPU Operator; where an autoscaler starts GPU nodes from zero, declare pools in the default policy")}
	}
	var all []Finding
	for i := range pools {
		all = append(all, poolFinding(&pools[i]))
	}
	return all
}

func poolFinding(p *pools.Pool) Finding {
	level, sharing := OK, string(p.Strategy)
	if p.Strategy == "" {
		level, sharing = Warning, "an unknown strategy"
	}
	if p.Granular {
		sharing += fmt.Sprintf(", %d parts of %s a device", p.Replicas, p.Granule())
	} else if p.Replicas > 1 {
		sharing += fmt.Sprintf(", %d replicas a device", p.Replicas)
	}
	size := "device memory unknown"
	if usable := p.Usable(); usable > 0 {
		size = "slices up to " + usable.Human()
	}
	found := newFinding(level, "pool %s offers %s by %s; %s", p.Name, p.Offer(), sharing, size)
	if p.Remembered() {
		found = newFinding(OK, "pool %s (%s by %s; %s) is remembered: no node has offered it since %s; pods get it only where no pool with nodes fits",
			p.Name, p.Offer(), sharing, size, p.LastSeen.Format(time.RFC3339))
	}
	field, offer := "status.allocatable", p.Resource
	if offer == "" {
		field, offer = "device class", p.DeviceClass
	}
	for _, n := range p.Nodes {
		for _, named := range n.Named {
			found = found.With(object("node", "", named.Name), field, offer)
		}
	}
	if len(p.Notes) > 0 && !p.Granular {
		found = found.With("pool/"+p.Name, "notes", strings.Join(p.Notes, "; ")).
			WithRemedy("declare the pool in the default policy, with strategy, replicas and deviceMemory")
	}
	return found
}

// Labels that GPU feature discovery writes.
const (
	labelMemory  = "nvidia.com/gpu.memory"
	labelDriver  = "nvidia.com/cuda.driver-version.full"
	labelMajor   = "nvidia.com/cuda.driver-version.major"
	labelMajorV0 = "nvidia.com/cuda.driver.major"
)

// checkLabels looks for nodes that offer GPUs and do not publish their memory.
func checkLabels(f *Facts) []Finding {
	found := newFinding(Warning, "GPU nodes without the labels of GPU feature discovery: their memory is unknown, so no fraction, no framework's cap and no quota of memory can be set there")
	for _, n := range gpuNodes(f) {
		if n.Labels[labelMemory] == "" {
			found = found.With(object("node", "", n.Name), "metadata.labels["+labelMemory+"]", "missing")
		}
	}
	return withEvidence(found.WithRemedy("helm upgrade nvidia-device-plugin nvdp/nvidia-device-plugin --reuse-values --set gfd.enabled=true\n" +
		"or declare the pool in the default policy, with deviceMemory"))
}

// gpuNodes are the nodes that offer a resource of NVIDIA's.
func gpuNodes(f *Facts) []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(n *corev1.Node) bool { return len(offered(n)) == 0 })
}

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
		found := newFinding(Warning, "half of each replica of pool %s or more is taken by the CUDA context (%s) of the first process", p.Name, contextMemory.Human())
		if usable <= contextMemory {
			found = newFinding(Problem, "replicas of pool %s are smaller than a CUDA context (%s): no program starts in one", p.Name, contextMemory.Human())
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

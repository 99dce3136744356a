package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// checkNodes reports the pools, and on which nodes they are.
func checkNodes(f *Facts) []Finding {
	if f.unread(whatNodes) {
		return nil
	}
	offered := f.snapshot().Pools()
	all := withEvidence(f.offeringNone(), f.offeringUnknown(), f.passedThrough())
	if len(offered) == 0 {
		return append(all, f.offeringNowhere(len(all) == 0))
	}
	others := map[string]bool{}
	for _, n := range f.Nodes {
		others[n.Name] = hasHAMiPlugin(n)
	}
	for i := range offered {
		all = append(all, poolFinding(&offered[i], others))
	}
	return all
}

// offeringNone looks for nodes whose labels show GPUs and that offer none, neither by a device plugin nor by a driver.
func (f *Facts) offeringNone() Finding {
	found := newFinding(Note, "labels of nodes show GPUs, and no device plugin offers them: it does not run there, does not start, or is about to")
	for _, n := range f.Nodes {
		published := slices.ContainsFunc(f.Slices, func(s *resourcev1.ResourceSlice) bool {
			return s.Spec.NodeName != nil && *s.Spec.NodeName == n.Name
		})
		if len(f.offered(n)) > 0 || published || f.forMachines(n) || len(f.unknownOffers(n)) > 0 {
			continue
		}
		if label, value := modelLabel(n); label != "" {
			found = found.With(object("node", "", n.Name), "metadata.labels["+label+"]", value)
		}
	}
	return found.WithRemedy("kubectl get pods -A -o wide --field-selector spec.nodeName=NODE, and the log of the device plugin there")
}

// poolFinding describes a pool. Others are nodes whose GPUs another system gives out: no remedy shares those twice.
func poolFinding(p *pools.Pool, others map[string]bool) Finding {
	level, sharing := OK, string(p.Strategy)
	if p.Strategy == "" {
		level, sharing = Warning, "an unknown strategy"
	}
	if p.DeviceMemory == 0 && len(p.Notes) > 0 {
		level = Warning
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
		found = newFinding(OK,
			"pool %s (%s by %s; %s) is remembered: no node has offered it since %s; pods get it only where no pool with nodes fits",
			p.Name, p.Offer(), sharing, size, p.LastSeen.Format(time.RFC3339))
	}
	if p.Empty() && !p.Remembered() {
		found = newFinding(Warning, "no node offers pool %s (%s by %s; %s): a pod that gets it waits for one", p.Name, p.Offer(), sharing, size).
			WithRemedy("correct the pool's selector and resource, or write scalesFromZero: true where an autoscaler adds its nodes")
	}
	field, offer := "status.allocatable", p.Resource
	if offer == "" {
		field, offer = "device class", p.DeviceClass
	}
	another := false
	for _, n := range p.Nodes {
		for _, named := range n.Named {
			another = another || others[named.Name]
			found = found.With(object("node", "", named.Name), field, offer)
		}
	}
	if len(p.Notes) > 0 && !p.Granular {
		found = found.With("pool/"+p.Name, "notes", strings.Join(p.Notes, "; "))
		if !another {
			found = found.WithRemedy("declare the pool in the default policy, with strategy, replicas and deviceMemory")
		}
	}
	return found
}

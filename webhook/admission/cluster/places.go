package cluster

import (
	"cmp"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// place is where pods get a resource.
type place struct{ node, resource string }

// placesIn are the names of the pools by place, the first of those that have it.
func placesIn(all []pools.Pool) map[place]string {
	out := map[place]string{}
	for i := range all {
		for k := range all[i].Nodes {
			for _, node := range all[i].Nodes[k].Named {
				at := place{node.Name, all[i].Resource}
				if _, known := out[at]; !known {
					out[at] = all[i].Name
				}
			}
		}
	}
	return out
}

// PoolOf is the name of the pool in which a node offers a resource; "": there is none.
func (s *Snapshot) PoolOf(node, resource string) string { return s.places()[place{node, resource}] }

// DeviceOf is the memory of a GPU, in MiB, of the pool in which a node offers a resource, or of the pool that was planned where that is
// none; 0: it is not known.
func (s *Snapshot) DeviceOf(node, resource, planned string) int64 {
	name := cmp.Or(s.PoolOf(node, resource), planned)
	for i := range s.pools {
		if s.pools[i].Name == name {
			return int64(s.pools[i].DeviceMemory)
		}
	}
	return 0
}

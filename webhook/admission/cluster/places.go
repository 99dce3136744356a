package cluster

import "github.com/gpuslice/gpuslice/policies/pools"

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

package pools

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

// Bounds of the memory of pools without a node.
const (
	maxRemembered = 256
	maxLastNodes  = 64
)

// settling is how long a pool is remembered whose nodes offer something else now: a device plugin that restarts registers its
// resources one after the other.
const settling = time.Minute

// Known is the earlier knowledge of pools.
type Known struct {
	Saved  []Pool // as saved, without nodes
	Before []Pool // of the moment before, with nodes
	Now    time.Time
}

// Remember is Pools for a cluster that is watched. A pool without a node is remembered for spec.RememberFor, and no longer
// than a minute where its last nodes offer something else now.
func (s Source) Remember(spec config.PoolsSpec, known Known) []Pool {
	all := s.Pools(spec, known.pools())
	offering := offeringNodes(all)
	return slices.DeleteFunc(all, func(p Pool) bool { return p.Remembered() && p.over(known.Now, spec, offering) })
}

// pools are those saved and those of the moment before, once each, with the names of their last nodes and the time at which they had
// them.
func (k Known) pools() []Pool {
	out := slices.Clone(k.Saved)
	for i := range k.Before {
		before := &k.Before[i]
		at := slices.IndexFunc(out, func(p Pool) bool { return p.Name == before.Name })
		switch {
		case at < 0 && len(before.Nodes) == 0:
			continue // a pool that is no longer saved was forgotten, here or by another replica
		case at < 0:
			out = append(out, *before)
			at = len(out) - 1
		}
		if len(before.Nodes) > 0 {
			out[at].LastSeen, out[at].LastNodes = time.Time{}, nodeNames(before.Nodes)
			continue
		}
		out[at].LastSeen = earliest(out[at].LastSeen, before.LastSeen)
	}
	for i := range out {
		if out[i].LastSeen.IsZero() {
			out[i].LastSeen = k.Now.UTC().Truncate(time.Second)
		}
	}
	return out
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func nodeNames(kinds []nodeKind) []string {
	var names []string
	for _, kind := range kinds {
		for _, n := range kind.Named {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxLastNodes)]
}

// over reports whether a remembered pool has to be forgotten. offering are the nodes that offer something known.
func (p *Pool) over(now time.Time, spec config.PoolsSpec, offering map[string]bool) bool {
	age := now.Sub(p.LastSeen)
	superseded := slices.ContainsFunc(p.LastNodes, func(name string) bool { return offering[name] })
	return age >= spec.Remembers() || superseded && age >= settling
}

// offeringNodes are the nodes of the pools of which it is known how they are shared.
func offeringNodes(all []Pool) map[string]bool {
	out := map[string]bool{}
	for i := range all {
		if all[i].Strategy == "" {
			continue
		}
		for _, kind := range all[i].Nodes {
			for _, n := range kind.Named {
				out[n.Name] = true
			}
		}
	}
	return out
}

// withoutNodes are the remembered pools that nothing offers at the moment: their nodes are gone, or a plugin restarts.
func withoutNodes(live []Pool, spec config.PoolsSpec, remembered []Pool) []Pool {
	names := map[string]bool{}
	for i := range live {
		names[live[i].Name] = true
	}
	var kept []Pool
	for _, p := range remembered {
		if p.Declared || p.Strategy == "" || names[p.Name] || declaredFor(spec, p.Labels, p.Resource) {
			continue
		}
		names[p.Name] = true
		p.Nodes, p.Agents = nil, false
		p.Requirements = slices.DeleteFunc(slices.Clone(p.Requirements), func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == corev1.LabelHostname // nodes to come have other names
		})
		p.keepFree(spec.Reserve)
		kept = append(kept, p)
	}
	slices.SortStableFunc(kept, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return kept[:min(len(kept), maxRemembered)]
}

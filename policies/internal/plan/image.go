package plan

import (
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// ImageChange is what another image makes of the enforcement of a container that lives.
type ImageChange struct {
	Denied *api.Violation // what the image's framework is denied for
	Now    string         // the image's framework; "": none that is known
	Lost   bool           // the framework held the slice, and this one does not
	Tier   api.Tier       // the strongest that holds with the new image
}

// ChangedImage holds the image of a live container against what the Promise gave it. Variables and arguments of a live
// container are immutable, so a framework that needs others has no cap.
func ChangedImage(in *Input, given *promise.Promise, c *promise.Container) ImageChange {
	live, _ := podspec.ContainerNamed(&in.Pod.Spec, c.Name)
	p := placed{want: want{request: requestOf(given, c.Name), spec: live}, pool: poolOf(in, given), size: sizeOn{slice: c.Slice, limit: c.Limit}}
	p.size.procs = max(p.request.Size.Processes, 1)
	profile := profileOf(in, given.Request, strategies.Named(given.Strategy), &p)
	tiers := plannedTiers(given, c.Name)
	out := ImageChange{Now: profile.Framework, Denied: deniedFramework(&p, profile)}
	if !capsAsItIs(profile) {
		out.Lost = slices.Contains(tiers, api.TierFramework)
		tiers = slices.DeleteFunc(tiers, func(t api.Tier) bool { return t == api.TierFramework })
	}
	if out.Tier = api.TierNone; len(tiers) > 0 {
		out.Tier = slices.MaxFunc(tiers, func(a, b api.Tier) int { return a.Rank() - b.Rank() })
	}
	return out
}

// capsAsItIs reports whether the profile caps the container with nothing to be added.
func capsAsItIs(r frameworks.Result) bool {
	return r.Capped && len(r.Args) == 0 && !slices.ContainsFunc(r.Env, func(e frameworks.Env) bool { return e.Cap })
}

func requestOf(given *promise.Promise, container string) api.ContainerRequest {
	i := slices.IndexFunc(given.Request.Containers, func(r api.ContainerRequest) bool { return r.Name == container })
	if i < 0 {
		return api.ContainerRequest{Name: container, GPUs: 1}
	}
	return given.Request.Containers[i]
}

// poolOf is the pool that the Promise was planned for, or one of which nothing is known.
func poolOf(in *Input, given *promise.Promise) *pools.Pool {
	for i := range in.Pools {
		if slices.Contains(given.Pools, in.Pools[i].Name) {
			return &in.Pools[i]
		}
	}
	return &pools.Pool{}
}

func plannedTiers(given *promise.Promise, container string) []api.Tier {
	for _, c := range given.Planned.Containers {
		if c.Name == container {
			return slices.Clone(c.Tiers)
		}
	}
	return nil
}

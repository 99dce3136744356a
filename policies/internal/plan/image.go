package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// ImageChange is the effect of another image on the enforcement of a container that lives.
type ImageChange struct {
	Denied  *api.Violation           // the denial of the image's framework
	Now     string                   // the image's framework; "": none that is known
	Lost    bool                     // the framework held the slice, and this one does not
	Tier    api.Tier                 // the strongest that holds with the new image
	Planned promise.PlannedContainer // with the new image
	Same    bool                     // it is planned as at creation
}

// ChangedImage checks the image of a live container against the Promise. Variables and arguments of a live container
// are immutable, so a framework that needs others has no cap.
func ChangedImage(in *Input, given *promise.Promise, c *promise.Container) ImageChange {
	live, _ := podspec.ContainerNamed(&in.Pod.Spec, c.Name)
	request := given.Request.Of(c.Name)
	if request.Name == "" {
		request = api.ContainerRequest{Name: c.Name, GPUs: 1}
	}
	p := placed{want: want{request: request, spec: live}, pool: poolOf(in, given), size: sizeOn{slice: c.Slice, limit: c.Limit}}
	p.preferred.profile = c.Instance()
	p.size.procs = max(p.request.Size.Processes, 1)
	noShim := map[string]string{"": "the pod was created without it",
		shim.ByFile: "what was recorded of PYTHONPATH is the former image's"}[c.Shim]
	profile := profileOf(in, given.Request, strategies.Named(given.Strategy), &p, noShim)
	out := ImageChange{Now: profile.Framework, Planned: plannedContainer(given, c.Name)}
	if len(profile.Denials) > 0 {
		out.Denied = deniedFramework(c.Name, profile.Denials[0])
	}
	out.Planned.Framework, out.Planned.Cap = profile.Text(), profile.Cap
	if tiers := out.Planned.Tiers; !capsAsItIs(profile, c) {
		out.Lost, out.Planned.Cap = slices.Contains(tiers, api.TierFramework), ""
		out.Planned.Tiers = slices.DeleteFunc(tiers, func(t api.Tier) bool { return t == api.TierFramework })
	}
	first := plannedContainer(given, c.Name)
	if out.Planned.Framework == first.Framework && !out.Lost {
		out.Planned, out.Same = first, true
	}
	out.Tier = strongest(out.Planned.Tiers)
	return out
}

// PlanImages is the plan once the images of containers have changed, in place of before.
func PlanImages(before promise.Planned, changed []ImageChange) promise.Planned {
	out := before
	out.Containers, out.Notes = slices.Clone(before.Containers), slices.Clone(before.Notes)
	for _, c := range changed {
		for i := range out.Containers {
			if out.Containers[i].Name == c.Planned.Name {
				out.Containers[i] = c.Planned
			}
		}
		note := fmt.Sprintf("%q has another image than it was created with", c.Planned.Name)
		out.Notes = slices.DeleteFunc(out.Notes, func(n string) bool { return strings.HasPrefix(n, note) })
		switch {
		case c.Same:
			continue
		case c.Planned.Cap == "":
			note += ", and no framework cap"
		}
		out.Notes = append(out.Notes, note)
	}
	out.Tier = api.TierHardware
	for _, c := range out.Containers {
		if tier := strongest(c.Tiers); out.Tier.AtLeast(tier) {
			out.Tier = tier
		}
	}
	return out
}

// strongest is the strongest of tiers, or none.
func strongest(tiers []api.Tier) api.Tier { return cmp.Or(api.Strongest(tiers), api.TierNone) }

// capsAsItIs reports whether the profile caps the container without further additions.
func capsAsItIs(r frameworks.Result, given *promise.Container) bool {
	added := func(e frameworks.Env) bool {
		return e.Cap && !slices.Contains(given.Env, podspec.Variable{Name: e.Name, Value: e.Value})
	}
	return r.Capped && len(r.Args) == 0 && !slices.ContainsFunc(r.Env, added)
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

func plannedContainer(given *promise.Promise, container string) promise.PlannedContainer {
	for _, c := range given.Planned.Containers {
		if c.Name == container {
			c.Tiers = append([]api.Tier{}, c.Tiers...)
			return c
		}
	}
	return promise.PlannedContainer{Name: container}
}

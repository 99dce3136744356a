package plan

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// nearlyWhole is the part of a device, in percent, from which a request of it is one of the device.
const nearlyWhole = 90

// wholeDevices warns an author who requested a part of a device and gets whole ones: their charge, and the spelling of
// a share.
func (w *builder) wholeDevices(p *placed, devices string) {
	asked := p.request.Size
	// Authors who request whole devices need no warning.
	if w.promise.Request.Strategy == w.strategy.Name || asked.Memory == 0 && asked.Fraction.Zero() && p.class == "" {
		return
	}
	requested, total := p.resolved, p.size.slice
	text := requested.Memory.String()
	switch {
	case requested.Memory == 0 && requested.Fraction.Zero():
		return
	case requested.Memory == 0:
		requested.Memory, text = p.pool.Part(requested.Fraction), requested.Fraction.String()+" of a GPU"
	}
	// hardly anything is left over
	if total > 0 && requested.Memory*100 >= total*nearlyWhole || requested.Memory == 0 && requested.Fraction.Num >= requested.Fraction.Den {
		return
	}
	gets, counts := "a whole "+devices, ""
	if total > 0 {
		counts = " and counts " + (total * quantity.MiB(p.request.GPUs)).Human()
	}
	if n := p.request.GPUs; n > 1 { // a smaller size would not help: shares are of one GPU
		w.warn("container %q requests %s on each of %d GPUs, and no share spans GPUs: it gets %d whole ones (%s)%s; write %s: 1 for a share, or %s: %q to keep them",
			p.request.Name, text, n, n, devices, counts, api.ResourceGPU, api.LabelStrategy, w.strategy.Name)
		return
	}
	w.warn("container %q requests %s, and no share fits: it gets %s%s; %s",
		p.request.Name, text, gets, counts, w.shareInstead(requested.Memory, !requested.Fraction.Zero()))
}

// shareInstead is the spelling of a share, if pools have any.
func (w *builder) shareInstead(requested quantity.MiB, fraction bool) string {
	var best *pools.Pool
	for i := range w.in.Pools {
		p := &w.in.Pools[i]
		reached, _ := p.Reach(w.in.Pod, w.in.Policy.Pod.Tolerations)
		// A spelling that would be denied is no help.
		if strategies.Named(p.Strategy).Whole() || !w.in.Policy.Allows(p.Strategy) || p.Usable() == 0 || p.Empty() || !reached {
			continue
		}
		if best == nil || p.Usable() > best.Usable() {
			best = p
		}
	}
	keep := fmt.Sprintf("%s: %q to keep it", api.LabelStrategy, w.strategy.Name)
	switch {
	case best == nil:
		return fmt.Sprintf("no pool that policy %s allows has shares; write %s", w.in.Policy.Name, keep)
	case requested > 0 && best.Usable() >= requested:
		return "gpuslice explain -f shows what is wrong with each share; write " + keep
	}
	e := FitError{pool: best}
	if fraction {
		e.fraction = quantity.Fraction{Num: 1, Den: 1}
	}
	return e.most() + " for a share, or write " + keep
}

package plan

import (
	"fmt"
	"strings"

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
	gets, counts := "a whole "+strings.TrimPrefix(devices, "a "), ""
	if total > 0 {
		counts = " and counts " + (total * quantity.MiB(p.request.GPUs)).Human()
	}
	instead := w.shareInstead(requested.Memory, !requested.Fraction.Zero(), p.request.GPUs)
	if n := p.request.GPUs; n > 1 {
		w.warn("container %q requests %s on each of %d GPUs, and no share spans GPUs: it gets %d whole ones (%s)%s; %s",
			p.request.Name, text, n, n, devices, counts, instead)
		return
	}
	w.warn("container %q requests %s, and no share fits: it gets %s%s; %s", p.request.Name, text, gets, counts, instead)
}

// shareInstead is the spelling of a share, if pools have any, for a container that gets so many whole GPUs.
func (w *builder) shareInstead(requested quantity.MiB, fraction bool, gpus int64) string {
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
	keep, one := fmt.Sprintf("%s: %q to keep it", api.LabelStrategy, w.strategy.Name), ""
	if gpus > 1 {
		keep, one = fmt.Sprintf("%s: %q to keep them", api.LabelStrategy, w.strategy.Name), fmt.Sprintf("request %s: 1", api.ResourceGPU)
	}
	switch {
	case best == nil:
		return fmt.Sprintf("no pool that policy %s allows has shares; write %s", w.in.Policy.Name, keep)
	case one != "" && (requested == 0 || best.Usable() >= requested):
		return fmt.Sprintf("%s for a share, or %s", one, keep)
	case requested > 0 && best.Usable() >= requested:
		return "gpuslice explain -f shows what is wrong with each share; write " + keep
	}
	e := FitError{pool: best}
	if fraction {
		e.fraction = quantity.Fraction{Num: 1, Den: 1}
	}
	if one != "" {
		one += " and "
	}
	return one + e.most() + " for a share, or write " + keep
}

package layout

import (
	"math"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
)

// Bound is a number of devices below which no layout of the families holds the pods, however many nodes of each kind there are. Each
// pod gets a weight such that pods that can share a device weigh 1 at most; the sum of weights is the bound. Of several such
// weights (of the device's parts, of CPU, of memory, of both) the one with the highest sum counts. In small fleets pods
// that can share with none weigh 1, and pods that no model has in common are summed and rounded up apart.
func Bound(f *demand.Fleet, fam Families) int {
	whole := 0
	var classes []*weighed
	index, kinds := map[class]*weighed{}, largest(f)
	for i := range f.Pods {
		p := &f.Pods[i]
		switch {
		case p.Devices == 0 || f.FitsNowhere(p):
			continue
		case !p.Part():
			whole += p.Devices
			continue
		}
		c := classOf(p)
		if index[c] == nil {
			index[c] = &weighed{pod: p, parts: fam.parts(f, p, kinds)}
			classes = append(classes, index[c])
		}
		index[c].count++
	}
	for _, component := range components(f, classes) {
		whole += boundOf(f, component)
	}
	return whole
}

// weighed are pods with like requests.
type weighed struct {
	pod   *demand.Pod
	parts []part
	count int
}

// components are sets of pods that have no kind of node in common with those of other sets.
func components(f *demand.Fleet, classes []*weighed) [][]*weighed {
	root := make([]int, len(f.Kinds))
	for i := range root {
		root[i] = i
	}
	find := func(k int) int {
		for root[k] != k {
			k = root[k]
		}
		return k
	}
	for _, c := range classes {
		for _, w := range c.parts {
			root[find(w.kind)] = find(c.parts[0].kind)
		}
	}
	sets := make([][]*weighed, len(f.Kinds))
	for _, c := range classes {
		k := find(c.parts[0].kind)
		sets[k] = append(sets[k], c)
	}
	return slices.DeleteFunc(sets, func(set []*weighed) bool { return len(set) == 0 })
}

func boundOf(f *demand.Fleet, all []*weighed) int {
	const most = 4000 // parts above which no pairs are looked at
	alone, rest, parts := 0, all, 0
	for _, c := range all {
		parts += len(c.parts)
	}
	if len(all) <= 200 && parts <= most {
		rest = nil
		for i, c := range all {
			shares := func(o *weighed) bool { return share(f, c, o) }
			if c.count > 1 && shares(c) || slices.ContainsFunc(all[:i], shares) || slices.ContainsFunc(all[i+1:], shares) {
				rest = append(rest, c)
			} else {
				alone += c.count
			}
		}
	}
	highest := 0.0
	for _, weight := range weights(rest) {
		sum := 0.0
		for _, c := range rest {
			least := math.Inf(1)
			for i := range c.parts {
				least = min(least, weight(c.pod, &f.Kinds[c.parts[i].kind], &c.parts[i]))
			}
			sum += least * float64(c.count)
		}
		highest = max(highest, sum)
	}
	const rounding = 1e-6 // possible error of sums of floating-point numbers
	return alone + int(math.Ceil(highest-rounding))
}

// share reports whether two pods can be on one device.
func share(f *demand.Fleet, a, b *weighed) bool {
	for i := range a.parts {
		w := &a.parts[i]
		k := &f.Kinds[w.kind]
		if a.pod.CPU+b.pod.CPU > k.CPU || a.pod.Memory+b.pod.Memory > k.Memory {
			continue
		}
		for j := range b.parts {
			o := &b.parts[j]
			if o.kind != w.kind || o.strategy != w.strategy {
				continue
			}
			switch w.strategy {
			case MIG:
				counts := make([]int, len(w.geometry.Profiles))
				counts[w.profile]++
				counts[o.profile]++
				if w.geometry.Legal(counts) {
					return true
				}
			case Claim:
				if w.share+o.share <= demand.Whole {
					return true
				}
			default:
				if w.replicas > 1 && o.replicas > 1 {
					return true
				}
			}
		}
	}
	return false
}

// weight is a weight of a pod for one way to have a part of a device. Of one function, those of pods that share a device sum to 1 at
// most, whatever the device's form is.
type weight func(*demand.Pod, *demand.Kind, *part) float64

// weights are the functions tried: parts of the device, of CPU, of memory, and the mean of the first with each of the others.
func weights(all []*weighed) []weight {
	cpu := func(p *demand.Pod, k *demand.Kind, _ *part) float64 { return ratio(p.CPU, k.CPU) }
	memory := func(p *demand.Pod, k *demand.Kind, _ *part) float64 { return ratio(p.Memory, k.Memory) }
	out := []weight{cpu, memory}
	anyMIG := slices.ContainsFunc(all, func(c *weighed) bool {
		return slices.ContainsFunc(c.parts, func(w part) bool { return w.strategy == MIG })
	})
	for _, compute := range []bool{false, true} {
		if compute && !anyMIG {
			break // compute slices are those of MIG alone
		}
		for _, cut := range cuts(all) {
			device := func(_ *demand.Pod, _ *demand.Kind, w *part) float64 { return w.deviceWeight(compute, cut) }
			out = append(out, device)
			for _, other := range []weight{cpu, memory} {
				out = append(out, func(p *demand.Pod, k *demand.Kind, w *part) float64 { return (device(p, k, w) + other(p, k, w)) / 2 })
			}
		}
	}
	return out
}

// maxCuts bounds how many values of deviceWeight's cut are tried. Each is a bound of its own, so that fewer are still a bound.
const maxCuts = 64

// cuts are the values at which deviceWeight changes for exact parts: 0 and each part of at most half a device. Of more than maxCuts
// they are those that divide them evenly.
func cuts(all []*weighed) []int {
	var found [demand.Whole/2 + 1]bool
	found[0] = true
	for _, c := range all {
		for i := range c.parts {
			if w := &c.parts[i]; w.strategy == Claim && w.share <= demand.Whole/2 {
				found[w.share] = true
			}
		}
	}
	var out []int
	for cut, there := range found {
		if there {
			out = append(out, cut)
		}
	}
	if len(out) <= maxCuts {
		return out
	}
	even := make([]int, maxCuts)
	for i := range even {
		even[i] = out[i*(len(out)-1)/(maxCuts-1)]
	}
	return even
}

// deviceWeight is a pod's part of a device. Of MIG it is that of the memory slices, or of the compute slices. Of exact parts, those
// above Whole-cut weigh 1 and those below cut nothing (the dual feasible function of Fekete and Schepers, 2001).
func (w *part) deviceWeight(compute bool, cut int) float64 {
	switch {
	case w.strategy == MIG && compute:
		return float64(w.geometry.Profiles[w.profile].Compute) / float64(w.geometry.Compute)
	case w.strategy == Claim && w.share > demand.Whole-cut:
		return 1
	case w.strategy == Claim && w.share < cut:
		return 0
	}
	return w.weight
}

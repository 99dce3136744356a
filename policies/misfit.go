package policies

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// misfit is why a candidate was not chosen. It is a small value: its text is written only when somebody asks.
type misfit struct {
	kind      misfitKind
	pool      *Pool
	asked     MiB
	fraction  Fraction // what the asked amount was computed from, where it was one
	container ContainerRequest
	text      string
	violation *Violation
}

type misfitKind int

const (
	fits misfitKind = iota
	misfitSize
	misfitBurst
	misfitReach
	misfitResource
	misfitSeveral
	misfitUnknownDevice
	misfitRule
	misfitStrategy // the pool is shared in a way that the pod does not come to
)

// String is why, for people.
func (m misfit) String() string {
	switch m.kind {
	case misfitSize:
		return fmt.Sprintf("%s does not fit %s (%s usable)", m.size(), m.pool.describe(), m.pool.Usable().Human())
	case misfitBurst:
		return fmt.Sprintf("memory-limit %s does not fit %s (%s is the most)", m.asked, m.pool.describe(), mostOf(m.pool).Human())
	case misfitReach:
		return "the pod cannot reach it: " + m.text
	case misfitResource:
		return fmt.Sprintf("container %q asks for %s, the pool offers %s", m.container.Name, m.container.Resource, m.pool.Resource)
	case misfitSeveral:
		return fmt.Sprintf("container %q asks for %d units of a shared GPU; two replicas may be the same device and give no more than one", m.container.Name, m.container.GPUs)
	case misfitUnknownDevice:
		return "its device memory is unknown, so a fraction of it cannot be told; ask for an amount of memory"
	case misfitRule:
		return m.violation.String()
	case misfitStrategy:
		return m.sharing()
	}
	return ""
}

// sharing is how the pool is shared, where that rules it out.
func (m misfit) sharing() string {
	switch {
	case m.pool.Strategy != "":
		return fmt.Sprintf("its strategy is %s, %s", m.pool.Strategy, m.text)
	case len(m.pool.Notes) > 0:
		return strings.Join(m.pool.Notes, "; ")
	}
	return "how its GPUs are shared is not known"
}

// size is what was asked, as it was asked.
func (m misfit) size() string {
	if m.fraction.Zero() {
		return m.asked.String()
	}
	return fmt.Sprintf("%s of a device (%s)", m.fraction, m.asked)
}

// most is what to ask for instead on the same pool.
func (m misfit) most() string {
	p := m.pool
	if m.fraction.Zero() || p.DeviceMemory <= p.Reserve {
		return fmt.Sprintf("write %s: %q or less", LabelMemory, p.Usable())
	}
	largest := Fraction{1, int64(p.Replicas)}
	if p.MIGProfile != "" {
		largest = Fraction{int64(p.Usable()) * micro / int64(p.DeviceMemory-p.Reserve), micro}
	}
	return fmt.Sprintf("ask for a fraction of %s or less", largest)
}

// refusal joins why no candidate was chosen to violations: rules first, since they tell what could be changed, then
// what is too large for every pool.
func refusal(in *Input, misfits []misfit) []Violation {
	var out []Violation
	for _, m := range misfits {
		if m.kind == misfitRule && !slices.Contains(out, *m.violation) {
			out = append(out, *m.violation)
		}
	}
	if len(out) > 0 {
		return out
	}
	if i := slices.IndexFunc(misfits, func(m misfit) bool { return m.kind == misfitSeveral }); i >= 0 {
		return []Violation{{RuleStrategy, "several units of a shared GPU", misfits[i].String() + "; ask for one, or for an exclusive GPU"}}
	}
	if v := tooLarge(in, misfits); v != nil {
		return []Violation{*v}
	}
	if v := nowhereOffered(in, misfits); v != nil {
		return []Violation{*v}
	}
	text := fmt.Sprintf("%s; policy %s allows %s", reasons(misfits), in.Policy.Name, joinNames(in.Policy.Strategies))
	if !slices.ContainsFunc(misfits, func(m misfit) bool { return m.kind != misfitStrategy }) {
		text += "; allow another strategy, or declare the pool in the cluster's default policy"
	}
	return []Violation{{RuleFit, "no pool fits", text}}
}

// reasons is why each pool does not do.
func reasons(misfits []misfit) string {
	var whys []string
	for _, m := range misfits {
		whys = append(whys, m.pool.Name+": "+m.String())
	}
	if len(whys) == 0 {
		return "no node offers a GPU, and no pool is declared"
	}
	slices.Sort(whys)
	return shortList(slices.Compact(whys))
}

// tooLarge is the refusal of what exceeds every pool that the pod can reach: what was asked, the largest there is and
// where, and what to write.
func tooLarge(in *Input, misfits []misfit) *Violation {
	var best misfit
	reached, named := true, false
	for _, m := range misfits {
		named = named || m.kind == misfitResource
		if m.kind != misfitSize && m.kind != misfitBurst {
			continue
		}
		ok, _ := m.pool.reach(in.Pod, in.Policy.Pod.Tolerations)
		if best.pool == nil || ok && !reached || ok == reached && m.pool.Usable() > best.pool.Usable() {
			best, reached = m, ok
		}
	}
	switch {
	case best.pool == nil:
		return nil
	case best.kind == misfitBurst:
		return &Violation{RuleFit, "memory-limit fits no pool", fmt.Sprintf("%s; write %s: %q or less", best, LabelMemoryLimit, mostOf(best.pool))}
	case named:
		return &Violation{RuleFit, "the slice fits no pool", fmt.Sprintf("%s, and the pod asks for %s by name; %s, or ask for %s: 1 to get what fits",
			best, best.pool.Resource, best.most(), ResourceGPU)}
	}
	which := "the largest there is"
	if slices.ContainsFunc(misfits, func(m misfit) bool { return m.kind == misfitReach }) {
		which = "the largest that the pod can reach"
	}
	return &Violation{RuleFit, "the slice fits no pool", fmt.Sprintf("%s, %s (%s); %s", best, which, best.pool.Resource, best.most())}
}

// nowhereOffered is the refusal of a resource that a container names and no pool has.
func nowhereOffered(in *Input, misfits []misfit) *Violation {
	i := slices.IndexFunc(misfits, func(m misfit) bool { return m.kind == misfitResource })
	if i < 0 {
		return nil
	}
	asked := misfits[i].container
	var offered []string
	for _, p := range in.Pools {
		if p.Resource == asked.Resource {
			return nil // another reason stands in its way
		}
		offered = append(offered, p.Resource)
	}
	slices.Sort(offered)
	return &Violation{RuleFit, "no pool offers the resource", fmt.Sprintf("container %q asks for %s, and there are %s; ask for %s: 1 to get what fits",
		asked.Name, asked.Resource, strings.Join(slices.Compact(offered), ", "), ResourceGPU)}
}

func classList(p *Policy) string {
	names := slices.Sorted(maps.Keys(p.Classes))
	for i, n := range names {
		names[i] = strconv.Quote(n)
	}
	return strings.Join(append(names, strconv.Quote(ClassReplica)), ", ")
}

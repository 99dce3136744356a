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
)

// String is why, for people.
func (m misfit) String() string {
	switch m.kind {
	case misfitSize:
		return fmt.Sprintf("%s does not fit %s (%s usable)", m.asked, m.pool.describe(), m.pool.Usable().Human())
	case misfitBurst:
		return fmt.Sprintf("memory-limit %s does not fit %s (%s is the most)", m.asked, m.pool.describe(), m.pool.Burst().Human())
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
	}
	return ""
}

// describe names a pool by what a user recognises: its MIG profile or its name.
func (p *Pool) describe() string {
	if p.MIGProfile != "" {
		return p.MIGProfile
	}
	return "pool " + p.Name
}

// refusal joins why no candidate was chosen to violations: rules first, since they tell what could be changed, then
// what is too large for every pool.
func refusal(misfits []misfit, policy *Policy) []Violation {
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
	if v := tooLarge(misfits); v != nil {
		return []Violation{*v}
	}
	if len(misfits) == 0 {
		return []Violation{{RuleFit, "no pool fits", fmt.Sprintf("policy %s allows %s, and no known pool is shared that way; "+
			"allow another strategy, or declare the pool in the cluster's default policy", policy.Name, strategyNames(policy))}}
	}
	var whys []string
	for _, m := range misfits {
		whys = append(whys, m.pool.Name+": "+m.String())
	}
	slices.Sort(whys)
	return []Violation{{RuleFit, "no pool fits", shortList(slices.Compact(whys)) + fmt.Sprintf("; policy %s allows %s", policy.Name, strategyNames(policy))}}
}

// tooLarge is the refusal of what exceeds every pool: what was asked, the largest there is and where, and what to write.
func tooLarge(misfits []misfit) *Violation {
	var best misfit
	for _, m := range misfits {
		if m.kind != misfitSize && m.kind != misfitBurst {
			continue
		}
		if best.pool == nil || m.pool.Usable() > best.pool.Usable() {
			best = m
		}
	}
	if best.pool == nil {
		return nil
	}
	if best.kind == misfitBurst {
		return &Violation{RuleFit, "memory-limit fits no pool", fmt.Sprintf("%s; write %s: %q or less", best, LabelMemoryLimit, best.pool.Burst())}
	}
	return &Violation{RuleFit, "the slice fits no pool", fmt.Sprintf("%s, the largest there is (%s); write %s: %q or less",
		best, best.pool.Resource, LabelMemory, best.pool.Usable())}
}

func shortList(texts []string) string {
	const most = 6
	if len(texts) > most {
		texts = append(texts[:most:most], fmt.Sprintf("and %d more", len(texts)-most))
	}
	return strings.Join(texts, "; ")
}

func strategyNames(p *Policy) string {
	var names []string
	for _, s := range p.Strategies {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func classList(p *Policy) string {
	names := slices.Sorted(maps.Keys(p.Classes))
	for i, n := range names {
		names[i] = strconv.Quote(n)
	}
	return strings.Join(append(names, strconv.Quote(ClassReplica)), ", ")
}

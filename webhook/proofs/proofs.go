package proofs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Name is that of the ConfigMap, Key that of its one entry.
const (
	Name = "gpuslice-proofs"
	Key  = "proofs.json"
)

// Bounds on input.
const (
	maxText    = 900 << 10
	maxRecords = 1000
)

// Record is the finding on one pool.
type Record struct {
	Pool      string `json:"pool"`
	Character string `json:"character"`        // of the pool as it was
	Agents    bool   `json:"agents,omitempty"` // whether agents guarded it
	Namespace string `json:"namespace"`        // in which the program ran
	Node      string `json:"node,omitempty"`
	proof.Report
}

// Of are the records of a ConfigMap (nil: there is none), in the order of the pools' names. Unreadable records prove
// nothing.
func Of(m *corev1.ConfigMap) []Record {
	if m == nil || len(m.Data[Key]) > maxText {
		return nil
	}
	var all []Record
	if json.Unmarshal([]byte(m.Data[Key]), &all) != nil || len(all) > maxRecords {
		return nil
	}
	return all
}

// With returns the records with another one, which takes the place of an older one of the same pool.
func With(all []Record, r Record) []Record {
	out := slices.DeleteFunc(slices.Clone(all), func(o Record) bool { return o.Pool == r.Pool })
	out = append(out, r)
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.Pool, b.Pool) })
	return out
}

// Encode returns the text of the ConfigMap's entry.
func Encode(all []Record) (string, error) {
	text, err := json.MarshalIndent(all, "", " ")
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("%d bytes, at most %d", len(text), maxText)
	}
	if err != nil {
		return "", fmt.Errorf("encode proofs: %w", err)
	}
	return string(text), nil
}

// Find is the record of a pool; false: there is none.
func Find(all []Record, pool string) (Record, bool) {
	i := slices.IndexFunc(all, func(r Record) bool { return r.Pool == pool })
	if i < 0 {
		return Record{}, false
	}
	return all[i], true
}

// Stale is why the record proves nothing of the pool any more; "": it counts.
func (r Record) Stale(p *pools.Pool) string {
	driver := p.Driver()
	switch {
	case driver == "":
		return "the pool's driver version is unknown, so that no proof can be held against it: declare it (pools.declared[].driver)"
	case p.OtherDriver != "":
		return fmt.Sprintf("stale: tried with driver %s on %s, and the pool's nodes have %s and %s", r.Driver, r.day(), driver, p.OtherDriver)
	case r.OldDriver != "":
		return fmt.Sprintf("stale: tried with drivers %s and %s on %s", r.OldDriver, r.Driver, r.day())
	case r.Driver != driver && !strings.HasPrefix(r.Driver, driver+"."):
		return fmt.Sprintf("stale: tried with driver %s on %s, and the pool has %s", r.Driver, r.day(), driver)
	case r.Character != p.Character():
		return fmt.Sprintf("stale: tried on %s, and the pool has changed since: %q then, %q now", r.day(), r.Character, p.Character())
	case len(p.Nodes) > 0 && r.Agents != p.Agents:
		return fmt.Sprintf("stale: tried on %s, and since then agents began or ceased to guard the pool", r.day())
	}
	return ""
}

func (r Record) day() string { return r.Taken.Format("2006-01-02") }

// String is the proof in the record, for people.
func (r Record) String() string {
	return fmt.Sprintf("%s (%s, driver %s)", r.Tier(), r.day(), r.Driver)
}

// Leaks are the ways that nothing held, and those from which nothing follows.
func (r Record) Leaks() (leaks, unknown []string) {
	for _, a := range r.Attempts {
		switch a.Held {
		case proof.Nothing, proof.Unknown:
			leaks = append(leaks, string(a.Way))
		case "":
			unknown = append(unknown, string(a.Way))
		}
	}
	return leaks, unknown
}

// Apply writes the proofs of the records into the pools. The pools are the caller's own.
func Apply(all []Record, to []pools.Pool) {
	for i := range to {
		to[i].Proven, to[i].Proof, to[i].Unproven = of(all, &to[i])
	}
}

func of(all []Record, p *pools.Pool) (tiers []api.Tier, text, why string) {
	r, ok := Find(all, p.Name)
	if !ok {
		return nil, "", ""
	}
	if why := r.Stale(p); why != "" {
		return nil, "", why
	}
	for _, t := range api.Tiers() {
		if t != api.TierNone && r.Proves(string(t)) {
			tiers = append(tiers, t)
		}
	}
	if len(tiers) == 0 {
		return nil, "", "the latest proof is of " + r.lacking()
	}
	return tiers, r.lacking(), "the latest proof is of " + r.lacking()
}

// lacking is the proof in the record, and the obstacle to more.
func (r Record) lacking() string {
	leaks, unknown := r.Leaks()
	text := r.String()
	if len(leaks) > 0 {
		text += "; nothing held " + strings.Join(leaks, ", ")
	}
	if len(unknown) > 0 {
		text += "; nothing follows from " + strings.Join(unknown, ", ")
	}
	return text
}

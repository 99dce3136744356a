package doctor

import (
	"strings"

	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/proofs"
)

// checkProofs reports the proofs on the pools' own devices, and those that no longer count.
func checkProofs(f *Facts) []Finding {
	var all []Finding
	known := f.snapshot().Pools()
	for _, r := range proofs.Of(f.Proofs) {
		for i := range known {
			if known[i].Name == r.Pool {
				all = append(all, proofOf(r, &known[i]))
			}
		}
	}
	return all
}

func proofOf(r proofs.Record, p *pools.Pool) Finding {
	leaks, unknown := r.Leaks()
	stale := r.Stale(p)
	found := newFinding(OK, "a program that went past its slice of pool %s was held: %s is proven", r.Pool, r.Tier())
	switch {
	case stale != "":
		found = newFinding(Note, "what was proved on pool %s counts no more", r.Pool).With("pool/"+r.Pool, "proof", stale)
	case r.Tier() == "none":
		found = newFinding(Warning, "nothing is proven on pool %s", r.Pool)
	}
	found = found.With("pool/"+r.Pool, "proven", r.String())
	if len(leaks) > 0 {
		found = found.With("pool/"+r.Pool, "not held", strings.Join(leaks, ", "))
	}
	if len(unknown) > 0 {
		found = found.With("pool/"+r.Pool, "nothing follows from", strings.Join(unknown, ", "))
	}
	if found.Level != OK {
		found = found.WithRemedy("gpuslice verify --on-gpu -n NAMESPACE --pool %s", r.Pool)
	}
	return found
}

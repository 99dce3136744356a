package explain

import (
	"cmp"
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
)

// provenOn is the proof on a pool, or the reason why it counts no more; "": nothing was tried, or the user may not read
// it.
func provenOn(ctx context.Context, client kubernetes.Interface, system, pool string) string {
	if proved, err := installed.Proofs(ctx, client, system); err != nil || proved == nil {
		return ""
	}
	snapshot, err := installed.Snapshot(ctx, client, system)
	if err != nil {
		return ""
	}
	for _, p := range snapshot.Pools() {
		if p.Name == pool {
			return cmp.Or(p.Proof, p.Unproven)
		}
	}
	return ""
}

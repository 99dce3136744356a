package claimtemplates

import (
	"context"
	"slices"
	"time"
)

// strategy is that of slices by claim.
const strategy = "claim"

// awaitStrategy returns once a policy allows slices by claim on a cluster that has templates, or one did, and false when ctx ends.
// Until then pods are not watched, but looked at twice: one may name what the last leader could not write before the strategy left the
// last policy, and another replica may admit one a moment after that.
func (w *Writer) awaitStrategy(ctx context.Context) bool {
	ticker := time.NewTicker(syncPeriod / 12)
	defer ticker.Stop()
	looks, next := 2, time.Now()
	for {
		if w.options.Templates.HasSynced() && (w.allowed() || slices.ContainsFunc(w.options.Templates.GetStore().List(), isOursOf)) {
			return true
		}
		if w.options.Templates.HasSynced() && looks > 0 && !time.Now().Before(next) {
			named, err := nameTemplates(ctx, w.options.Client)
			switch {
			case named:
				return true
			case err != nil && ctx.Err() == nil:
				w.options.Log.Error(err, "cannot tell whether pods name templates of claims")
			default:
				looks--
			}
			next = time.Now().Add(syncPeriod)
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// allowed reports whether a policy allows slices by claim.
func (w *Writer) allowed() bool {
	governed, _ := w.options.Governed() // none while they are not read
	for _, g := range governed {
		if g.Policy != nil && g.Policy.Allows(strategy) {
			return true
		}
	}
	return false
}

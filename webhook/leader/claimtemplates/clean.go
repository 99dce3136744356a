package claimtemplates

import (
	"context"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/claims"
)

const (
	keep       = time.Hour // a template that no pod names
	maxRemoved = 8         // before pods are looked at again
)

// clean removes templates of gpuslice's that no pod has named for a while, or at once where others need the room. It reports whether
// there are more of them.
func (w *Writer) clean(ctx context.Context, left remaining) (more bool) {
	seen, removed := map[string]time.Time{}, 0
	for _, object := range w.options.Templates.GetStore().List() {
		have, ok := object.(*resourcev1.ResourceClaimTemplate)
		if !ok || !isOurs(have) || w.named.has(have.Namespace, have.Name) {
			continue
		}
		key := have.Namespace + "/" + have.Name
		since, ok := w.unused[key]
		if !ok {
			since = time.Now()
		}
		seen[key] = since
		if time.Since(since) <= keep && left[have.Namespace] >= 0 || w.waits(verbRemove, have.Namespace) {
			continue
		}
		if removed++; removed <= maxRemoved {
			w.call(ctx, verbRemove, have, func(ctx context.Context) error { return w.remove(ctx, have) })
		}
	}
	w.unused = seen
	return removed > maxRemoved
}

// isOurs reports whether gpuslice wrote the template, as far as can be seen. Anybody may write the label.
func isOurs(t *resourcev1.ResourceClaimTemplate) bool {
	return t.Labels[claims.LabelManagedBy] == claims.ManagedBy && t.DeletionTimestamp == nil && claims.NamesSlice(t.Name)
}

// MaxTemplates bounds the templates of one namespace: few have more than a dozen sizes.
const MaxTemplates = 256

// remaining is by namespace how many more templates may be written; negative: how many pods wait for.
type remaining map[string]int

func (w *Writer) left() remaining {
	out := remaining{}
	for _, object := range w.options.Templates.GetStore().List() {
		if t, ok := object.(*resourcev1.ResourceClaimTemplate); ok && isOurs(t) {
			out.take(t.Namespace)
		}
	}
	return out
}

// take takes the place of one template, and returns the number of free ones.
func (r remaining) take(namespace string) int {
	if _, ok := r[namespace]; !ok {
		r[namespace] = MaxTemplates
	}
	r[namespace]--
	return r[namespace]
}

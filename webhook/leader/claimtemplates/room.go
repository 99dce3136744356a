package claimtemplates

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// MaxTemplates bounds the templates of one namespace: few have more than a dozen sizes.
const MaxTemplates = 256

// room is by namespace how many more templates may be written; negative: how many pods wait for.
type room map[string]int

func (w *Writer) left() room {
	out := room{}
	for _, object := range w.options.Templates.GetStore().List() {
		if t, ok := object.(*resourcev1.ResourceClaimTemplate); ok && isOurs(t) {
			out.take(t.Namespace)
		}
	}
	return out
}

// take takes the place of one template, and returns the number of free ones.
func (r room) take(namespace string) int {
	if _, ok := r[namespace]; !ok {
		r[namespace] = MaxTemplates
	}
	r[namespace]--
	return r[namespace]
}

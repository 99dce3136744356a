package policies

import (
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Of a namespace with a bypass, beside api.AnnotationBypassUntil.
const (
	annotationBypassReason = api.Domain + "/bypass-reason"
	annotationBypassBy     = api.Domain + "/bypass-by"
)

// MaxBypass is the longest that a bypass lasts.
const MaxBypass = 24 * time.Hour

// bypassed is the one value of the label that means it.
const bypassed = "true"

// Bypass suspends denials in a namespace for a while. Whoever may label the namespace writes it there.
type Bypass struct {
	Until  time.Time // zero: it does not say, or in words that are no time
	Reason string
	By     string
}

// BypassOf reads the bypass of a namespace; ok is false where there is none. The label with the value "true" alone is one:
// selectors of the API server see nothing else of it.
func BypassOf(labels, annotations map[string]string) (b Bypass, ok bool) {
	if labels[api.LabelBypass] != bypassed {
		return Bypass{}, false
	}
	until, err := time.Parse(time.RFC3339, annotations[api.AnnotationBypassUntil])
	if err != nil {
		until = time.Time{}
	}
	return Bypass{Until: until, Reason: annotations[annotationBypassReason], By: annotations[annotationBypassBy]}, true
}

// Annotations are written beside the label.
func (b Bypass) Annotations() map[string]string {
	return map[string]string{
		api.AnnotationBypassUntil: b.Until.UTC().Format(time.RFC3339), annotationBypassReason: b.Reason, annotationBypassBy: b.By,
	}
}

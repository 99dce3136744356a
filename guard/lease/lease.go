// Package lease is the report of a node's agent on its Lease. Renewals report that
// it enforces, and annotations its facts about the node's pods.
//
// The one idea: no clock is compared with another. Whoever follows the Leases notes
// when it saw one renewed, by its own clock, and an agent whose Lease it has not
// seen renewed for Duration is away.
package lease

import (
	"encoding/json"
	"time"
)

// Duration is how long after its last renewal an agent is away.
const Duration = 30 * time.Second

// Annotations of a Lease.
const (
	AnnotationNotEnforced = "gpuslice.dev/not-enforced" // pod UID -> why the agent does not enforce that pod's slice, JSON
	AnnotationUsed        = "gpuslice.dev/used"         // pod UID -> the GPU memory that the pod uses, in MiB, JSON
)

// maxText bounds an annotation that is read, in bytes: the API server takes no more
// on one object.
const maxText = 256 << 10

// Labels select the Leases of all nodes.
func Labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "gpuslice", "app.kubernetes.io/component": "agent"}
}

// Name returns the name of a node's Lease.
func Name(node string) string { return "gpuslice-agent-" + node }

// Report is an agent's knowledge of the pods of its node, by UID.
type Report struct {
	NotEnforced map[string]string // why it does not enforce their slices; empty: it enforces all
	Used        map[string]int64  // the GPU memory that they use, in MiB, without pods of which it could not be read
}

// Annotations returns the report as annotations of the Lease: the same texts for the
// same report. One with an empty text is to be removed from the Lease.
func (r Report) Annotations() map[string]string {
	return map[string]string{AnnotationNotEnforced: encode(r.NotEnforced), AnnotationUsed: encode(r.Used)}
}

// Read returns the report on a Lease. An annotation that is absent, or that a newer
// agent writes in another form, counts as empty.
func Read(annotations map[string]string) (r Report) {
	r.NotEnforced = decode[string](annotations[AnnotationNotEnforced])
	r.Used = decode[int64](annotations[AnnotationUsed])
	return r
}

func encode[V string | int64](byUID map[string]V) string {
	if len(byUID) == 0 {
		return ""
	}
	text, err := json.Marshal(byUID)
	if err != nil {
		panic("encode a report on pods: " + err.Error()) // texts and numbers
	}
	return string(text)
}

func decode[V string | int64](text string) (byUID map[string]V) {
	if len(text) > maxText || json.Unmarshal([]byte(text), &byUID) != nil {
		return nil
	}
	return byUID
}

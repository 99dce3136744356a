package request

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// labelRequest is the request of a pod's labels.
type labelRequest struct {
	size      api.Size
	share     string
	strategy  api.StrategyName
	framework string
	container string
	explicit  bool

	sizeFrom, containerFrom string // the sources, for people
}

// labelReader reads one label into the request.
type labelReader struct {
	label    string
	explicit bool // the label by itself requests a slice
	read     func(value string, into *labelRequest) error
}

var labelReaders = []labelReader{
	{api.LabelMemory, true, func(v string, q *labelRequest) error { return q.size.Memory.UnmarshalText([]byte(v)) }},
	{api.LabelMemoryLimit, true, func(v string, q *labelRequest) error { return q.size.MemoryLimit.UnmarshalText([]byte(v)) }},
	{api.LabelFraction, true, func(v string, q *labelRequest) error { return q.size.Fraction.UnmarshalText([]byte(v)) }},
	{api.LabelClass, true, func(v string, q *labelRequest) (err error) {
		q.size.Class, err = nonEmpty(v, "a class of the policy")
		return err
	}},
	{api.LabelCompute, true, func(v string, q *labelRequest) (err error) { q.size.Compute, err = parseBetween(v, 1, 100); return err }},
	{api.LabelShare, false, readShare},
	{api.LabelStrategy, true, readStrategy},
	{api.LabelFramework, false, func(v string, q *labelRequest) (err error) {
		q.framework, err = nonEmpty(v, `a framework, such as "pytorch-2.4"`)
		return err
	}},
	{api.LabelContainer, false, func(v string, q *labelRequest) (err error) {
		q.container, err = nonEmpty(v, "a container of the pod")
		return err
	}},
}

// Labels are the labels by which a pod's author requests a slice.
func Labels() []string {
	names := make([]string, len(labelReaders))
	for i := range labelReaders {
		names[i] = labelReaders[i].label
	}
	return names
}

// labels reads the pod's labels of ours. Each that cannot be read is a violation, and so are two that contradict each
// other; one that is not ours is a warning, since it is most likely misspelt.
func (r *requestReader) labels() labelRequest {
	var out labelRequest
	var known int
	for _, reader := range labelReaders {
		value, ok := r.pod.Labels[reader.label]
		if !ok {
			continue
		}
		known++
		switch reader.label {
		case api.LabelMemory, api.LabelMemoryLimit, api.LabelFraction, api.LabelClass, api.LabelCompute:
			out.sizeFrom = cmp.Or(out.sizeFrom, "label "+reader.label)
		case api.LabelContainer:
			out.containerFrom = "label " + reader.label
		}
		out.explicit = out.explicit || reader.explicit
		if err := reader.read(value, &out); err != nil {
			out.explicit = true // it requests something that cannot be read
			r.deny(api.LabelField(reader.label), "label "+reader.label, err.Error())
		}
	}
	out.explicit = out.explicit || out.share == api.ShareEnabled
	if countOurs(r.pod.Labels) > known {
		out.explicit = r.unknownLabels() || out.explicit
	}
	if countOurs(r.pod.Annotations) > 0 {
		r.labelsAsAnnotations()
	}
	r.contradictions(out)
	return out
}

// Ineffective says which labels and annotations of a pod, or of the template of pods, are spelled as if they were ours and are not.
func Ineffective(labels, annotations map[string]string) []string {
	r := &requestReader{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}}}
	r.unknownLabels()
	r.labelsAsAnnotations()
	for _, v := range r.violations {
		r.warnings = append(r.warnings, v.Reason+": "+v.Detail)
	}
	return r.warnings
}

// unknownLabels warns of labels that are not ours. One that differs from ours in case alone is denied as a request that
// cannot be read; requests reports whether there is one.
func (r *requestReader) unknownLabels() (requests bool) {
	for _, name := range slices.Sorted(maps.Keys(r.pod.Labels)) {
		if !strings.HasPrefix(name, api.Domain+"/") || slices.Contains(Labels(), name) {
			continue
		}
		if i := slices.IndexFunc(Labels(), func(label string) bool { return strings.EqualFold(label, name) }); i >= 0 {
			r.deny(api.LabelField(name), "label "+message.Quote(name), "labels are read as they are spelled; write "+Labels()[i])
			requests = true
			continue
		}
		warning := fmt.Sprintf("label %s is not one of gpuslice's and has no effect", message.Quote(name))
		if meant := message.Nearest(name, Labels()); meant != "" {
			warning += "; did you mean " + meant + "?"
		}
		r.warnings = append(r.warnings, warning)
	}
	return requests
}

// labelsAsAnnotations warns of annotations that would request something as labels.
func (r *requestReader) labelsAsAnnotations() {
	for _, name := range Labels() {
		_, annotated := r.pod.Annotations[name]
		if _, labelled := r.pod.Labels[name]; annotated && !labelled {
			r.warnings = append(r.warnings, fmt.Sprintf("annotation %s has no effect: write it as a label, under metadata.labels", name))
		}
	}
}

func (r *requestReader) contradictions(q labelRequest) {
	var sizes []string
	for _, label := range []string{api.LabelMemory, api.LabelFraction, api.LabelClass} {
		if _, ok := r.pod.Labels[label]; ok {
			sizes = append(sizes, label)
		}
	}
	if len(sizes) > 1 {
		at := api.LabelField(sizes[0])
		for i, label := range sizes {
			sizes[i] = fmt.Sprintf("%s: %s", label, message.Quote(r.pod.Labels[label]))
		}
		r.deny(at, "labels contradict each other", fmt.Sprintf("%s each say how large the slice is; write one of them", strings.Join(sizes, " and ")))
	}
	if q.share == api.ShareDisabled && q.explicit {
		r.deny(api.LabelField(api.LabelShare), "labels contradict each other",
			fmt.Sprintf("%s: %q requests no slice, the pod's other labels request one; remove one side", api.LabelShare, api.ShareDisabled))
	}
	if q.size.Memory != 0 && q.size.MemoryLimit != 0 && q.size.MemoryLimit < q.size.Memory {
		r.deny(api.LabelField(api.LabelMemoryLimit), "label "+api.LabelMemoryLimit,
			fmt.Sprintf("%q is less than %s: %q; write at least that, or leave it out", q.size.MemoryLimit, api.LabelMemory, q.size.Memory))
	}
}

func readShare(v string, q *labelRequest) error {
	if v != api.ShareEnabled && v != api.ShareDisabled {
		return fmt.Errorf("%s is not understood; accepted: %q or %q", message.Quote(v), api.ShareEnabled, api.ShareDisabled)
	}
	q.share = v
	return nil
}

func readStrategy(v string, q *labelRequest) error {
	if !slices.Contains(strategies.Names(), api.StrategyName(v)) {
		return fmt.Errorf("%s is not a strategy; accepted: %s", message.Quote(v), strategyList())
	}
	q.strategy = api.StrategyName(v)
	return nil
}

func nonEmpty(v, what string) (string, error) {
	if v == "" {
		return "", fmt.Errorf("it is empty; write %s", what)
	}
	return v, nil
}

func parseBetween(text string, low, high int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || len(text) > 4 || n < low || n > high || text[0] == '+' {
		return 0, fmt.Errorf("%s is not understood; accepted: a whole number from %d to %d", message.Quote(text), low, high)
	}
	return n, nil
}

func strategyList() string {
	var names []string
	for _, name := range strategies.Names() {
		names = append(names, strconv.Quote(string(name)))
	}
	return strings.Join(names, ", ")
}

// countOurs counts the names of gpuslice's domain.
func countOurs(names map[string]string) (n int) {
	for name := range names {
		if strings.HasPrefix(name, api.Domain+"/") {
			n++
		}
	}
	return n
}

package policies

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxContainersAnnotation = 16 << 10 // bytes of the annotation that are parsed
	maxAnnotationProblems   = 8        // that are told
)

// annotation reads gpuslice.dev/containers: container -> what it asks.
func (r *requestReader) annotation() map[string]Ask {
	text, ok := r.pod.Annotations[AnnotationContainers]
	if !ok {
		return nil
	}
	const reason = "annotation " + AnnotationContainers
	if len(text) > maxContainersAnnotation {
		r.refuse(reason, fmt.Sprintf("it has %d bytes; at most %d are read", len(text), maxContainersAnnotation))
		return nil
	}
	root, problem := readMapping([]byte(text), `a map from container to what it asks, such as {"trainer": {"memory": "8Gi"}}`)
	if problem != nil {
		r.refuse(reason, problem.Detail)
		return nil
	}
	d := &documentDecoder{}
	out := make(map[string]Ask, len(root.Content)/2)
	d.entries(root, nil, func(key, value *yaml.Node) {
		at := field.NewPath(cut(key.Value))
		if !hasContainer(&r.pod.Spec, key.Value) {
			d.refuse(at, key, "it is not a container of this pod")
			return
		}
		var ask Ask
		before := len(d.problems)
		if d.decode(value, reflect.ValueOf(&ask).Elem(), at); len(d.problems) == before {
			ask.check(d, value, at)
		}
		out[key.Value] = ask
	})
	for _, p := range d.problems[:min(len(d.problems), maxAnnotationProblems)] {
		r.refuse(reason, legible(p.Field)+": "+p.Detail)
	}
	return out
}

// legible is the text as it is, or quoted where it holds what a terminal would obey and not print.
func legible(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// check refuses what each field by itself does not tell.
func (a Ask) check(d *documentDecoder, n *yaml.Node, at *field.Path) {
	sizes := 0
	for _, sized := range []bool{a.Memory != 0, !a.Fraction.Zero(), a.Class != ""} {
		if sized {
			sizes++
		}
	}
	if sizes > 1 {
		d.refuse(at, n, "memory, fraction and class each say how large the slice is; write one of them")
	}
	if a.Memory != 0 && a.MemoryLimit != 0 && a.MemoryLimit < a.Memory {
		d.refuse(at.Child("memoryLimit"), n, "%q is less than memory %q; write at least that, or leave it out", a.MemoryLimit, a.Memory)
	}
	if a.Compute < 0 || a.Compute > 100 {
		d.refuse(at.Child("compute"), n, "%d is out of range; accepted: 1 to 100", a.Compute)
	}
	if a.Processes < 0 || a.Processes > maxProcesses {
		d.refuse(at.Child("processes"), n, "%d is out of range; accepted: 1 to %d", a.Processes, maxProcesses)
	}
}

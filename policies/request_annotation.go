package policies

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
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
		r.deny(reason, fmt.Sprintf("it has %d bytes; at most %d are read", len(text), maxContainersAnnotation))
		return nil
	}
	root, problem := readMapping([]byte(text), `a map from container to what it asks, such as {"trainer": {"memory": "8Gi"}}`)
	if problem != nil {
		r.deny(reason, problem.Detail)
		return nil
	}
	out, problems := decodeEntries(root, func(name string) string {
		if !hasContainer(&r.pod.Spec, name) {
			return "it is not a container of this pod"
		}
		return ""
	}, Ask.check)
	for _, p := range problems[:min(len(problems), maxAnnotationProblems)] {
		r.deny(reason, legible(p.Field)+": "+p.Detail)
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

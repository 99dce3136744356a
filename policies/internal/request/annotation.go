package request

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

const (
	maxContainersAnnotation = 16 << 10 // bytes of the annotation that are parsed
	maxAnnotationProblems   = 8        // that are reported
)

// annotation reads gpuslice.dev/containers: container -> request.
func (r *requestReader) annotation(text string) map[string]api.Size {
	const reason = "annotation " + api.AnnotationContainers
	if len(text) > maxContainersAnnotation {
		r.deny(api.AnnotationField(api.AnnotationContainers), reason, fmt.Sprintf("it has %d bytes; at most %d are read", len(text), maxContainersAnnotation))
		return nil
	}
	root, problem := document.Read([]byte(text), `a map from container to what it requests, such as {"trainer": {"memory": "8Gi"}}`)
	if problem != nil {
		r.deny(api.AnnotationField(api.AnnotationContainers), reason, problem.Detail)
		return nil
	}
	var all []gpuContainer
	for c := range podspec.Containers(&r.pod.Spec) {
		all = append(all, gpuContainer{name: c.Name})
	}
	there := quotedNames(all)
	out, problems := document.Entries(root, func(name string) string {
		if !podspec.HasContainer(&r.pod.Spec, name) {
			return "it is not a container of this pod; there are " + there
		}
		return ""
	}, api.Size.Check)
	for _, p := range problems[:min(len(problems), maxAnnotationProblems)] {
		r.deny(api.AnnotationField(api.AnnotationContainers), reason, legible(p.Field)+": "+p.Detail)
	}
	return out
}

// legible is the text as it is, or quoted if it holds characters that a terminal would obey and not print.
func legible(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

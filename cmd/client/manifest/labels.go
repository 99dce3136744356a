package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/policies/api"
)

// LabelProblem is why the API server denies an object with these labels; "": it takes them.
func LabelProblem(labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Sprintf("label %q: %s", key, problems[0])
		}
		value := labels[key]
		problems := validation.IsValidLabelValue(value)
		switch part := decimal(value); {
		case len(problems) == 0:
			continue
		case key == api.LabelFraction && part != "":
			return fmt.Sprintf("label %s: %q: Kubernetes takes letters, digits, '-', '_' and '.' in a label's value; write %q", key, value, part)
		}
		return fmt.Sprintf("label %s: %q: %s", key, value, problems[0])
	}
	return ""
}

// decimal is a fraction such as "1/4", or a percentage, as a decimal number; "": it is none.
func decimal(text string) string {
	over, under, ok := strings.Cut(text, "/")
	if percent, is := strings.CutSuffix(text, "%"); is {
		over, under, ok = percent, "100", true
	}
	a, err := strconv.ParseFloat(over, 64)
	b, err2 := strconv.ParseFloat(under, 64)
	if !ok || err != nil || err2 != nil || !(a > 0 && a <= b) {
		return ""
	}
	return strconv.FormatFloat(a/b, 'g', 4, 64)
}

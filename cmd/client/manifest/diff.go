package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/problem"
)

// contextLines surround each change of a diff.
const contextLines = 3

// Diff is how an object changes, as a unified diff of sorted YAML. how is how it becomes after.
func Diff(o Object, after json.RawMessage, how string) (string, error) {
	var texts [2][]byte
	for i, raw := range []json.RawMessage{o.Raw, after} {
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			return "", fmt.Errorf("%w: print %s: %w", problem.ErrInternal, o, err)
		}
		texts[i] = text
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(texts[0]), B: lines(texts[1]), Context: contextLines,
		FromFile: o.String() + " (as written)", ToFile: o.String() + " (" + how + ")",
	})
}

// lines splits a text of which each line ends in a newline; difflib would see an empty one after the last.
func lines(text []byte) []string { return difflib.SplitLines(strings.TrimSuffix(string(text), "\n")) }

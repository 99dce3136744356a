package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// PodDiff is the change of a pod, as want/pod.diff shows it: a unified diff of PodYAML before and after, empty where
// nothing changes. Its hunks carry line numbers, so together with the pod before it determines the pod after.
func PodDiff(before []byte, after map[string]any) (string, error) {
	old, err := podYAML(before)
	if err != nil {
		return "", fmt.Errorf("pod before: %w", err)
	}
	mutated, err := PodYAML(after)
	if err != nil {
		return "", fmt.Errorf("pod after: %w", err)
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(old), B: lines(mutated), Context: 3})
}

// MutatedPod is the YAML of the pod that a case wants: its pod with want/pod.diff applied.
func (s Scenario) MutatedPod() (string, error) {
	before, err := podYAML(s.Pod)
	if err != nil {
		return "", err
	}
	after, err := applied(lines(before), lines(s.Want["pod.diff"]))
	if err != nil {
		return "", fmt.Errorf("want/pod.diff: %w", err)
	}
	return after, nil
}

func podYAML(object []byte) (string, error) {
	var tree map[string]any
	if err := json.Unmarshal(object, &tree); err != nil {
		return "", err
	}
	return PodYAML(tree)
}

// lines are the lines of a text, each with its newline. difflib's own function adds an empty one at the end.
func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	return all[:len(all)-1]
}

// applied is a text with a unified diff applied. Line numbers must be exact and each line of context equal: unlike
// patch(1) it looks for no better place, since the diff is to determine the result.
func applied(before, diff []string) (string, error) {
	var after strings.Builder
	at := 0
	keep := func(until int) error {
		if until < at || until > len(before) {
			return fmt.Errorf("a hunk begins at line %d of %d", until+1, len(before))
		}
		after.WriteString(strings.Join(before[at:until], ""))
		at = until
		return nil
	}
	for _, line := range diff {
		op, text := line[0], line[1:]
		if op == '@' {
			first, err := hunkStart(line)
			if err != nil {
				return "", err
			}
			if err := keep(first); err != nil {
				return "", err
			}
			continue
		}
		if op != '+' && (at == len(before) || before[at] != text) {
			return "", fmt.Errorf("the pod's line %d is not %q", at+1, text)
		}
		if op != '-' {
			after.WriteString(text)
		}
		if op != '+' {
			at++
		}
	}
	if err := keep(len(before)); err != nil {
		return "", err
	}
	return after.String(), nil
}

// hunkStart is how many lines stand before a hunk; a hunk that removes and keeps nothing names the line before it.
func hunkStart(header string) (int, error) {
	var first, n int
	if _, err := fmt.Sscanf(header, "@@ -%d,%d ", &first, &n); err != nil {
		n = 1
		if _, err := fmt.Sscanf(header, "@@ -%d ", &first); err != nil {
			return 0, fmt.Errorf("hunk header %q: %w", header, err)
		}
	}
	if n > 0 {
		first--
	}
	return first, nil
}

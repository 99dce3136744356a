package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lines are the fields at fault, one a line in the order of the denials, as want/fields has them; "-" is a denial without one.
func Lines(fields []string) string {
	var b strings.Builder
	for _, at := range fields {
		if at == "" {
			at = "-"
		}
		b.WriteString(at + "\n")
	}
	return b.String()
}

// CheckCauses returns what is wrong with the causes of the case's denial, as a client gets them: want/fields, where it is there, has
// their fields, and each is one of the pod's.
func (s Scenario) CheckCauses(details *metav1.StatusDetails) error {
	if details == nil || len(details.Causes) == 0 {
		return errors.New("the denial has no causes")
	}
	fields := make([]string, len(details.Causes))
	for i, cause := range details.Causes {
		fields[i] = cause.Field
		if err := s.CheckField(cause.Field); err != nil {
			return err
		}
		if cause.Message == "" || !strings.HasPrefix(string(cause.Type), "FieldValue") {
			return fmt.Errorf("the cause %+v lacks a sentence or a type of Kubernetes'", cause)
		}
	}
	if want, shown := s.Want["fields"]; shown && want != Lines(fields) {
		return fmt.Errorf("the causes' fields are %q, want/fields has %q", Lines(fields), want)
	}
	return nil
}

// CheckField returns why a denial of the case cannot name the field: a pod has no such field, or no program would find it there.
func (s Scenario) CheckField(path string) error {
	var pod any
	if err := json.Unmarshal(s.Pod, &pod); err != nil {
		return err
	}
	rest := path
	for at := pod; rest != ""; {
		name, after := nextPart(rest)
		var next any
		switch node := at.(type) {
		case map[string]any:
			next = node[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node) {
				next = node[i]
			}
		}
		if next == nil {
			if s.Old != nil && strings.HasPrefix(path, "metadata.") && (after == "" || name == "labels" || name == "annotations") {
				return nil // the update removes it, perhaps as the last one
			}
			return fmt.Errorf("the pod has no %q of the field %q", name, path)
		}
		at, rest = next, after
	}
	return nil
}

// nextPart is the first part of a path such as labels[a.b/c].x; in brackets it is the key of a map or the index of a list.
func nextPart(path string) (name, rest string) {
	if in, ok := strings.CutPrefix(path, "["); ok {
		name, rest, _ = strings.Cut(in, "]")
		return name, strings.TrimPrefix(rest, ".")
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return path, ""
	}
	return path[:end], strings.TrimPrefix(path[end:], ".")
}

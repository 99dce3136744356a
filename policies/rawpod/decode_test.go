package rawpod

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	t.Run("bounds what it parses", func(t *testing.T) {
		pod := func(quantity string) string {
			return `{"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":` + quantity + `}}}]}}`
		}
		many := `{"spec":{"containers":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","image":"b"},`, 10_000), ",") + `]}}`
		for name, c := range map[string]struct {
			raw       string
			violation string // part of it; empty: none
			fails     bool   // it is no pod at all
		}{
			"a whole number":                 {pod(`1`), "", false},
			"a fraction":                     {pod(`"0.25"`), "", false},
			"a small exponent":               {pod(`"1e3"`), "", false},
			"an exponent of three digits":    {pod(`"1e400"`), "is not a quantity that is read", false},
			"an exponent that takes seconds": {pod(`"1e10000000"`), "is not a quantity that is read", false},
			"full-width digits":              {pod(`"１"`), "is not a quantity that is read", false},
			"a word":                         {pod(`"NaN"`), "is not a quantity that is read", false},
			"a very long number":             {pod(`"` + strings.Repeat("9", 300) + `"`), "is not a quantity that is read", false},
			"ten thousand containers":        {many, "", false},
			"many small objects": {`{"spec":{"tolerations":[` + strings.TrimSuffix(strings.Repeat(`{},`, 100_000), ",") + `]}}`,
				"more than 20000 objects", false},
			"a long name of a container": {`{"spec":{"initContainers":[{"name":"` + strings.Repeat("a", 254) + `"}]}}`, "at most 253 are read", false},
			"more than four megabytes":   {`{"a":"` + strings.Repeat("x", 5<<20) + `"}`, "at most 4194304 are read", false},
			"null":                       {`null`, "", true},
			"a list":                     {`[]`, "", true},
			"cut":                        {`{"spec":`, "", true},
		} {
			raw, violation, err := Decode([]byte(c.raw))
			switch {
			case (err != nil) != c.fails:
				t.Errorf("%s: error %v", name, err)
			case c.violation != "" && (violation == nil || !strings.Contains(violation.String(), c.violation)):
				t.Errorf("%s: want a denial with %q, got %v", name, c.violation, violation)
			case c.violation == "" && violation != nil:
				t.Errorf("%s: denied: %s", name, violation)
			case c.violation == "" && !c.fails && (raw.Pod == nil || len(raw.Text) == 0):
				t.Errorf("%s: neither read nor denied", name)
			}
		}
	})
	t.Run("keys are case-sensitive, as on the API server", func(t *testing.T) {
		raw, _, err := Decode([]byte(`{"spec":{"hostPID":false,"HOSTPID":true,"containers":[{"name":"a","IMAGE":"b"}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		if raw.Pod.Spec.HostPID || raw.Pod.Spec.Containers[0].Image != "" {
			t.Errorf("keys of another case were read: %+v", raw.Pod.Spec)
		}
	})
}

// TestDecodeManagedFields: of many annotations the API server keeps an object each, which is no reason not to read the pod.
func TestDecodeManagedFields(t *testing.T) {
	t.Parallel()
	var owned strings.Builder
	annotations := map[string]string{}
	for i := range 40_000 {
		annotations[fmt.Sprint("k", i)] = ""
		fmt.Fprintf(&owned, `"f:k%d":{},`, i)
	}
	text, err := json.Marshal(annotations)
	if err != nil {
		t.Fatal(err)
	}
	pod := func(managed string) []byte {
		return []byte(`{"metadata": {"managedFields" : ` + managed + `, "annotations": ` + string(text) +
			`, "name": "managedFields"}, "spec": {"containers": [{"name": "a"}]}}`)
	}
	for name, c := range map[string]struct {
		managed string
		read    bool
	}{
		"a list":         {`[{"fieldsV1": {` + strings.TrimSuffix(owned.String(), ",") + `}}]`, true},
		"an empty list":  {"[]", true},
		"null":           {"null", true},
		"no list at all": {`{` + strings.TrimSuffix(owned.String(), ",") + `}`, false},
		"cut off":        {`[{`, false},
	} {
		got, violation, err := Decode(pod(c.managed))
		if read := err == nil && violation == nil; read != c.read {
			t.Errorf("%s: %v %v", name, violation, err)
		}
		if c.read && (len(got.Pod.Annotations) != len(annotations) || got.Pod.Name != "managedFields" || len(got.Pod.Spec.Containers) != 1) {
			t.Errorf("%s: %d annotations, %q, %v", name, len(got.Pod.Annotations), got.Pod.Name, got.Pod.Spec.Containers)
		}
	}
	if _, violation, _ := Decode(
		[]byte(`{"metadata": {"a": {"managedFields": [` + strings.Repeat("{},", 100_000) + `{}]}}}`)); violation == nil {
		t.Error("a list of that name elsewhere is left out")
	}
}

package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// The head of a test.
const (
	apiVersion = "cli." + api.Domain + "/v1"
	kind       = "PolicyTest"
)

// test is one document.
type test struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Policies   []string   `json:"policies"`
	Nodes      []string   `json:"nodes"`
	Namespaces []string   `json:"namespaces"`
	GuardImage string     `json:"guardImage"`
	Cases      []testCase `json:"cases"`

	at manifest.Source
}

// testCase is a pod and its expected result.
type testCase struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Pod       json.RawMessage `json:"pod"` // a path, or the object itself
	Want      want            `json:"want"`
}

// want is the expected result of a pod. Zero fields are not compared.
type want struct {
	Outcome string `json:"outcome"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
	slice
	Containers map[string]slice `json:"containers"`
}

// slice is the expected slice of a container.
type slice struct {
	Resource    string           `json:"resource"`
	Memory      api.MiB          `json:"memory"`
	MemoryLimit api.MiB          `json:"memoryLimit"`
	Strategy    api.StrategyName `json:"strategy"`
	Pool        string           `json:"pool"`
	Tier        api.Tier         `json:"tier"`
}

// allowed is every outcome but denied.
const allowed = "allowed"

func outcomes() []string {
	return []string{allowed, string(policies.Denied), string(policies.Mutated), string(policies.Unchanged), string(policies.DevicesHidden)}
}

// readTests reads the tests of files.
func readTests(input *manifest.Reader, paths []string) (tests []test, unread []manifest.Error) {
	for _, d := range input.Documents(paths, manifest.MaxManifest) {
		t, is, err := readTest(d)
		switch {
		case err != nil:
			unread = append(unread, manifest.Error{At: d.At, Err: err})
		case is:
			tests = append(tests, t)
		}
	}
	return tests, unread
}

// readTest reads a document. It reports whether the document is a test.
func readTest(d manifest.Document) (t test, is bool, err error) {
	if d.Err != nil {
		return t, false, d.Err
	}
	var head struct{ APIVersion, Kind string }
	_ = json.Unmarshal(d.Raw, &head) // any other document has neither
	switch {
	case head.APIVersion != apiVersion && !strings.EqualFold(head.Kind, kind):
		return t, false, nil
	case head.APIVersion != apiVersion || head.Kind != kind:
		return t, false, fmt.Errorf("apiVersion %q, kind %q: write apiVersion: %s and kind: %s", head.APIVersion, head.Kind, apiVersion, kind)
	}
	strict, err := kjson.UnmarshalStrict(d.Raw, &t)
	if err = errors.Join(append(strict, err)...); err != nil {
		return t, false, err
	}
	t.at = d.At
	for i, c := range t.Cases {
		if err := c.check(); err != nil {
			return t, false, fmt.Errorf("cases[%d] %s: %w", i, c.Name, err)
		}
	}
	if len(t.Cases) == 0 {
		return t, false, errors.New("cases: there is none")
	}
	return t, true, nil
}

func (c *testCase) check() error {
	switch {
	case c.Name == "":
		return errors.New("name: is missing")
	case len(c.Pod) == 0 || string(c.Pod) == "null":
		return errors.New("pod: is missing: write the path of a file, or the object itself")
	case c.file() == ".":
		return errors.New("pod: names no file: write the path of a file, or the object itself")
	case c.Want.empty():
		return errors.New("want: is missing: write at least an outcome")
	case c.Want.Outcome != "" && !slices.Contains(outcomes(), c.Want.Outcome):
		return fmt.Errorf("want.outcome %q: accepted: %s", c.Want.Outcome, strings.Join(outcomes(), ", "))
	case c.Want.Tier != "" && !slices.Contains(api.Tiers(), c.Want.Tier):
		return fmt.Errorf("want.tier %q: accepted: %v", c.Want.Tier, api.Tiers())
	}
	return nil
}

// file is the path of the pod; "": the case holds the object itself.
func (c *testCase) file() string {
	var file string
	if json.Unmarshal(c.Pod, &file) != nil {
		return ""
	}
	return filepath.Clean(file)
}

func (w *want) empty() bool {
	return w.Outcome == "" && w.Rule == "" && w.Message == "" && w.slice == (slice{}) && len(w.Containers) == 0
}

// path is a path of the test's file.
func (t *test) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(t.at.File), name)
}

func (t *test) paths(names []string) (out []string) {
	for _, name := range names {
		out = append(out, t.path(name))
	}
	return out
}

// object is the pod or workload of a case.
func (t *test) object(input *manifest.Reader, c *testCase) (manifest.Object, error) {
	documents := []manifest.Document{{At: t.at, Raw: c.Pod}}
	if file := c.file(); file != "" {
		documents = input.Documents([]string{t.path(file)}, manifest.MaxManifest)
	}
	var all []manifest.Object
	for _, d := range documents {
		objects, unread := d.Objects()
		for _, failed := range unread {
			return manifest.Object{}, fmt.Errorf("pod: %w", failed)
		}
		all = append(all, objects...)
	}
	if len(all) != 1 {
		return manifest.Object{}, fmt.Errorf("pod: %d objects, and a case has one", len(all))
	}
	if all[0].Namespace == "" {
		all[0].Namespace = c.Namespace
	}
	return all[0], nil
}

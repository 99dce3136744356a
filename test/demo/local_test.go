package demo

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestLocal(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the guard: leave out -short to run it")
	}
	t.Run("the two pods and the samples", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		if err := Local(t.Context(), Options{}, &out, os.Stderr); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		wanted := []string{
			`pod hog requests 8Gi: gpuslice plans time-slicing, held by guard`,
			`pod hog: its process ended: exit status 143`,
			`its owner reads, as an Event of the pod: .*gpuslice terminated tenant .* of 8Gi`,
			`pod quiet: \d+ heartbeats, 0 missing`,
			`memory +l4-time-slicing-4-\S+: 4Gi held by guard`,
			`claim-10gi +h100-\S+: 10Gi held by guard, by a claim of 10540Mi`,
			`3 claims of unequal sizes: 23428Mi of the 81559Mi of one device`,
			`beyond-quota +denied: exceeded quota: students, requested: memory=4Gi, used: memory=5Gi, limited: memory=8Gi`,
		}
		if _, err := exec.LookPath("gcc"); err != nil {
			t.Log("without gcc the two pods are left out")
			wanted = wanted[4:]
		}
		for _, words := range wanted {
			if !regexp.MustCompile(words).MatchString(out.String()) {
				t.Errorf("not printed: %s", words)
			}
		}
		if strings.Contains(out.String(), "restarted") {
			t.Error("the tenant started before its guard was ready")
		}
		checkRecording(t, out.String())
		if t.Failed() {
			t.Log(out.String())
		}
	})
	t.Run("documents of the user's own", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "own.yaml")
		container := "  containers:\n  - {name: a, image: a, resources: {limits: {nvidia.com/gpu: 1}}}\n"
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: one, labels: {gpuslice.dev/memory: 4Gi}}\nspec:\n" + container +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: two}\nspec:\n" +
			"  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b, gpuslice.dev/memory: 2Gi}}\n    spec:\n    " +
			strings.ReplaceAll(container, "\n  -", "\n      -") +
			"---\napiVersion: v1\nkind: Pod\nmetadata: {name: served, labels: {gpuslice.dev/memory: 3Gi}}\nspec:\n  containers:\n" +
			"  - {name: vllm, image: 'vllm/vllm-openai:v0.8.5', args: [--model=m], resources: {limits: {nvidia.com/gpu: 1}}}\n"
		text += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: plain}\nspec: {containers: [{name: a, image: a}]}\n" +
			"---\napiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray}\nspec:\n  headGroupSpec: {template: {spec: {containers: [{name: a, image: a}]}}}\n" +
			"  workerGroupSpecs: [{groupName: w, template: {metadata: {labels: {gpuslice.dev/memory: 1Gi}}, spec: {containers: [" +
			"{name: a, image: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Local(t.Context(), Options{Pod: file, Verbose: true}, &out, os.Stderr); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		for _, words := range []string{`one +l4-\S+: 4Gi held by guard`, `two\S* +l4-\S+: 2Gi held by guard`,
			`served +l4-\S+: 3Gi held by guard.*\n    warning: .*--gpu-memory-utilization=`, `\+ +nvidia.com/gpu.shared`,
			`plain +unchanged: no GPU requested`, `ray-1 spec\.headGroupSpec\.template unchanged: no GPU requested`,
			`ray-2 spec\.workerGroupSpecs\[0\]\.template \S+: 1Gi held by guard`, `explain -f \S+own.yaml --policies FILE --nodes nodes.yaml`} {
			if !regexp.MustCompile(words).MatchString(out.String()) {
				t.Errorf("not printed: %s\n%s", words, out.String())
			}
		}
	})
}

func TestOwnSamples(t *testing.T) {
	t.Run("a file without a pod says so", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "own.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Samples(file); err == nil || !strings.Contains(err.Error(), "no pod") {
			t.Errorf("%v", err)
		}
		if _, err := Samples(file + ".not"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}

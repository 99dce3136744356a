package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// decided is a scenario whose pod is created, with what came out.
type decided struct {
	s   scenarios.Scenario
	raw rawpod.Raw
	in  policies.Input
	d   policies.Decision
}

// created decides every scenario that creates a pod which can be read.
func created(t *testing.T) (all []decided) {
	t.Helper()
	for _, s := range allScenarios(t) {
		raw, violation, err := rawpod.Decode(s.Pod)
		if err != nil {
			t.Fatal(s.Name, err)
		}
		if violation != nil || s.Old != nil {
			continue
		}
		in, err := s.Input()
		if err != nil {
			t.Fatal(s.Name, err)
		}
		in.Pod = raw.Pod
		all = append(all, decided{s, raw, in, policies.Decide(in)})
	}
	return all
}

func TestDecideProperties(t *testing.T) {
	t.Parallel()
	t.Run("the input stays as it was", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			before, policy := c.in.Pod.DeepCopy(), mustEncode(t, c.in.Policy)
			pools := mustEncode(t, c.in.Pools)
			d := policies.Decide(c.in)
			if d.Promise != nil {
				podedit.Apply(d.Promise, c.in.Pod)
			}
			if diff := cmp.Diff(before, c.in.Pod); diff != "" {
				t.Errorf("%s: the pod changed:\n%s", c.s.Name, diff)
			}
			if mustEncode(t, c.in.Policy) != policy || mustEncode(t, c.in.Pools) != pools {
				t.Errorf("%s: the policy or the pools changed", c.s.Name)
			}
		}
	})
	t.Run("twice is the same answer", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if again := policies.Decide(c.in); mustEncode(t, again) != mustEncode(t, c.d) {
				t.Errorf("%s: %s", c.s.Name, cmp.Diff(mustEncode(t, c.d), mustEncode(t, again)))
			}
		}
	})
	t.Run("its own output stays unchanged", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			once := podedit.Apply(c.d.Promise, c.in.Pod)
			in := c.in
			in.Pod = once
			d := policies.Decide(in)
			if d.Outcome != policies.Mutated {
				t.Errorf("%s: the rewritten pod is %s: %s", c.s.Name, d.Outcome, d.Message())
				continue
			}
			if diff := cmp.Diff(once, podedit.Apply(d.Promise, once)); diff != "" {
				t.Errorf("%s: deciding again changes the pod:\n%s", c.s.Name, diff)
			}
		}
	})
	// For every pool and every slice.
	t.Run("slices on one device never exceed it", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Promise == nil {
				continue
			}
			for _, pc := range c.d.Promise.Containers {
				for _, pool := range c.in.Pools {
					if pool.Resource != pc.Resource || !slices.Contains(c.d.Promise.Pools, pool.Name) || pool.DeviceMemory == 0 {
						continue
					}
					fitting := max(pool.Replicas, 1)
					if pool.Granular {
						fitting /= int(pc.Count)
					}
					if all := pc.Slice * quantity.MiB(fitting); all > pool.DeviceMemory {
						t.Errorf("%s: %d slices of %s hold %s of the %s on %s", c.s.Name, fitting, pc.Slice, all, pool.DeviceMemory, pool.Name)
					}
				}
			}
		}
	})
	t.Run("devices are hidden once", func(t *testing.T) {
		t.Parallel()
		hidden := 0
		for _, c := range created(t) {
			if c.d.Outcome != policies.DevicesHidden {
				continue
			}
			hidden++
			in := c.in
			in.Pod = c.d.Rewrite(c.in.Pod)
			if d := policies.Decide(in); d.Outcome != policies.Unchanged {
				t.Errorf("%s: the hidden pod is %s", c.s.Name, d.Outcome)
			}
		}
		if hidden == 0 {
			t.Error("no scenario is hidden")
		}
	})
}

func TestApplyProperties(t *testing.T) {
	t.Parallel()
	t.Run("twice is once", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Promise == nil {
				continue
			}
			once := podedit.Apply(c.d.Promise, c.in.Pod)
			if diff := cmp.Diff(once, podedit.Apply(c.d.Promise, once)); diff != "" {
				t.Errorf("%s:\n%s", c.s.Name, diff)
			}
			read, err := promise.Decode(once.Annotations[api.AnnotationPromise])
			if err != nil {
				t.Fatalf("%s: the promise on the pod cannot be read: %v", c.s.Name, err)
			}
			if diff := cmp.Diff(once, podedit.Apply(read, once)); diff != "" {
				t.Errorf("%s: the promise read back from the pod gives another pod:\n%s", c.s.Name, diff)
			}
		}
	})
	t.Run("the patch gives the same pod", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			after := podedit.Apply(c.d.Promise, c.raw.Pod)
			tree := patched(t, c.s.Pod, podedit.Operations(c.raw.Text, c.raw.Pod, after))
			var got corev1.Pod
			if err := json.Unmarshal([]byte(mustEncode(t, tree)), &got); err != nil {
				t.Fatal(err)
			}
			if mustEncode(t, got) != mustEncode(t, after) {
				t.Errorf("%s:\n%s", c.s.Name, cmp.Diff(mustEncode(t, after), mustEncode(t, got)))
			}
		}
	})
	// A field of a future API version is put on every object of a list that the patch touches, and is found there
	// again.
	t.Run("unknown fields survive on the right container", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			var tree map[string]any
			if err := json.Unmarshal(c.s.Pod, &tree); err != nil {
				t.Fatal(err)
			}
			marked := markObjects(tree["spec"])
			pod := []byte(mustEncode(t, tree))
			raw, violation, err := rawpod.Decode(pod)
			if err != nil || violation != nil {
				t.Fatal(c.s.Name, err, violation)
			}
			after := patched(t, pod, podedit.Operations(raw.Text, raw.Pod, podedit.Apply(c.d.Promise, raw.Pod)))
			found := map[string]bool{}
			findMarks(after["spec"], found)
			for _, mark := range marked {
				if !found[mark] {
					t.Errorf("%s: the future field of %s is gone or moved", c.s.Name, mark)
				}
			}
		}
	})
	t.Run("only allowed paths change", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			for _, op := range podedit.Operations(c.raw.Text, c.raw.Pod, podedit.Apply(c.d.Promise, c.raw.Pod)) {
				if !allowedPaths.MatchString(op.Path) {
					t.Errorf("%s: the patch touches %s", c.s.Name, op.Path)
				}
				if m := regexp.MustCompile(`^/spec/containers/\d+$`); m.MatchString(op.Path) && op.Operation != "remove" {
					t.Errorf("%s: the patch writes a whole container: %s", c.s.Name, op.Path)
				}
			}
		}
	})
}

const futureField = "fieldOfTheFuture"

// markObjects adds a field to every named object in lists of the tree, and returns what it wrote there.
func markObjects(node any) (marks []string) {
	switch n := node.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(n)) {
			marks = append(marks, markObjects(n[k])...)
		}
	case []any:
		for _, e := range n {
			if m, ok := e.(map[string]any); ok {
				if name, ok := m["name"].(string); ok && !strings.HasPrefix(name, "gpuslice-") && !ownName.MatchString(name) {
					m[futureField] = name
					marks = append(marks, name)
				}
				marks = append(marks, markObjects(m)...)
			}
		}
	}
	return marks
}

// ownName are the variables that are written anew whole, or removed, so nothing of a future version can stay on them.
var ownName = regexp.MustCompile(`^(GPUSLICE_|CUDA_MPS_|NVIDIA_GPU_MEMORY_|NVIDIA_IMEX_)`)

func findMarks(node any, found map[string]bool) {
	switch n := node.(type) {
	case map[string]any:
		if mark, ok := n[futureField].(string); ok && mark == n["name"] {
			found[mark] = true
		}
		for _, v := range n {
			findMarks(v, found)
		}
	case []any:
		for _, e := range n {
			findMarks(e, found)
		}
	}
}

// allowedPaths are the only places that a patch may touch.
var allowedPaths = regexp.MustCompile(`^(` + strings.Join([]string{
	`/metadata/annotations(/(gpuslice\.dev~1(promise|planned|observed|summary)|nvidia\.cdi\.k8s\.io~1container\.gpuslice-guard))?`,
	`/metadata/labels(/gpuslice\.dev~1tier)?`,
	`/spec/(init)?[cC]ontainers/\d+/resources((/(limits|requests))(/[a-z.]+~1[a-zA-Z0-9.-]+)?|/claims(/\d+)?)?`,
	`/spec/resourceClaims(/\d+(/resourceClaim(Template)?Name)?)?`,
	`/spec/(init)?[cC]ontainers/\d+/(env|volumeMounts)(/\d+(/value|/valueFrom)?)?`,
	`/spec/(init)?[cC]ontainers/\d+/(args|command)(/\d+)?`,
	`/spec/initContainers(/\d+)?`,
	`/spec/containers/\d+`,
	`/spec/volumes(/\d+)?`,
	`/spec/affinity(/nodeAffinity(/requiredDuringSchedulingIgnoredDuringExecution(/nodeSelectorTerms(/\d+(/matchExpressions(/\d+)?)?)?)?)?)?`,
	`/spec/tolerations(/\d+)?`,
	`/spec/(shareProcessNamespace|priorityClassName|priority|preemptionPolicy|schedulerName|runtimeClassName|imagePullSecrets|hostIPC)(/\d+)?`,
}, "|") + `)$`)

// TestScenariosOfKinds: every strategy, spelling and framework has a scenario.
func TestScenariosOfKinds(t *testing.T) {
	t.Parallel()
	text := ""
	for _, c := range created(t) {
		if c.d.Promise != nil {
			text += fmt.Sprintf(" strategy:%s", c.d.Promise.Strategy)
			for _, pc := range c.d.Planned.Containers {
				text += " framework:" + pc.Framework + " "
			}
		}
		text += string(c.s.Policy) + c.d.Message()
	}
	for _, s := range strategies.All() {
		if !strings.Contains(text, " strategy:"+string(s.Name)) {
			t.Errorf("no scenario comes out under the strategy %s", s.Name)
		}
	}
	for _, s := range spellings.All() {
		if !strings.Contains(text, s.Name) {
			t.Errorf("no scenario uses the spelling %s", s.Name)
		}
	}
	for _, name := range frameworks.Names() {
		if !strings.Contains(text, " framework:"+name+" ") {
			t.Errorf("no scenario recognises the framework %s", name)
		}
	}
}

// TestScenariosOfTampering: every tamper rule has a scenario that breaks it alone.
func TestScenariosOfTampering(t *testing.T) {
	t.Parallel()
	alone := map[string]bool{}
	for _, c := range created(t) {
		if len(c.d.Violations) == 1 && c.d.Violations[0].Rule == api.RuleTamper {
			alone[c.d.Violations[0].Reason] = true
		}
	}
	for _, r := range rules.All {
		if !alone[r.Reason] {
			t.Errorf("no scenario is denied for %s alone", r.Reason)
		}
		delete(alone, r.Reason)
	}
	if len(alone) > 0 {
		t.Errorf("denied for what is no rule of the list: %v", alone)
	}
}

func mustEncode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMountVolumes: every mount has its volume.
func TestMountVolumes(t *testing.T) {
	t.Parallel()
	for _, c := range created(t) {
		if c.d.Outcome != policies.Mutated {
			continue
		}
		spec := podedit.Apply(c.d.Promise, c.in.Pod).Spec
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			for _, m := range container.VolumeMounts {
				if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
					t.Errorf("%s: container %s mounts %s, which the pod has not", c.s.Name, container.Name, m.Name)
				}
			}
		}
	}
}

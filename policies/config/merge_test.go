package config

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
)

func TestPolicyFields(t *testing.T) {
	t.Parallel()
	t.Run("every field has a merge rule", func(t *testing.T) {
		t.Parallel()
		policy := reflect.TypeFor[Policy]()
		var fields, rows []string
		for i := range policy.NumField() {
			fields = append(fields, policy.Field(i).Name)
		}
		for _, row := range mergeTable() {
			rows = append(rows, row.field)
			if (row.merge == nil) != (row.rule == mergeIdentity) {
				t.Errorf("%s: rule %q, and a function: %v", row.field, row.rule, row.merge != nil)
			}
		}
		if diff := cmp.Diff(fields, rows); diff != "" {
			t.Errorf("fields of Policy and rows of the table differ (-fields +rows):\n%s", diff)
		}
	})
	// The table in README.md is compared with the one that is followed.
	t.Run("the README has the rule of every field", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile("../README.md")
		if err != nil {
			t.Fatal(err)
		}
		fields, told := map[mergeRule][]string{}, map[string]string{}
		for _, row := range mergeTable() {
			if row.rule != mergeIdentity {
				fields[row.rule] = append(fields[row.rule], "`"+documentName(row.field)+"`")
			}
		}
		for line := range strings.Lines(string(text)) {
			if cells := strings.Split(line, "|"); len(cells) == 5 {
				told[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
			}
		}
		for rule, want := range fields {
			if got := told[string(rule)]; got != strings.Join(want, ", ") {
				t.Errorf("README.md says of the rule %q: %s\nwant: %s", rule, got, strings.Join(want, ", "))
			}
		}
	})
	// A field that parsing or validation forgets: a document with a nonsense value in it must be denied at that very
	// field.
	t.Run("every field is read from a document", func(t *testing.T) {
		t.Parallel()
		for i := range reflect.TypeFor[Policy]().NumField() {
			f := reflect.TypeFor[Policy]().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			value := `"\u0000 no"`
			if f.Type == reflect.TypeFor[bool]() || f.Type.Kind() == reflect.Struct || f.Type.Kind() == reflect.Map {
				value = "7"
			}
			doc := fmt.Sprintf("%s: %s\n", name, value)
			if name != "apiVersion" {
				doc = head + doc
			}
			_, problems := Parse("sys/x", []byte(doc))
			if len(problems) != 1 || problems[0].Field != name {
				t.Errorf("%s: %v", name, problems)
			}
		}
	})
}

// wholePolicy has something in every field that a document can fill.
func wholePolicy(t *testing.T) *Policy {
	t.Helper()
	p := policyOf(t, `
mode: opt-in
enforcementMode: warn
strategies: [mps, time-slicing]
defaultSlice: {memory: 8Gi, memoryLimit: 12Gi, compute: 50}
classes: {small: {memory: 4Gi}, part: {fraction: 0.5}}
limits: {perContainer: {memory: 16Gi}, perPod: {memory: 32Gi, gpus: 2}}
accept: [fractional-quantity]
minimumEnforcement: guard
frameworks: {vllm: {arguments: deny}}
contextAllowance: 1Gi
env: [{name: A, value: authority}]
`)
	return p
}

// policyOf reads a document and fills in no defaults.
func policyOf(t *testing.T, text string) *Policy {
	t.Helper()
	root, problem := document.Read([]byte(text), accepted)
	if problem != nil {
		t.Fatal(problem)
	}
	p := &Policy{}
	if problems := document.Decode(root, p); len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

func TestTighten(t *testing.T) {
	t.Parallel()
	t.Run("a tenant's document only tightens", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			name, tenant string
			want         string // the changed fields, as a document
			clamped      []string
		}{
			{"one that says nothing changes nothing", "{}", "{}", nil},
			{"a stricter mode", "{mode: transparent, enforcementMode: enforce}", "{mode: transparent, enforcementMode: enforce}", nil},
			{"a laxer mode", "{mode: off, enforcementMode: audit}", "{}",
				[]string{"mode: off is laxer than opt-in", "enforcementMode: audit is laxer than warn"}},
			{"fewer strategies, in an order of its own", "{strategies: [time-slicing, exclusive, mps]}", "{strategies: [time-slicing, mps]}",
				[]string{"strategies[1]: exclusive is not among mps, time-slicing"}},
			{"only strategies that it may not use", "{strategies: [exclusive]}", "{}",
				[]string{"strategies[0]: exclusive is not among mps, time-slicing"}},
			{"a smaller default", "{defaultSlice: {memory: 4Gi}}", "{defaultSlice: {memory: 4Gi, memoryLimit: 12Gi, compute: 50}}", nil},
			{"a larger default", "{defaultSlice: {memory: 9Gi}}", "{}", []string{"defaultSlice: it is larger than the authority's"}},
			{"a larger burst and more compute", "{defaultSlice: {memory: 8Gi, memoryLimit: 13Gi, compute: 60}}", "{}",
				[]string{"defaultSlice.memoryLimit: 13Gi is more than the authority lets it reach", "defaultSlice.compute: 60 is more than 50"}},
			{"a default of another kind", "{defaultSlice: {fraction: '0.1'}}", "{}",
				[]string{"defaultSlice: it is not of the same kind as the authority's, so that none is known to be smaller"}},
			{"a smaller class", "{classes: {small: {memory: 2Gi}, part: {fraction: '0.25'}}}",
				"{classes: {small: {memory: 2Gi}, part: {fraction: '0.25'}}}", nil},
			{"a burst where there is none", "{classes: {small: {memory: 2Gi, memoryLimit: 3Gi}}}",
				"{classes: {small: {memory: 2Gi}, part: {fraction: '0.5'}}}",
				[]string{"classes[small].memoryLimit: 3Gi is more than the authority lets it reach"}},
			{"a larger part", "{classes: {part: {fraction: '0.75'}}}", "{}", []string{"classes[part]: it is larger than the authority's"}},
			{"a class of its own", "{classes: {huge: {memory: 1Gi}}}", "{}", []string{"classes[huge]: the authority has no such class"}},
			{"lower limits, and one where there was none", "{limits: {perContainer: {memory: 8Gi, slices: 1}}}",
				"{limits: {perContainer: {memory: 8Gi, slices: 1}, perPod: {memory: 32Gi, gpus: 2}}}", nil},
			{"higher limits", "{limits: {perPod: {memory: 64Gi, gpus: 1}}}",
				"{limits: {perContainer: {memory: 16Gi}, perPod: {memory: 32Gi, gpus: 1}}}", []string{"limits.perPod.memory: 64Gi is more than 32Gi"}},
			{"a stronger minimum", "{minimumEnforcement: driver}", "{minimumEnforcement: driver}", nil},
			{"a weaker minimum", "{minimumEnforcement: none}", "{}", []string{"minimumEnforcement: none is laxer than guard"}},
			{"its own framework's version", "{defaultFramework: pytorch, frameworks: {pytorch: {version: '2.4'}}}",
				"{defaultFramework: pytorch, frameworks: {vllm: {arguments: deny}, pytorch: {version: '2.4'}}}", nil},
			{"a profile switched off, and arguments let pass", "{frameworks: {vllm: {enabled: false, arguments: warn}}}", "{}", []string{
				"frameworks[vllm].enabled: a tenant's own document switches no profile off", "frameworks[vllm].arguments: warn is laxer than deny",
			}},
			{"a shim switched on", "{frameworks: {pytorch: {shim: on}}}", "{frameworks: {vllm: {arguments: deny}, pytorch: {shim: on}}}", nil},
			{"arguments rewritten where they are denied", "{frameworks: {vllm: {arguments: rewrite}}}", "{}",
				[]string{"frameworks[vllm].arguments: rewrite is laxer than deny"}},
			{"arguments rewritten where the policy warns about them", "{frameworks: {sglang: {arguments: rewrite}}}",
				"{frameworks: {sglang: {arguments: rewrite}, vllm: {arguments: deny}}}", nil},
			{"more set aside", "{contextAllowance: 2Gi}", "{contextAllowance: 2Gi}", nil},
			{"less set aside", "{contextAllowance: 1Mi}", "{}", []string{"contextAllowance: 1Mi is less than what is set aside already"}},
			{"variables of its own", "{env: [{name: A, value: x}, {name: B, value: y}]}",
				"{env: [{name: A, value: authority}, {name: B, value: y}]}", []string{"env[0]: A is set already"}},
			{"what is the cluster's", "{optOut: true, namespaces: {names: [x]}, pools: {complete: true}, mps: {pipeDirectory: /x}, guard: {dryRun: true}, pod: {schedulerName: x}, templates: off}", "{}", []string{
				"namespaces: not for a tenant's own document", "optOut: not for a tenant's own document",
				"pools: not for a tenant's own document", "mps: not for a tenant's own document",
				"guard: not for a tenant's own document", "pod: not for a tenant's own document", "templates: not for a tenant's own document"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				authority, tenant := wholePolicy(t), policyOf(t, c.tenant)
				got, clamped := tighten(authority, tenant)
				want := wholePolicy(t)
				changed := policyOf(t, c.want)
				for i := range reflect.TypeFor[Policy]().NumField() {
					if v := reflect.ValueOf(changed).Elem().Field(i); !v.IsZero() {
						reflect.ValueOf(want).Elem().Field(i).Set(v)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				var texts []string
				for _, c := range clamped {
					texts = append(texts, c.String())
				}
				if diff := cmp.Diff(c.clamped, texts); diff != "" {
					t.Errorf("clamped (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(wholePolicy(t), authority); diff != "" {
					t.Errorf("the authority's policy was changed:\n%s", diff)
				}
				if again, _ := tighten(got, tenant); !cmp.Equal(got, again) {
					t.Errorf("tightened twice it is not the same:\n%s", cmp.Diff(got, again))
				}
			})
		}
	})
	t.Run("no tenant switches a shim off", func(t *testing.T) {
		t.Parallel()
		got, clamped := tighten(policyOf(t, "frameworks: {pytorch: {shim: on}}"), policyOf(t, "frameworks: {pytorch: {shim: off}}"))
		if got.Frameworks["pytorch"].Shim != shim.On || len(clamped) != 1 ||
			clamped[0].String() != "frameworks[pytorch].shim: off is laxer than on" {
			t.Errorf("it is %q, and %v is said", got.Frameworks["pytorch"].Shim, clamped)
		}
		got, clamped = tighten(policyOf(t, "frameworks: {pytorch: {shim: env-files}}"), policyOf(t, "frameworks: {pytorch: {shim: on}}"))
		if got.Frameworks["pytorch"].Shim != shim.EnvFiles || len(clamped) != 1 {
			t.Errorf("it is %q, and %v is said", got.Frameworks["pytorch"].Shim, clamped)
		}
	})
	t.Run("without a tenant's document the authority's holds", func(t *testing.T) {
		t.Parallel()
		authority := wholePolicy(t)
		if got, clamped := tighten(authority, nil); got != authority || clamped != nil {
			t.Errorf("got %v, %v", got, clamped)
		}
	})
	t.Run("a duration of zero is no duration", func(t *testing.T) {
		t.Parallel()
		p := &Policy{Guard: guardSpec{Grace: metav1.Duration{}}}
		p.setDefaults()
		if p.Guard.Grace.Duration != defaultGuardGrace {
			t.Errorf("got %v", p.Guard.Grace)
		}
	})
}

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
)

func TestParseTenant(t *testing.T) {
	t.Parallel()
	t.Run("only the fields of the document are set", func(t *testing.T) {
		t.Parallel()
		p, problems := ParseTenant("team-a/gpuslice-policy", []byte(head+"defaultSlice: {class: small}\n"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		want := &Policy{APIVersion: APIVersion, Name: "team-a/gpuslice-policy", DefaultSlice: &SliceSpec{Class: "small"}}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("a bad document is denied", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ name, document, want string }{
			{"an unknown key", head + "qota: {}\n", "qota: Invalid value"},
			{"an unknown mode", head + "mode: on\n", `mode: Unsupported value: "on"`},
			{"no strategy", head + "strategies: []\n", "strategies: Required value"},
			{"two sizes", head + "defaultSlice: {class: small, memory: 1Gi}\n", "defaultSlice: Required value"},
			{"no version", "mode: transparent\n", "apiVersion: Required value"},
			{"more than the bound", head + strings.Repeat("# x\n", 4096),
				"policy.yaml: Invalid value: a tenant's own document has at most 16384 bytes"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				p, problems := ParseTenant("team-a/gpuslice-policy", []byte(c.document))
				if p != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), c.want) {
					t.Errorf("policy %v, problems %v", p, problems)
				}
			})
		}
	})
}

func TestTenantPolicy(t *testing.T) {
	t.Parallel()
	t.Run("names both documents", func(t *testing.T) {
		t.Parallel()
		got, _ := tighten(&Policy{Name: "sys/a"}, &Policy{Name: "team-a/gpuslice-policy"})
		if got.Name != "sys/a tightened by team-a/gpuslice-policy" {
			t.Errorf("it is called %q", got.Name)
		}
	})
	t.Run("what is off stays off", func(t *testing.T) {
		t.Parallel()
		got, clamped := tighten(&Policy{Mode: modes.Off}, &Policy{Mode: modes.Transparent})
		if got.Mode != modes.Off || len(clamped) != 1 {
			t.Errorf("mode %s, clamped %v", got.Mode, clamped)
		}
		if _, clamped := tighten(&Policy{Mode: modes.Off}, &Policy{Mode: modes.Off}); len(clamped) > 0 {
			t.Errorf("clamped %v", clamped)
		}
	})
}

func TestTenantConfigMap(t *testing.T) {
	t.Parallel()
	t.Run("is read with every problem", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			name string
			m    corev1.ConfigMap
			want []string
		}{
			{"a good one", corev1.ConfigMap{Data: map[string]string{api.PolicyKey: head}}, nil},
			{"no key", corev1.ConfigMap{Data: map[string]string{"policy.yml": head}}, []string{"data: the key policy.yaml is missing"}},
			{"a key too many, and a problem in each of two fields", corev1.ConfigMap{
				Data: map[string]string{api.PolicyKey: head + "mode: on\ntemplates: never\n"}, BinaryData: map[string][]byte{"x": nil}}, []string{
				"data: there are keys beside policy.yaml, and nothing reads them",
				`data[policy.yaml]: mode: Unsupported value: "on": supported values: "off", "opt-in", "transparent"`,
				`data[policy.yaml]: templates: Unsupported value: "never": supported values: "off", "check", "rewrite"`}},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.m.ObjectMeta = metav1.ObjectMeta{Namespace: "sys", Name: "a"}
				p, problems := ParseConfigMap(&c.m, Parse)
				var got []string
				for _, err := range problems {
					got = append(got, err.Error())
				}
				if diff := cmp.Diff(c.want, got); diff != "" || (p != nil) != (c.want == nil) || p != nil && p.Name != "sys/a" {
					t.Errorf("policy %v (-want +got)\n%s", p, diff)
				}
			})
		}
	})
}

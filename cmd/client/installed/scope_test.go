package installed

import (
	"bytes"
	"io/fs"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
)

func TestScope(t *testing.T) {
	t.Parallel()
	configuration := func(label string, selector *metav1.LabelSelector) []*admissionv1.MutatingWebhookConfiguration {
		return []*admissionv1.MutatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "any", Labels: map[string]string{"app.kubernetes.io/name": label}},
			Webhooks:   []admissionv1.MutatingWebhook{{Name: "other"}, {Name: webhookOfPods, NamespaceSelector: selector}},
		}}
	}
	labelled := &metav1.LabelSelector{MatchLabels: map[string]string{"gpus": "yes"}}
	for _, c := range []struct {
		name           string
		configurations []*admissionv1.MutatingWebhookConfiguration
		want           []string
	}{
		{"nothing installed", nil, []string{"kube-team", "team-a", "team-b"}},
		{"a selector of its own", configuration("gpuslice", labelled), []string{"kube-system", "team-b"}},
		{"everything", configuration("gpuslice", &metav1.LabelSelector{}),
			[]string{"gpu-operator", "kube-system", "kube-team", "team-a", "team-b"}},
		{"somebody else's", configuration("other", labelled), []string{"kube-team", "team-a", "team-b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			scope := ScopeOf(c.configurations, api.SystemNamespace)
			var got []string
			for _, name := range []string{"gpu-operator", api.SystemNamespace, "kube-system", "kube-team", "team-a", "team-b"} {
				var labels map[string]string
				if name == "team-b" || name == "kube-system" || name == api.SystemNamespace {
					labels = map[string]string{"gpus": "yes"}
				}
				if scope.Includes(name, labels) {
					got = append(got, name)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("in scope: %q, want %q", got, c.want)
			}
		})
	}
}

// TestDefaultExclusions compares them with the manifest.
func TestDefaultExclusions(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(deploy.Files, "50-webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c admissionv1.MutatingWebhookConfiguration
	if err := yaml.Unmarshal(firstDocument(text), &c); err != nil {
		t.Fatal(err)
	}
	want := append(defaultExclusions(), api.SystemNamespace)
	have := c.Webhooks[0].NamespaceSelector.MatchExpressions[0].Values
	slices.Sort(want)
	slices.Sort(have)
	if c.Webhooks[0].Name != webhookOfPods || !slices.Equal(want, have) {
		t.Errorf("%s of the manifest leaves out %q, the default %q", c.Webhooks[0].Name, have, want)
	}
}

func firstDocument(text []byte) []byte {
	first, _, _ := bytes.Cut(text, []byte("\n---\n"))
	return first
}

package extendednames

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestWriter(t *testing.T) {
	t.Parallel()
	entry := func(name string) admissionv1.ValidatingWebhook { return admissionv1.ValidatingWebhook{Name: name} }
	client := fake.NewClientset(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gpuslice",
		ResourceVersion: "1"},
		Webhooks: []admissionv1.ValidatingWebhook{entry("pods.gpuslice.dev"),
			entry("extended-resources.gpuslice.dev"), entry("extended-resources-open.gpuslice.dev")}})
	patches := 0
	client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { patches++; return false, nil, nil })
	var names []string
	var unknown error
	w := New(client, []string{"gpuslice", "absent"}, func() ([]string, error) { return names, unknown }, logr.Discard())
	for _, step := range []struct {
		what     string
		names    []string
		unknown  error
		patches  int
		mentions string
	}{
		{"without names nothing is written", nil, nil, 0, ""},
		{"names are written", []string{"example.com/gpu"}, nil, 1, `name in ["example.com/gpu"]`},
		{"once", []string{"example.com/gpu"}, nil, 1, `name in ["example.com/gpu"]`},
		{"names that are not known yet take none away", nil, errors.New("not read"), 1, `name in ["example.com/gpu"]`},
		{"another name is added", []string{"example.com/gpu", "example.com/mig"}, nil, 2, `name in ["example.com/gpu", "example.com/mig"]`},
		{"no name is left", nil, nil, 3, ""},
	} {
		names, unknown = step.names, step.unknown
		w.Sync(t.Context())
		live, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "gpuslice", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(live.Webhooks[0].Rules)+len(live.Webhooks[0].MatchConditions) > 0 {
			t.Errorf("%s: another entry is changed", step.what)
		}
		for _, e := range live.Webhooks[1:] {
			if step.mentions == "" && len(e.Rules) > 0 {
				t.Errorf("%s: %s matches %v", step.what, e.Name, e.Rules)
			}
			if step.mentions != "" &&
				(len(e.Rules) != 1 || len(e.MatchConditions) != 1 || !strings.Contains(e.MatchConditions[0].Expression, step.mentions)) {
				t.Errorf("%s: %s matches %v where %v", step.what, e.Name, e.Rules, e.MatchConditions)
			}
		}
		if patches != step.patches {
			t.Errorf("%s: %d patches, want %d", step.what, patches, step.patches)
		}
	}
}

func TestWriterWithoutTheRight(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gpuslice"},
		Webhooks: []admissionv1.ValidatingWebhook{{Name: "extended-resources.gpuslice.dev"}}})
	client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") })
	var lines []string
	w := New(client, []string{"gpuslice"}, func() ([]string, error) { return []string{"example.com/gpu"}, nil },
		funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	w.Sync(t.Context())
	w.Sync(t.Context())
	if len(lines) != 1 || !strings.Contains(lines[0], "are not stopped at admission") || !strings.Contains(lines[0], "example.com/gpu") {
		t.Errorf("want one line that names what is not stopped, got %q", lines)
	}
}

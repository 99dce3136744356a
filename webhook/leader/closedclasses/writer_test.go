package closedclasses

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/policies/api"
)

func TestWriter(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"team": "x"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
	denied := true
	client.PrependReactor("patch", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return denied && action.(clienttesting.PatchAction).GetName() == "a", nil, errors.New("denied")
	})
	var differ map[string]string
	var unknown error
	errs := 0
	w := New(client, func() (map[string]string, error) { return differ, unknown }, funcr.New(func(prefix, args string) {
		if args[:7] != `"level"` {
			errs++
		}
	}, funcr.Options{}))
	for _, step := range []struct {
		what    string
		differ  map[string]string
		unknown error
		denied  bool
		want    string // of a and b
		errs    int
	}{
		{"one fails, the other is written", map[string]string{"a": "x,y", "b": "x"}, nil, true, `"" "x"`, 1},
		{"the same failure is logged once", map[string]string{"a": "x,y"}, nil, true, `"" "x"`, 1},
		{"a failed one is written again", map[string]string{"a": "x,y"}, nil, false, `"x,y" "x"`, 1},
		{"nothing is written while namespaces are unknown", map[string]string{"a": ""}, errors.New("not read"), false, `"x,y" "x"`, 1},
		{"one that is gone is no failure", map[string]string{"c": "x", "b": ""}, nil, false, `"x,y" ""`, 1},
	} {
		differ, unknown, denied = step.differ, step.unknown, step.denied
		w.Sync(t.Context())
		got := map[string]string{}
		for _, name := range []string{"a", "b"} {
			ns, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got[name] = ns.Annotations[api.AnnotationClosedClasses]; name == "a" && ns.Annotations["team"] != "x" {
				t.Errorf("%s: annotations are %v", step.what, ns.Annotations)
			}
		}
		if text := fmt.Sprintf("%q %q", got["a"], got["b"]); text != step.want || errs != step.errs {
			t.Errorf("%s: %s, %d errors; want %s, %d", step.what, text, errs, step.want, step.errs)
		}
	}
}

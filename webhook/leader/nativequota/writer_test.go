package nativequota

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/governed"
)

// governedNamespace is team-a under a policy that has so many slices written.
func governedNamespace(slices int64) governed.Namespace {
	return governed.Namespace{Name: "team-a", Pools: []pools.Pool{{Name: "l4", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing"}},
		Policy: &config.Policy{Name: "gpuslice-system/a", Mode: "opt-in", EnforcementMode: api.EnforceFull,
			Strategies: []api.StrategyName{"time-slicing"}, Quota: config.QuotaSpec{Native: "write", Slices: &slices}}}
}

// named is a ResourceQuota with the name of gpuslice's own, and with its label if managed.
func named(hard string, managed bool) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: accounting.WrittenQuotaName,
		UID: "u-1", Labels: map[string]string{"team": "a"}},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpu.shared": resource.MustParse(hard)}}}
	if managed {
		q.Labels[accounting.LabelQuota] = "true"
	}
	return q
}

func TestWriter(t *testing.T) {
	broken, ambiguous := governedNamespace(4), governedNamespace(4)
	broken.Policy = nil
	ambiguous.Pools = append(ambiguous.Pools, pools.Pool{Name: "odd", Resource: api.ResourceGPU, Strategy: "time-slicing"})
	for name, c := range map[string]struct {
		have     []runtime.Object
		governed []governed.Namespace
		err      error
		hard     string // of what is there in the end; "": nothing
		writes   []string
		event    bool // whether an Event is written
	}{
		"wanted and not there": {nil, []governed.Namespace{governedNamespace(4)}, nil, "4", []string{"create"}, false},
		"there as it should be": {[]runtime.Object{quota(governedNamespace(4),
			accounting.WrittenQuota{Resource: "nvidia.com/gpu.shared", Hard: 4})},
			[]governed.Namespace{governedNamespace(4)}, nil, "4", nil, false},
		"there with another limit": {[]runtime.Object{named("9", true)},
			[]governed.Namespace{governedNamespace(4)}, nil, "4", []string{"update"}, false},
		"there and no longer wanted": {[]runtime.Object{named("9", true)}, nil, nil, "", []string{"delete"}, false},
		"it cannot say it any more": {[]runtime.Object{named("9", true)},
			[]governed.Namespace{ambiguous}, nil, "", []string{"delete"}, false},
		"somebody else's of that name":    {[]runtime.Object{named("9", false)}, []governed.Namespace{governedNamespace(4)}, nil, "9", nil, true},
		"somebody else's, none wanted":    {[]runtime.Object{named("9", false)}, nil, nil, "9", nil, false},
		"a policy that cannot be read":    {[]runtime.Object{named("9", true)}, []governed.Namespace{broken}, nil, "9", nil, false},
		"policies that are not known yet": {[]runtime.Object{named("9", true)}, nil, errors.New("not read yet"), "9", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(c.have...)
				quotas := NewQuotas(client, nil)
				w := &Writer{Client: client, Quotas: quotas, Governed: func() ([]governed.Namespace, error) { return c.governed, c.err },
					Log: logr.Discard()}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 2)
				go func() { quotas.Informer().RunWithContext(ctx); done <- nil }()
				go func() { done <- w.Run(ctx) }()
				time.Sleep(30 * time.Second) // of the test's own clock: several passes, of which the first does it all
				synctest.Wait()
				hard := ""
				if q, err := client.CoreV1().ResourceQuotas("team-a").Get(ctx, accounting.WrittenQuotaName, metav1.GetOptions{}); err == nil {
					amount := q.Spec.Hard["requests.nvidia.com/gpu.shared"]
					hard = amount.String()
					if len(c.have) > 0 && c.writes != nil &&
						(q.Labels["team"] != "a" || q.Labels[accounting.LabelQuota] != "true" || q.Annotations[AnnotationPolicy] == "") {
						t.Errorf("labels %v, annotations %v", q.Labels, q.Annotations)
					}
				}
				var writes []string
				event := false
				for _, action := range client.Actions() {
					switch resource, verb := action.GetResource().Resource, action.GetVerb(); {
					case resource == "events":
						event = true
					case slices.Contains([]string{"create", "update", "delete", "patch"}, verb):
						writes = append(writes, verb)
					}
				}
				writes = slices.Compact(writes) // it may delete again what its cache still shows
				if diff := cmp.Diff(c.writes, writes); diff != "" || hard != c.hard || event != c.event {
					t.Errorf("hard %q, want %q; Event: %t; writes (-want +got)\n%s", hard, c.hard, event, diff)
				}
				cancel()
				if err := errors.Join(<-done, <-done); err != nil {
					t.Error(err)
				}
				synctest.Wait()
			})
		})
	}
}

// TestWriterOfReplicas has another replica lead: what one has reported is not reported again.
func TestWriterOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(named("9", false))
		for range 2 {
			quotas := NewQuotas(client, nil)
			w := &Writer{Client: client, Quotas: quotas,
				Governed: func() ([]governed.Namespace, error) { return []governed.Namespace{governedNamespace(4)}, nil }, Log: logr.Discard()}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 2)
			go func() { quotas.Informer().RunWithContext(ctx); done <- nil }()
			go func() { done <- w.Run(ctx) }()
			time.Sleep(time.Minute)
			synctest.Wait()
			cancel()
			if err := errors.Join(<-done, <-done); err != nil {
				t.Error(err)
			}
		}
		list, err := client.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Reason != ReasonNotWritten || list.Items[0].Count != 1 {
			t.Errorf("%v, events %v", err, list)
		}
	})
}

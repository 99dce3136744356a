package usage

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// TestUsageOnAPIServer: two replicas that count at once, with the webhook's own rights, count each second once. Old days can be
// removed, and no other ConfigMap.
func TestUsageOnAPIServer(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	if _, err := install.Manifests(t.Context(), server.Config, "10-namespace.yaml", "20-rbac.yaml", "25-own-rights.yaml"); err != nil {
		t.Fatal(err)
	}
	config, err := server.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{client: client, now: noon.startOfDay() + dayLength - 500}
	start := w.now
	w.lives = []*life{
		{Key: Key{Namespace: "team-a", Pool: "p"}, uid: "1", from: start - 100, until: start + 1e6, deleted: start + 1e6},
		{Key: Key{Namespace: "team-a", Pool: "p"}, uid: "2", from: start + 300, until: start + 800, deleted: start + 1000},
	}
	leaders := []*session{w.leader(), w.leader()}
	for range 20 {
		for range 50 {
			w.pass(leaders)
		}
		var counting sync.WaitGroup
		for _, s := range leaders {
			counting.Go(func() {
				if err := s.count(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		counting.Wait()
	}
	days, unread, err := Read(t.Context(), client, api.SystemNamespace, start.Time(), w.now.Time())
	var sum Amount
	for _, d := range days {
		sum = sum.plus(d.Lines[0].Held)
		if len(d.Unread) > 0 || len(d.Lines) != 1 {
			t.Errorf("%+v", d)
		}
	}
	if want := int64(1000 - settle + 500); err != nil || len(unread) > 0 || len(days) != 2 || sum.Memory>>10 != want {
		t.Errorf("%d days, counted %d, held was %d: %v %v", len(days), sum.Memory>>10, want, unread, err)
	}

	maps := client.CoreV1().ConfigMaps(api.SystemNamespace)
	for _, name := range []string{nameOf(noon - 500*dayLength), "policies"} {
		if _, err := server.Client.CoreV1().ConfigMaps(api.SystemNamespace).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: "true"}}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := maps.Delete(ctx, "policies", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "the usage and peaks of a day"), nil
	})
	if err != nil {
		t.Fatalf("the webhook may delete any ConfigMap: %v", err)
	}
	leaders[0].KeepDays = 400
	leaders[0].prune(t.Context())
	if left, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: Label + "=true"}); err != nil || len(left.Items) != 3 {
		t.Errorf("%d are left, want two days and one that is none: %v", len(left.Items), err)
	}
}

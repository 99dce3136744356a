package peaks

import (
	"context"
	"strings"
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

// TestRecordOnAPIServer: with the webhook's own rights a leader writes record and advice, another one goes on with both, and no other
// ConfigMap can be written.
func TestRecordOnAPIServer(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	if _, err := install.Manifests(t.Context(), server.Config, "10-namespace.yaml", "20-rbac.yaml", "25-own-rights.yaml"); err != nil {
		t.Fatal(err)
	}
	config, err := server.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	if f.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	f.pod("web", "1")
	f.used["1"] = 2000
	for range 2 { // leaders, over midnight
		s := f.leader()
		for range 10 {
			f.pass(60, s)
			s.writeAndLog(t.Context(), f.now)
		}
	}
	w := f.record().Workloads[container("team-a", "web")]
	if w == nil || memoryOf(w).Hours() != 20 || memoryOf(w).Peak() < 2000 || memoryOf(w).Peak() > 2022 {
		t.Errorf("recorded %+v", w)
	}
	maps := f.client.CoreV1().ConfigMaps(api.SystemNamespace)

	s := f.leader()
	f.now = f.now.Add(40 * 24 * time.Hour)
	f.pass(1, s)
	s.writeAndLog(t.Context(), f.now)
	if left := f.maps(); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gpuslice-peaks-x", Labels: map[string]string{Label: "true"}}}
		_, err := maps.Create(ctx, other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "peaks of a day"), nil
	})
	if err != nil {
		t.Fatalf("the webhook may write any ConfigMap: %v", err)
	}
}

package ledger_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// TestPriorityLevel sends more creates at once than the API server serves, each of which occupies its seat until the ledger
// is written. With the priority level of the manifests the writes have seats of their own; without it they wait for the
// creates that wait for them, which shows that the level is what helps.
func TestPriorityLevel(t *testing.T) {
	for name, level := range map[string]bool{"with a level of our own": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s := cluster.ForTest(t, cluster.Options{Flags: []string{"--max-requests-inflight=100", "--max-mutating-requests-inflight=100"}})
			inversionSite(t, s, level)
			serve(t, s, as(t, s, system, "gpuslice-webhook"), 10_000)
			denied, times := create600(t, as(t, s, "team-a", "default"))
			t.Logf("%d of 600 denied; p50 %v, p99 %v", len(denied), times[len(times)/2], times[len(times)*99/100])
			switch {
			case level && len(denied) > 0:
				t.Errorf("%d denied, such as: %v", len(denied), denied[0])
			case !level && len(denied) == 0:
				t.Error("nothing is denied without the level either: the test proves nothing")
			}
		})
	}
}

// inversionSite makes the namespaces, gives both ServiceAccounts the rights they need, and applies the level.
func inversionSite(t *testing.T, s *cluster.APIServer, level bool) {
	t.Helper()
	ctx := t.Context()
	applier, err := install.NewApplier(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"10-namespace.yaml", "20-rbac.yaml"}
	if level {
		files = append(files, "35-flow.yaml")
	}
	for _, name := range files {
		manifest, err := deploy.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := applier.Apply(ctx, manifest); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Namespace(ctx, "team-a", map[string]string{"quota": "held"}); err != nil {
		t.Fatal(err)
	}
	all := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: system, Name: "gpuslice-webhook"}, {Kind: "ServiceAccount", Namespace: "team-a", Name: "default"}}}
	if _, err := s.Client.RbacV1().ClusterRoleBindings().Create(ctx, all, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// as is a client with a real token of a ServiceAccount: an administrator's calls would be exempt from every limit.
func as(t *testing.T, s *cluster.APIServer, namespace, name string) kubernetes.Interface {
	t.Helper()
	config, err := s.ServiceAccount(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// create600 creates 600 pods, 300 at a time, and returns what was denied and how long each took.
func create600(t *testing.T, client kubernetes.Interface) (denied []error, times []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	places := make(chan struct{}, 300)
	for i := range 600 {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			begin := time.Now()
			_, err := client.CoreV1().Pods("team-a").Create(t.Context(), gpuPod(fmt.Sprintf("pod-%d", i)), metav1.CreateOptions{})
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Since(begin))
			if err != nil {
				denied = append(denied, err)
			}
		})
	}
	running.Wait()
	slices.Sort(times)
	return denied, times
}

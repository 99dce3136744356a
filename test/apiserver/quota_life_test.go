package apiserver

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// slicesIn creates pods of 4Gi in a namespace and tells what the server says.
func slicesIn(t *testing.T, i *install.Installation, namespace string) func(name string, dryRun ...string) error {
	t.Helper()
	return func(name string, dryRun ...string) error {
		_, err := i.Apply.Create(t.Context(), sliceOf(t, name, namespace, "4Gi"), metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

func deleteNow(t *testing.T, i *install.Installation, namespace, name string) {
	t.Helper()
	zero := int64(0)
	if err := i.Server.Client.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
}

// awaitDenial polls with dry runs until one is answered with these words.
func awaitDenial(t *testing.T, i *install.Installation, namespace, words string) {
	t.Helper()
	try := slicesIn(t, i, namespace)
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 90*time.Second, true, func(context.Context) (bool, error) {
		last = try("tried", metav1.DryRunAll)
		return last != nil && strings.Contains(last.Error(), words), nil
	})
	if err != nil {
		t.Errorf("never %q, but: %v", words, last)
	}
}

func TestQuotaOfNamespace(t *testing.T) {
	t.Run("a namespace that is made again starts with its whole quota", func(t *testing.T) {
		i := need(t)
		const ns = "quota-again"
		quotaOf(t, i, ns, "{memory: 8Gi}")
		create := slicesIn(t, i, ns)
		for _, name := range []string{"one", "two"} {
			if err := create(name); err != nil {
				t.Fatal(err)
			}
		}
		if err := create("three"); !apierrors.IsForbidden(err) {
			t.Fatalf("a third: %v", err)
		}
		namespaces := i.Server.Client.CoreV1().Namespaces()
		if err := namespaces.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			deleteNow(t, i, ns, name)
		}
		going, err := namespaces.Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		going.Spec.Finalizers = nil // there is no controller that would
		if _, err := namespaces.Finalize(t.Context(), going, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := i.Server.Namespace(t.Context(), ns, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"three", "four"} {
			if err := create(name); err != nil {
				t.Errorf("%s in the namespace made again: %v", name, err)
			}
		}
		if err := create("five"); err == nil || !strings.Contains(err.Error(), "used: memory=8Gi, limited: memory=8Gi") {
			t.Errorf("one too many there: %v", err)
		}
	})
}

// TestQuotaOfStatefulSet: the one before holds its room until it is gone, and not longer. A
// finalizer keeps it, as its containers would that are still ending.
func TestQuotaOfStatefulSet(t *testing.T) {
	t.Run("a pod is followed by one of its name", func(t *testing.T) {
		i := need(t)
		const ns = "quota-stateful"
		quotaOf(t, i, ns, "{memory: 4Gi}")
		pods, deniedBeside := i.Server.Client.CoreV1().Pods(ns), "exceeded quota: quota-stateful, requested: memory=4Gi"
		next := func() error {
			u := sliceOf(t, "web-0", ns, "4Gi")
			u.SetFinalizers([]string{"example.test/ending"})
			_, err := i.Apply.Create(t.Context(), u, metav1.CreateOptions{})
			return err
		}
		for round := range 4 {
			if err := next(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if err := pods.Delete(t.Context(), "web-0", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := next(); err == nil {
				t.Fatalf("round %d: two pods of one name", round)
			}
			if err := slicesIn(t, i, ns)("other"); err == nil || !strings.Contains(err.Error(), deniedBeside) {
				t.Errorf("round %d: beside a pod that is still ending: %v", round, err)
			}
			if _, err := pods.Patch(t.Context(), "web-0", types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestQuotaAfterOutage takes the validating configuration away, and then the webhook too.
func TestQuotaAfterOutage(t *testing.T) {
	t.Run("pods that came during an outage count", func(t *testing.T) {
		i := need(t)
		const ns = "quota-away"
		quotaOf(t, i, ns, "{memory: 4Gi}")
		create := slicesIn(t, i, ns)
		if err := create("before"); err != nil {
			t.Fatal(err)
		}
		configurations := i.Server.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		configuration, err := configurations.Get(t.Context(), "gpuslice", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := configurations.Delete(t.Context(), "gpuslice", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		back := func() error {
			configuration.ResourceVersion, configuration.UID = "", ""
			_, err := configurations.Create(context.Background(), configuration, metav1.CreateOptions{})
			return err
		}
		err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
			func(context.Context) (bool, error) { return create("sliced") == nil, nil })
		if err != nil {
			t.Errorf("the API server goes on asking: %v", err)
		}
		err = i.Down(t.Context(), func() {
			whole := podOf(t, "bare", ns, "spec:\n  containers:\n  - {name: a, image: busybox, resources: {limits: {nvidia.com/gpu.shared: 1}}}\n")
			if _, err := i.Apply.Create(t.Context(), whole, metav1.CreateOptions{}); err != nil {
				t.Errorf("a pod while nothing of ours runs: %v", err)
			}
			if err := back(); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		// Two slices of 4Gi, and one card of 23034Mi that nobody limits.
		awaitDenial(t, i, ns, "used: memory=31226Mi, limited: memory=4Gi")
	})
}

// TestLedgerRebuilt waits for a minute, in which the tests with servers of their own run: of those beside it, none may use the shared one.
func TestLedgerRebuilt(t *testing.T) {
	t.Parallel()
	t.Run("a deleted ledger is rebuilt from the live pods", func(t *testing.T) {
		i := need(t)
		const ns = "quota-lost"
		quotaOf(t, i, ns, "{memory: 8Gi}")
		create := slicesIn(t, i, ns)
		for _, name := range []string{"one", "two"} {
			if err := create(name); err != nil {
				t.Fatal(err)
			}
		}
		ledgers, name := i.Server.Client.CoreV1().ConfigMaps(api.SystemNamespace), ledger.ObjectName(config.QuotaSpec{}.BudgetKey(ns))
		if err := ledgers.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := create("three"); err == nil {
			t.Error("room was found in a ledger that was lost")
		}
		awaitDenial(t, i, ns, "used: memory=8Gi, limited: memory=8Gi")
		deleteNow(t, i, ns, "one")
		if err := create("three"); err != nil {
			t.Errorf("in the place of one that is gone: %v", err)
		}
		if _, err := ledgers.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("the ledger: %v", err)
		}
	})
}

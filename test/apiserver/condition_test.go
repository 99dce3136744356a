package apiserver

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader/nodecondition"
)

// TestNodeCondition renews the Lease of a node as its agent does, and reads the condition that the leader writes with its own rights.
func TestNodeCondition(t *testing.T) {
	i := need(t)
	nodes := nodesOf(t, "l4-timeslicing-renamed")
	if err := i.Nodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	node, leases := nodes[0].Name, i.Server.Client.CoordinationV1().Leases(api.SystemNamespace)
	held, err := leases.Create(t.Context(),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease.Name(node), Labels: lease.Labels()},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &node}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = leases.Delete(context.Background(), held.Name, metav1.DeleteOptions{})
	})
	await := func(what string, r lease.Report, seen func() bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
			held.Annotations, held.Spec.RenewTime = r.Annotations(), &metav1.MicroTime{Time: time.Now()}
			held, err = leases.Update(ctx, held, metav1.UpdateOptions{})
			return err == nil && seen(), err
		})
		if err != nil {
			t.Fatalf("wait for the condition %s: %v", what, err)
		}
	}
	reason := func() (found string) {
		n, err := i.Server.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range n.Status.Conditions {
			if c.Type == nodecondition.Type {
				found = c.Reason
			}
		}
		return found
	}
	await("at first", lease.Report{}, func() bool { return reason() == nodecondition.ReasonEnforcing })
	await("without a pod", lease.Report{NotEnforced: map[string]string{"u-1": "gpu0: it is lost"}},
		func() bool { return reason() == nodecondition.ReasonNotEnforced })
	described, err := i.Server.Kubectl(t.Context(), "describe", "node", node)
	if err != nil || !strings.Contains(described, "gpuslice.dev/Enforcing") || !strings.Contains(described, "gpu0: it is lost") {
		t.Errorf("described as %s: %v", described, err)
	}
	if err := leases.Delete(t.Context(), held.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true,
		func(context.Context) (bool, error) { return reason() == "", nil })
	if err != nil {
		t.Errorf("without a Lease: %s", reason())
	}
}

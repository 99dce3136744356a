package apiserver

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
)

// TestAgentAccount uses a real token of the agent's ServiceAccount that was made for a node.
func TestAgentAccount(t *testing.T) {
	t.Run("speaks for its own node alone", func(t *testing.T) {
		s := without(t, cluster.Options{}, "10-namespace.yaml", "agent/agent.yaml")
		if err := s.Namespace(t.Context(), "team-a", nil); err != nil {
			t.Fatal(err)
		}
		bound, unbound := s.agentOf(t, "gpu-1"), s.agentOf(t, "")
		leaseOf := func(name, holder string) *coordinationv1.Lease {
			return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(30))}}
		}
		hold := func(c kubernetes.Interface, l *coordinationv1.Lease) error {
			_, err := c.CoordinationV1().Leases(api.SystemNamespace).Create(t.Context(), l, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		tell := func(c kubernetes.Interface, change func(*corev1.Event)) error {
			e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "team-a", Name: "train"},
				Reason:         "GPUSliceTerminated", Type: corev1.EventTypeWarning,
				Source: corev1.EventSource{Component: "gpuslice", Host: "gpu-1"}}
			change(e)
			_, err := c.CoreV1().Events(cmp.Or(e.Namespace, "team-a")).Create(t.Context(), e,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		onNode := func(name string) func(*corev1.Event) {
			return func(e *corev1.Event) {
				e.Namespace, e.InvolvedObject = "default", corev1.ObjectReference{Kind: "Node", Name: name}
			}
		}
		others := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "others"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "team-a", Name: "train"},
			Reason:         "Evicted",
			Source:         corev1.EventSource{Component: "kubelet", Host: "gpu-1"}}
		if _, err := s.Client.CoreV1().Events("team-a").Create(t.Context(), others, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		changeEvent := func(c kubernetes.Interface) error {
			change := []byte(`{"reason":"GPUSliceEnforcing","source":{"component":"gpuslice","host":"gpu-1"}}`)
			_, err := c.CoreV1().Events("team-a").Patch(t.Context(), others.Name, types.MergePatchType, change,
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		inForce := func(ctx context.Context) (bool, error) {
			return deniedToAgent(hold(bound, leaseOf("gpuslice-leader", "gpu-1"))), nil
		}
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, inForce); err != nil {
			t.Fatalf("the policy is not in force: %v", err)
		}
		for name, c := range map[string]struct {
			err     error
			allowed bool
		}{
			"its Lease":                                 {hold(bound, leaseOf(lease.Name("gpu-1"), "gpu-1")), true},
			"its Lease for another":                     {hold(bound, leaseOf(lease.Name("gpu-1"), "gpu-2")), false},
			"another's Lease":                           {hold(bound, leaseOf(lease.Name("gpu-2"), "gpu-2")), false},
			"the leader's Lease":                        {hold(bound, leaseOf("gpuslice-leader", "gpu-1")), false},
			"an Event on a pod":                         {tell(bound, func(*corev1.Event) {}), true},
			"an Event of another node":                  {tell(bound, func(e *corev1.Event) { e.Source.Host = "gpu-2" }), false},
			"an Event of another component":             {tell(bound, func(e *corev1.Event) { e.Source.Component = "kubelet" }), false},
			"an Event with another's reason":            {tell(bound, func(e *corev1.Event) { e.Reason = "Evicted" }), false},
			"an Event on its node":                      {tell(bound, onNode("gpu-1")), true},
			"an Event on another node":                  {tell(bound, onNode("gpu-2")), false},
			"an Event that another wrote":               {changeEvent(bound), false},
			"an Event on a Secret":                      {tell(bound, func(e *corev1.Event) { e.InvolvedObject.Kind = "Secret" }), false},
			"a Lease by a token for no node":            {hold(unbound, leaseOf(lease.Name("gpu-1"), "gpu-1")), false},
			"an Event by a token for no node":           {tell(unbound, func(*corev1.Event) {}), false},
			"an Event of another node by its own token": {tell(s.agentOf(t, "gpu-2"), func(e *corev1.Event) { e.Source.Host = "gpu-2" }), true},
		} {
			if c.allowed && c.err != nil || !c.allowed && !deniedToAgent(c.err) {
				t.Errorf("%s: %v", name, c.err)
			}
		}
		if _, err := bound.CoreV1().Pods("team-a").Create(t.Context(), gpuPod("p"), metav1.CreateOptions{}); err == nil ||
			!strings.Contains(err.Error(), "forbidden") {
			t.Errorf("it makes a pod: %v", err)
		}
		if _, err := bound.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=gpu-1"}); err != nil {
			t.Errorf("it lists the pods of its node: %v", err)
		}
	})
}

// TestGuardedResource: what an agent offers is one for each pod.
func TestGuardedResource(t *testing.T) {
	t.Run("is for the check alone, in every namespace", func(t *testing.T) {
		s := without(t, cluster.Options{}, "10-namespace.yaml", "agent/agent.yaml")
		if err := s.Namespace(t.Context(), "team-a", nil); err != nil {
			t.Fatal(err)
		}
		create := func(name, quantity string, init bool) error {
			asked := corev1.ResourceList{limits.GuardedResource: resource.MustParse(quantity)}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
			c := corev1.Container{Name: name, Image: "a", Resources: corev1.ResourceRequirements{Limits: asked}}
			if init {
				p.Spec.InitContainers = []corev1.Container{c}
			} else {
				p.Spec.Containers = append(p.Spec.Containers, c)
			}
			_, err := s.Client.CoreV1().Pods("team-a").Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		denied := func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-guarded'")
		}
		inForce := func(context.Context) (bool, error) { return denied(create("mine", "1", false)), nil }
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, inForce); err != nil {
			t.Fatalf("the policy is not in force: %v", err)
		}
		for _, c := range []struct {
			name, quantity string
			init, denied   bool
		}{{"mine", "1", true, true}, {"gpuslice-check", "1024", true, true}, {"gpuslice-check", "1", true, false}} {
			err := create(c.name, c.quantity, c.init)
			if denied(err) != c.denied || !c.denied && err != nil {
				t.Errorf("%s of %s: %v", c.quantity, c.name, err)
			}
			if c.denied && err != nil {
				abuse.Report(t, abuse.Attempt{Threat: "A9", Attack: "take what an agent offers to guarded pods, " + c.quantity + " in " + c.name,
					Outcome: abuse.Denied, Words: err.Error()})
			}
		}
	})
}

func deniedToAgent(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-agent'")
}

// agentOf returns a client with a token of the agent's for a node; "": for none.
func (s *bare) agentOf(t *testing.T, nodeName string) kubernetes.Interface {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	if nodeName != "" {
		n, err := s.Client.CoreV1().Nodes().Create(t.Context(),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
	}
	got, err := s.Client.CoreV1().ServiceAccounts(api.SystemNamespace).CreateToken(t.Context(),
		"gpuslice-agent", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.Config.Host, BearerToken: got.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.Config.CAFile}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestStrictAgent: a pod whose node's agent enforces has the check alone.
func TestStrictAgent(t *testing.T) {
	t.Run("a pod of the agent's is complete with the check", func(t *testing.T) {
		s := strictly(t)
		create := func(name string, change func(*corev1.Pod)) error {
			pod := slicedPod(t, scenario(t, "guard-by-the-agent"), name)
			change(pod)
			_, err := s.Client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		if err := create("whole", func(*corev1.Pod) {}); err != nil {
			t.Error(err)
		}
		wantDenied(t, create("bare", func(p *corev1.Pod) { p.Spec.InitContainers = nil }), "the pod's promise has a guard, and the pod lacks it")
	})
}

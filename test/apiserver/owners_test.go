package apiserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/webhook/events"
)

// TestDenialOwners has pods denied whose author made their owners up, and then one of a real ReplicaSet: Events are written in
// order, so that none about the others comes any more.
func TestDenialOwners(t *testing.T) {
	a := attacker(t, "", nil)
	set, err := a.client.AppsV1().ReplicaSets(a.namespace).Create(t.Context(), replicaSet(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner := func(apiVersion, kind, name, uid string) string {
		return slice("",
			fmt.Sprintf("  ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]\n", apiVersion, kind, name, uid),
			"    securityContext: {privileged: true}\n")
	}
	for i, manifest := range []string{
		owner("v1", "Node", "l4-1", "l4-1"),
		owner("apps/v1", "ReplicaSet", set.Name, "another-uid"),
		owner("apps/v1", "Deployment", "no-such", "another-uid"),
		owner("made.up/v1", "Job", "train", "another-uid"),
		owner("apps/v1", "ReplicaSet", set.Name, string(set.UID)),
	} {
		a.denied(fmt.Sprintf("of-%d", i), manifest, "a privileged container in a slice")
	}
	var found []corev1.Event
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := a.i.Server.Client.CoreV1().Events(a.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=GPUSliceDenied"})
		found = list.Items
		return len(found) > 0, err
	})
	if err != nil || len(found) != 1 || found[0].InvolvedObject.UID != set.UID {
		t.Errorf("want one Event, on the ReplicaSet: %v, %+v", err, found)
	}
	another := awaitAnotherReplica(t, a, set.Name, string(set.UID))
	if len(another) != 1 || another[0].Name != found[0].Name || another[0].Message != "gpuslice denied a pod: no room" {
		t.Errorf("want the same Event, counted once more: %+v", another)
	}
	abuse.Report(t, abuse.Attempt{Threat: "A26", Attack: "denied pods whose controller is made up: a Node, another's ReplicaSet",
		Outcome: abuse.Contained, Words: "no Event"})
}

// replicaSet is one without pods.
func replicaSet() *appsv1.ReplicaSet {
	labels := map[string]string{"app": "real"}
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "real"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}}}
}

// awaitAnotherReplica has another replica, with the webhook's rights, report a pod of the ReplicaSet, and returns the Events about
// denials once one is counted twice.
func awaitAnotherReplica(t *testing.T, a *tenant, name, uid string) (found []corev1.Event) {
	t.Helper()
	config, err := a.i.Server.ServiceAccount(t.Context(), "gpuslice-system", "gpuslice-webhook")
	if err != nil {
		t.Fatal(err)
	}
	replica, err := events.NewDenials(kubernetes.NewForConfigOrDie(config), prometheus.NewRegistry(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- replica.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	replica.Denied(&metav1.ObjectMeta{Namespace: a.namespace, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(uid), Controller: new(true)}}}, "no room")
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := a.i.Server.Client.CoreV1().Events(a.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=GPUSliceDenied"})
		found = list.Items
		return len(found) > 0 && found[0].Count == 2, err
	})
	if err != nil {
		t.Errorf("no Event is counted: %v, %+v", err, found)
	}
	return found
}

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// ofKyverno is what Kyverno's chart would make of what its admission controller looks for. The Deployment's one replica is the
// process that runs here.
const ofKyverno = `
{apiVersion: v1, kind: Namespace, metadata: {name: kyverno}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kyverno, namespace: kyverno}, data: {resourceFilters: ""}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kyverno-metrics, namespace: kyverno}}
---
{apiVersion: v1, kind: Service, metadata: {name: kyverno-svc, namespace: kyverno}, spec: {ports: [{port: 443}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kyverno, namespace: kyverno}
spec:
  replicas: 1
  selector: {matchLabels: {app: kyverno}}
  template:
    metadata: {labels: {app: kyverno}}
    spec: {containers: [{name: kyverno, image: example.test/kyverno}]}
`

// slicedByKyverno gives the pods of a namespace by Kyverno what registerExpression gives them by the API server.
const slicedByKyverno = `
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: slices}
spec:
  autogen: {podControllers: {controllers: []}}
  evaluation: {background: {enabled: false}}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: %q}
`

// serverWithKyverno starts an API server that can run Kyverno.
func serverWithKyverno(t *testing.T) *cluster.APIServer {
	t.Helper()
	cluster.Need(t)
	bin, err := cluster.Build(t.Context(), os.Stderr, append(cluster.ControlPlane(), cluster.Kyverno())...)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.ForTest(t, cluster.Options{Bin: bin})
}

// startKyverno starts Kyverno with a policy for the namespace, and returns once that acts.
func startKyverno(t *testing.T, i *install.Installation, namespace string) {
	t.Helper()
	ctx := t.Context()
	crds, err := cluster.KyvernoCRDs(ctx)
	if err == nil {
		err = i.Apply.Apply(ctx, bytes.Join(append(crds, []byte(ofKyverno)), []byte("\n---\n")))
	}
	if err != nil {
		t.Fatal(err)
	}
	reviews, err := i.Server.StartKyverno("kyverno")
	if err == nil {
		err = i.Server.SetEndpoints(ctx, "kyverno", "kyverno-svc", reviews)
	}
	if err == nil {
		err = i.Server.DefaultAccount(ctx, namespace)
	}
	if err != nil {
		t.Fatal(err)
	}
	// The pods of the comparison are no restricted ones.
	const security = "pod-security.kubernetes.io/"
	if out, err := i.Server.Kubectl(ctx, "label", "namespace", namespace, security+"enforce-",
		security+"audit-", security+"warn-"); err != nil {
		t.Fatal(out, err)
	}
	policy := fmt.Appendf(nil, slicedByKyverno, namespace, slicedByExpression)
	var last error // of Kyverno's webhooks, which do not answer at once
	err = wait.PollUntilContextTimeout(ctx, time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		applier, err := install.NewApplier(i.Server.Config) // a new one knows the kinds of the definitions above
		if err != nil {
			return false, err
		}
		if last = applier.Apply(ctx, policy); last != nil {
			return false, nil
		}
		var made *corev1.Pod
		made, last = i.Server.Client.CoreV1().Pods(namespace).Create(ctx, pod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last == nil && len(made.Spec.InitContainers) > 0, nil
	})
	if err != nil {
		t.Fatal("Kyverno gives nothing: ", err, last)
	}
}

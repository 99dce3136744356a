package apiserver

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/install"
)

// ownObjects are what the webhook's token may create with the rights of 20-rbac.yaml, and the nearest that it may not, by the policy
// that says so; "": it may.
var ownObjects = []struct{ name, policy, manifest string }{
	{"its state", "", `{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-state, namespace: gpuslice-system}}`},
	{"a ledger", "", `{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-ledger-a, namespace: gpuslice-system, labels: {gpuslice.dev/ledger: "true"}}}`},
	{"the usage of a day", "", `{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-usage-2026-11-22, namespace: gpuslice-system, labels: {gpuslice.dev/usage: "true"}}}`},
	{"a ledger without the label", "own-ledgers",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-ledger-a, namespace: gpuslice-system}}`},
	{"another ConfigMap", "own-ledgers", `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: gpuslice-system}}`},
	{"a policy", "own-ledgers",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: team-b, namespace: gpuslice-system, labels: {gpuslice.dev/policy: "true"}}}`},
	{"a policy with the name of a ledger", "own-ledgers",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-ledger-b, namespace: gpuslice-system, labels: {gpuslice.dev/ledger: "true", gpuslice.dev/policy: "true"}}}`},
	{"a policy with the name of the state", "own-ledgers",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-state, namespace: gpuslice-system, labels: {gpuslice.dev/policy: ""}}}`},
	{"the Lease of the leader", "",
		`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: gpuslice-leader, namespace: gpuslice-system}}`},
	{"the Lease of an agent", "own-names",
		`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: gpuslice-agent-node-1, namespace: gpuslice-system}}`},
	{"the authority", "", `{apiVersion: v1, kind: Secret, metadata: {name: gpuslice-authority, namespace: gpuslice-system}}`},
	{"the keys", "", `{apiVersion: v1, kind: Secret, metadata: {name: gpuslice-promise-keys, namespace: gpuslice-system}}`},
	{"another Secret", "own-names", `{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: gpuslice-system}}`},
	{"a token of an account", "own-names", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: gpuslice-promise-keys, namespace: gpuslice-system, annotations: {kubernetes.io/service-account.name: gpuslice-agent}}}`},
	{"its Event", "", `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: loose}, involvedObject: {apiVersion: v1, kind: Pod, name: p, namespace: loose}, reason: GPUSliceDenied, source: {component: gpuslice}}`},
	{"an Event of another reason", "own-events",
		`{apiVersion: v1, kind: Event, metadata: {name: e, namespace: loose}, involvedObject: {apiVersion: v1, kind: Pod, name: p, namespace: loose}, reason: Killing, source: {component: gpuslice}}`},
	{"an Event of the kubelet", "own-events", `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: loose}, involvedObject: {apiVersion: v1, kind: Pod, name: p, namespace: loose}, reason: GPUSliceDenied, source: {component: kubelet}}`},
	{"an Event of an agent", "own-events", `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: loose}, involvedObject: {apiVersion: v1, kind: Pod, name: p, namespace: loose}, reason: GPUSliceTerminated, source: {component: gpuslice, host: node-1}}`},
}

// anothers are objects that the webhook's token may change or delete by RBAC, and nobody's of gpuslice.
const anothers = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: team-a, namespace: gpuslice-system, labels: {gpuslice.dev/policy: "true"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-state, namespace: gpuslice-system}}
---
{apiVersion: v1, kind: Event, metadata: {name: of-the-kubelet, namespace: loose}, involvedObject: {apiVersion: v1, kind: Pod, name: p, namespace: loose}, reason: Killing, source: {component: kubelet}}
`

// ownObjects tries what RBAC allows the webhook's token and policies do not.
func (s *bare) ownObjects(t *testing.T, config *rest.Config) {
	t.Helper()
	applier, err := install.NewApplier(config)
	if err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, manifest string) error {
		objects, err := install.Objects([]byte(manifest))
		if err != nil {
			return err
		}
		_, err = applier.Create(ctx, objects[0], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, c := range ownObjects {
		t.Run("creates "+c.name, func(t *testing.T) {
			// A policy comes into force some time after it is applied.
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
				return (create(ctx, c.manifest) == nil) == (c.policy == ""), nil
			})
			got := create(t.Context(), c.manifest)
			if err != nil || c.policy != "" && !by(got, c.policy) {
				t.Errorf("want it denied by %q, got: %v", c.policy, got)
			}
			if c.policy != "" {
				abuse.Report(t,
					abuse.Attempt{Threat: "A36", Attack: "the webhook's token creates " + c.name, Outcome: abuse.Denied, Words: got.Error()})
			}
		})
	}
	if err := s.apply.Apply(t.Context(), []byte(anothers)); err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	state, err := client.CoreV1().ConfigMaps(api.SystemNamespace).Get(t.Context(), "gpuslice-state", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"gpuslice.dev/ledger": "true"}}}
	for name, c := range map[string]struct {
		policy string
		change func(context.Context) error
	}{
		"changes its state": {"", func(ctx context.Context) error {
			_, err := client.CoreV1().ConfigMaps(api.SystemNamespace).Update(ctx, state, metav1.UpdateOptions{})
			return err
		}},
		"deletes its state": {"own-ledgers", func(ctx context.Context) error {
			return client.CoreV1().ConfigMaps(api.SystemNamespace).Delete(ctx, state.Name, metav1.DeleteOptions{})
		}},
		"takes the label off a policy": {"own-ledgers", func(ctx context.Context) error {
			_, err := client.CoreV1().ConfigMaps(api.SystemNamespace).Update(ctx, policy, metav1.UpdateOptions{})
			return err
		}},
		"deletes a policy": {"own-ledgers", func(ctx context.Context) error {
			return client.CoreV1().ConfigMaps(api.SystemNamespace).Delete(ctx, "team-a", metav1.DeleteOptions{})
		}},
		"makes the kubelet's Event its own": {"own-events", func(ctx context.Context) error {
			_, err := client.CoreV1().Events("loose").Patch(ctx, "of-the-kubelet", types.MergePatchType,
				[]byte(`{"reason":"GPUSliceDenied","source":{"component":"gpuslice"}}`), metav1.PatchOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.change(t.Context()); c.policy == "" && err != nil || c.policy != "" && !by(err, c.policy) {
				t.Errorf("want it denied by %q, got: %v", c.policy, err)
			}
		})
	}
}

// by reports whether the policy of 25-own-rights.yaml denied it.
func by(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-"+policy+"'")
}

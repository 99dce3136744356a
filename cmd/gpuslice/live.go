package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/installed"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
	"github.com/gpuslice/gpuslice/policies/config"
)

// live is what a cluster said of itself, as far as the flags do not bring it in files.
type live struct {
	policies   []*corev1.ConfigMap
	tenants    []*corev1.ConfigMap // tenants' own documents
	state      *corev1.ConfigMap
	nodes      []*corev1.Node
	namespaces map[string]map[string]string // name -> labels
	guard      *config.GuardSettings
	warnings   []string
}

// askLive reads from a cluster what no file gives.
func askLive(ctx context.Context, c *kube.Connection, flags *clusterFlags) (*live, error) {
	l := &live{namespaces: map[string]map[string]string{}}
	var err error
	if len(flags.policies) == 0 {
		if l.policies, err = installed.Policies(ctx, c.Client, flags.systemNamespace); err != nil {
			return nil, dryRunInstead(c, err)
		}
	}
	if len(flags.nodes) == 0 {
		if l.nodes, err = installed.Nodes(ctx, c.Client); err != nil {
			return nil, dryRunInstead(c, err)
		}
	}
	if l.state, err = installed.State(ctx, c.Client, flags.systemNamespace); err != nil {
		l.warn("pools without a node are not known: %v", err)
	}
	if l.tenants, err = installed.Tenants(ctx, c.Client, c.Namespace); err != nil {
		if !apierrors.IsForbidden(err) {
			return nil, err
		}
		l.warn("what tenants' own documents tighten is not known: %v; give them with --tenant-policy", err)
	}
	if err := l.readNamespaces(ctx, c); err != nil {
		return nil, err
	}
	return l, l.readGuard(ctx, c.Client, flags)
}

// dryRunInstead adds, to what a tenant may not read, the way that needs no such right.
func dryRunInstead(c *kube.Connection, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; ask the API server instead, by a dry-run in your own namespace: gpuslice render --server -f FILE -n %s", err, c.Namespace)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: %s does not know you; log in, or name another --context", err, c.Config.Host)
	}
	return err
}

// readNamespaces reads the labels of all namespaces, or of the one in question where the others may not be seen.
func (l *live) readNamespaces(ctx context.Context, c *kube.Connection) error {
	list, err := c.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, ns := range list.Items {
			l.namespaces[ns.Name] = ns.Labels
		}
		return nil
	}
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("read namespaces: %w", err)
	}
	ns, err := c.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	if err != nil {
		l.warn("labels of namespaces are not known, and policies may select by them: %v; give them with --namespace-label", err)
		return nil
	}
	l.namespaces[ns.Name] = ns.Labels
	return nil
}

// readGuard finds out how the guard is injected, and whether there is anything installed that would.
func (l *live) readGuard(ctx context.Context, client kubernetes.Interface, flags *clusterFlags) error {
	deployment, err := installed.Deployment(ctx, client, flags.systemNamespace)
	switch {
	case apierrors.IsForbidden(err):
		l.warn("the guard's image is not known, so none is written: %v; name it with --guard-image", err)
	case err != nil:
		return err
	case deployment == nil:
		l.warn("there is no webhook of gpuslice in namespace %s: this is what one would answer", flags.systemNamespace)
	case flags.guardImage == "" && installed.Guard(deployment) == nil:
		l.warn("the webhook in namespace %s has no --guard-image: it injects no guard", flags.systemNamespace)
	}
	l.guard = installed.Guard(deployment)
	return nil
}

func (l *live) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// lintLive reads the policies of a cluster, and its namespaces beside them, as they would stand in a file.
func lintLive(ctx context.Context, c *kube.Connection, system string) ([]policyDocument, leftOver, error) {
	var found []policyDocument
	var others leftOver
	maps, err := installed.Policies(ctx, c.Client, system)
	if err != nil {
		return nil, others, err
	}
	for _, m := range maps {
		m.ManagedFields = nil
		raw, err := json.Marshal(m)
		if err != nil {
			return nil, others, fmt.Errorf("%w: encode ConfigMap %s: %w", errInternal, m.Name, err)
		}
		o := object{at: source{file: fromCluster}, apiVersion: "v1", kind: "ConfigMap", namespace: m.Namespace, name: m.Name, labels: m.Labels, raw: raw}
		if p, ok := (policyReader{system: system}).configMap(o); ok {
			found = append(found, p)
		}
	}
	namespaces, err := c.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, others, fmt.Errorf("read namespaces: %w", err)
	}
	for _, ns := range namespaces.Items {
		others.objects = append(others.objects, object{at: source{file: fromCluster}, apiVersion: "v1", kind: "Namespace", name: ns.Name, labels: ns.Labels})
	}
	return found, others, nil
}

// fromCluster is where objects come from that no file holds.
const fromCluster = "cluster"

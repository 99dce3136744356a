package target

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// live holds the objects that were read from a cluster, as far as the flags do not bring them in files.
type live struct {
	policies     []*corev1.ConfigMap
	tenants      []*corev1.ConfigMap // tenants' own documents
	state        *corev1.ConfigMap
	proofs       *corev1.ConfigMap
	advice       []*corev1.ConfigMap             // recommended sizes
	ranges       map[string][]*corev1.LimitRange // by namespace
	source       pools.Source
	namespaces   map[string]map[string]string // name -> labels
	guard        *config.GuardSettings
	runtimes     pools.Runtimes
	claims       webhookcluster.Claims
	claimsUnread error
	warnings     []string
}

// readLive reads from a cluster the objects that no file gives.
func readLive(ctx context.Context, c *kube.Connection, flags *Flags) (*live, error) {
	l := &live{namespaces: map[string]map[string]string{}}
	var err error
	if len(flags.Policies) == 0 {
		if l.policies, err = installed.Policies(ctx, c.Client, flags.SystemNamespace); err != nil {
			return nil, dryRunInstead(c, err)
		}
	}
	if len(flags.Nodes) == 0 {
		nodes, err := installed.Nodes(ctx, c.Client)
		if err != nil {
			return nil, dryRunInstead(c, err)
		}
		if l.source, err = installed.Source(ctx, c.Client, nodes); err != nil {
			l.warn("pools of dynamic resource allocation are unknown: %v", err)
		}
	}
	if err := l.readRuntimes(ctx, c); err != nil {
		return nil, err
	}
	if l.state, err = installed.State(ctx, c.Client, flags.SystemNamespace); err != nil {
		l.warn("pools without a node are unknown: %v", err)
	}
	if l.proofs, err = installed.Proofs(ctx, c.Client, flags.SystemNamespace); err != nil && !apierrors.IsForbidden(err) {
		l.warn("what was proved on pools is unknown: %v", err)
	}
	if l.advice, err = installed.Advice(ctx, c.Client, flags.SystemNamespace); err != nil && !apierrors.IsForbidden(err) {
		l.warn("sizes from histories are unknown: %v", err)
	}
	if l.ranges, err = installed.LimitRanges(ctx, c.Client, c.Namespace); err != nil {
		l.warn("the namespace's LimitRanges are unknown: %v", err)
	}
	if l.tenants, err = installed.Tenants(ctx, c.Client, c.Namespace); err != nil {
		if !apierrors.IsForbidden(err) {
			return nil, err
		}
		l.warn("tenants' own documents are unknown: %v; name them with --tenant-policy", err)
	}
	if l.claims, err = installed.Claims(ctx, c.Client, c.Namespace); err != nil {
		l.claimsUnread = fmt.Errorf("what it claims is not fully known, and counts as a GPU: %w", err)
	}
	if err := l.readNamespaces(ctx, c); err != nil {
		return nil, err
	}
	return l, l.readGuard(ctx, c.Client, flags)
}

// dryRunInstead adds the way that needs no right which a tenant lacks.
func dryRunInstead(c *kube.Connection, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; use the API server instead, by a dry-run in your own namespace: gpuslice render --dry-run=server -f FILE -n %s", err, c.Namespace)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: %s does not accept your credentials; log in, or name another --context", err, c.Config.Host)
	}
	return err
}

// readNamespaces reads the labels of all namespaces, or of the one in question where the others may not be seen.
func (l *live) readNamespaces(ctx context.Context, c *kube.Connection) error {
	all, err := installed.Namespaces(ctx, c.Client)
	for _, ns := range all {
		l.namespaces[ns.Name] = ns.Labels
	}
	if !apierrors.IsForbidden(err) {
		return err
	}
	ns, err := c.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	if err != nil {
		l.warn("namespace labels are unknown, and policies may select by them: %v; name them with --namespace-label", err)
		return nil
	}
	l.namespaces[ns.Name] = ns.Labels
	return nil
}

// readRuntimes reads how a guard can reach the driver.
func (l *live) readRuntimes(ctx context.Context, c *kube.Connection) error {
	objects, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	l.runtimes, err = installed.Runtimes(ctx, c.Client, objects)
	if apierrors.IsForbidden(err) {
		l.warn("how a guard reaches the driver is unknown: %v", err)
		return nil
	}
	return err
}

// readGuard reads how the guard is injected, and warns if nothing is installed that would inject it.
func (l *live) readGuard(ctx context.Context, client kubernetes.Interface, flags *Flags) error {
	deployment, err := installed.Deployment(ctx, client, flags.SystemNamespace)
	switch {
	case apierrors.IsForbidden(err):
		l.warn("the guard's image is unknown, so no guard is written: %v; name it with --guard-image", err)
	case err != nil:
		return err
	case deployment == nil:
		l.warn("no gpuslice webhook is installed in namespace %s: the answers are those of a new one", flags.SystemNamespace)
	case flags.GuardImage == "" && installed.Guard(deployment) == nil:
		l.warn("the webhook in namespace %s has no --guard-image: it injects no guard", flags.SystemNamespace)
	}
	l.guard = installed.Guard(deployment)
	return nil
}

func (l *live) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// Connect connects to the cluster of the flags for a command that can read files instead.
func Connect(flags *kube.Flags, s cli.Streams) (*kube.Connection, error) {
	connection, err := flags.Connect(s)
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, fmt.Errorf("%w, or give files instead: --policies FILE --nodes FILE", err)
	}
	return connection, err
}

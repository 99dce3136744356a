package clusters

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
)

// dryRunInstead adds the way that needs no right which a tenant lacks.
func dryRunInstead(c *kube.Connection, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; use the API server instead, by a dry-run in your own namespace: gpuslice render --dry-run=server -f FILE -n %s",
			err, c.Namespace)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: %s does not accept your credentials; log in, or name another --context", err, c.Config.Host)
	}
	return err
}

// OfflineFlags are the flags that replace a cluster by files.
const OfflineFlags = "--policies FILE --nodes FILE"

// Connect connects to the cluster of the flags for a command that can read files instead, by other flags: "--policies FILE".
func Connect(flags *kube.Flags, s cli.Streams, instead string) (*kube.Connection, error) {
	connection, err := flags.Connect(s)
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, fmt.Errorf("%w, or give files instead: %s", err, instead)
	}
	return connection, err
}

// readLive reads from the cluster of the flags the objects that no file gives. Files are read afterwards, and win.
func (l *loader) readLive(ctx context.Context, s cli.Streams) error {
	c, err := Connect(&l.flags.Kube, s, OfflineFlags)
	if err != nil {
		return err
	}
	l.live, l.cluster.Namespace = true, c.Namespace
	o, system := &l.objects, l.flags.Kube.System
	if len(l.flags.Policies) == 0 {
		if o.Policies, err = installed.Policies(ctx, c.Client, system); err != nil {
			return dryRunInstead(c, err)
		}
	}
	if len(l.flags.Nodes) == 0 {
		nodes, err := installed.Nodes(ctx, c.Client)
		if err != nil {
			return dryRunInstead(c, err)
		}
		if o.Source, err = installed.Source(ctx, c.Client, nodes); err != nil {
			l.warn("pools of dynamic resource allocation are unknown: %v", err)
		}
	}
	if err := l.readRuntimes(ctx, c); err != nil {
		return err
	}
	if o.State, err = installed.State(ctx, c.Client, system); err != nil {
		l.warn("pools without a node are unknown: %v", err)
	}
	if l.cluster.ranges, err = installed.LimitRanges(ctx, c.Client, c.Namespace); err != nil {
		l.warn("the namespace's LimitRanges are unknown: %v", err)
	}
	if l.tenants, err = installed.Tenants(ctx, c.Client, c.Namespace); err != nil {
		if !apierrors.IsForbidden(err) {
			return err
		}
		l.warn("tenants' own documents are unknown: %v; name them with --tenant-policy", err)
	}
	if l.cluster.claims, err = installed.Claims(ctx, c.Client, c.Namespace); err != nil {
		l.cluster.ClaimsUnread = fmt.Errorf("what it claims is not fully known, and counts as a GPU: %w", err)
	}
	if err := l.readLabels(ctx, c); err != nil {
		return err
	}
	return l.readGuard(ctx, c.Client)
}

// readLabels reads the labels of all namespaces, or of the one in question where the others may not be seen.
func (l *loader) readLabels(ctx context.Context, c *kube.Connection) error {
	all, err := installed.Namespaces(ctx, c.Client)
	for _, ns := range all {
		l.cluster.Labels[ns.Name] = ns.Labels
	}
	if !apierrors.IsForbidden(err) {
		return err
	}
	ns, err := c.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	if err != nil {
		l.warn("namespace labels are unknown, and policies may select by them: %v; name them with --namespace-label", err)
		return nil
	}
	l.cluster.Labels[ns.Name] = ns.Labels
	return nil
}

// readRuntimes reads how a guard can reach the driver.
func (l *loader) readRuntimes(ctx context.Context, c *kube.Connection) (err error) {
	l.objects.Runtimes, err = installed.Runtimes(ctx, c.Client, c.Objects)
	if apierrors.IsForbidden(err) {
		l.warn("how a guard reaches the driver is unknown: %v", err)
		return nil
	}
	return err
}

// readGuard reads how the guard is injected, and warns if nothing is installed that would inject it.
func (l *loader) readGuard(ctx context.Context, client kubernetes.Interface) error {
	deployment, err := installed.Deployment(ctx, client, l.flags.Kube.System)
	switch {
	case apierrors.IsForbidden(err):
		l.warn("the guard's image is unknown, so no guard is written: %v; name it with --guard-image", err)
	case err != nil:
		return err
	case deployment == nil:
		l.warn("no gpuslice webhook is installed in namespace %s: the answers are those of a new one", l.flags.Kube.System)
	case l.flags.GuardImage == "" && installed.Guard(deployment) == nil:
		l.warn("the webhook in namespace %s has no --guard-image: it injects no guard", l.flags.Kube.System)
	}
	l.objects.Guard = installed.Guard(deployment)
	return nil
}

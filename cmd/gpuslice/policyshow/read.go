package policyshow

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
)

// fromFiles is the source of errors where policies are files.
const fromFiles = "files"

// read reads the documents from files, or else from the cluster.
func (o *options) read(ctx context.Context, s cli.Streams) (*documents, error) {
	if len(o.policies) > 0 {
		return o.readFiles(s)
	}
	connection, err := clusters.Connect(&o.kube, s, "--policies FILE")
	if err != nil {
		return nil, err
	}
	d := &documents{source: "cluster", namespace: connection.Namespace}
	if err := o.readSystem(ctx, connection, d); err != nil {
		return nil, err
	}
	if d.policiesUnread != nil {
		if d.answer, err = ask(ctx, connection); err != nil {
			d.warnings = append(d.warnings, err.Error())
		}
	}
	own, err := installed.Tenants(ctx, connection.Client, d.namespace)
	if apierrors.IsForbidden(err) {
		d.warnings = append(d.warnings, err.Error())
	} else if err != nil {
		return nil, err
	}
	found, err := installed.PolicyDocuments(slices.Concat(d.maps, own), o.kube.System)
	if err != nil {
		return nil, err
	}
	d.take(found)
	return d, d.readLabels(ctx, connection)
}

// ask requests the policy in effect from the webhook.
func ask(ctx context.Context, c *kube.Connection) (*budgets.PolicyReport, error) {
	text, err := installed.Report(ctx, c.Client, c.Namespace, budgets.ReportPolicy)
	if err != nil {
		return nil, fmt.Errorf("the policy of namespace %s is unknown: %w", c.Namespace, err)
	}
	answer, err := budgets.ReadPolicyReport(text)
	if err != nil {
		return nil, fmt.Errorf("the policy of namespace %s is unknown: %w", c.Namespace, err)
	}
	return &answer, nil
}

// readSystem reads an administrator's documents, and the webhook's state of them.
func (o *options) readSystem(ctx context.Context, c *kube.Connection, d *documents) (err error) {
	d.maps, err = installed.Policies(ctx, c.Client, o.kube.System)
	if apierrors.IsForbidden(err) {
		d.policiesUnread = err
	} else if err != nil {
		return err
	}
	d.state, d.stateUnread = installed.State(ctx, c.Client, o.kube.System)
	if d.stateUnread != nil && !apierrors.IsForbidden(d.stateUnread) {
		return d.stateUnread
	}
	if d.scope, err = installed.ReadScope(ctx, c.Client, o.kube.System); apierrors.IsForbidden(err) {
		d.warnings = append(d.warnings, fmt.Sprintf("%v: taken to leave out the namespaces that an installation leaves out by itself", err))
		return nil
	}
	return err
}

// take keeps policies, and the namespace's own document.
func (d *documents) take(found []manifest.Policy) {
	for _, p := range found {
		switch {
		case !p.Place.Tenant:
			d.policies = append(d.policies, p)
		case p.TenantOf == d.namespace:
			d.tenant = &p
		}
	}
}

// readLabels reads the labels of the namespace, by which policies may select.
func (d *documents) readLabels(ctx context.Context, c *kube.Connection) error {
	ns, err := c.Client.CoreV1().Namespaces().Get(ctx, d.namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		d.warnings = append(d.warnings, fmt.Sprintf("namespace labels are unknown, and policies may select by them: %v", err))
		return nil
	case err != nil:
		return fmt.Errorf("read namespace %s: %w", d.namespace, err)
	}
	d.labels = ns.Labels
	return nil
}

func (o *options) readFiles(s cli.Streams) (*documents, error) {
	if o.kube.Namespace == "" {
		return nil, fmt.Errorf("--policies: name the namespace to show with -n NAMESPACE")
	}
	d := &documents{source: fromFiles, namespace: o.kube.Namespace, scope: installed.ScopeOf(nil, o.kube.System)}
	found, rest := manifest.PolicyReader{System: o.kube.System}.Read(&manifest.Reader{Stdin: s.In}, o.policies)
	for _, failed := range rest.Unread {
		d.filesUnread = append(d.filesUnread, failed)
	}
	if len(found) == 0 && len(d.filesUnread) == 0 {
		return nil, fmt.Errorf("--policies: no policy in it; %s", manifest.AcceptedPolicies)
	}
	d.take(found)
	for _, ns := range manifest.Namespaces(rest.Objects) {
		if ns.Name == d.namespace {
			d.labels = ns.Labels
		}
	}
	return d, nil
}

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Names of objects that may turn out to be unreadable.
const (
	whatGroups     = "API groups"
	whatNodes      = "nodes"
	whatNamespaces = "namespaces"
	whatDaemonSets = "daemonsets"
	whatOperator   = "cluster policies of the GPU Operator"
	whatConfigs    = "configurations of NVIDIA's software"
	whatPods       = "pods"
	whatLimits     = "limit ranges"
	whatRuntimes   = "runtime classes"
	whatOverlays   = "Karpenter's node overlays"
	whatDevices    = "devices of dynamic resource allocation"
	whatAmounts    = "whether claims keep their amounts (a dry run)"
	whatClaimed    = "claims of devices and their templates"
	whatWaiting    = "pods that wait for a claim, and what claims were given"
	whatQuotas     = "resource quotas"
	whatWebhooks   = "webhook configurations"
	whatChanges    = "mutating admission policies"
	whatLastLine   = "validating admission policies"
	whatFlows      = "flow schemas"
	whatPolicies   = "policies"
	whatTenants    = "tenants' own policies"
	whatWebhook    = "the webhook's Deployment and pods"
	whatRights     = "your own rights"

	whatCertificates = "cert-manager's Certificates and issuers"
	whatInjector     = "the Lease of cert-manager's CA injector"
)

// gather reads all objects of the checks from the API server. A denial becomes a fact too; an API server that does not
// answer at all is an error.
func gather(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface, system string) (*Facts, error) {
	g := gatherer{ctx: ctx, client: client, objects: objects, facts: &Facts{System: system, Now: time.Now()}}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read from the API server: %w", err)
	}
	g.facts.Version = version
	for _, step := range g.steps() {
		err := step.read()
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("read %s: %w", step.what, ctx.Err())
		case err != nil && !answered(err):
			return nil, fmt.Errorf("read %s: %w", step.what, err)
		case err != nil:
			g.facts.Unread = append(g.facts.Unread, Unread{step.what, err})
		}
	}
	return g.facts, nil
}

// answered reports whether an error is the API server's answer, and not the lack of one.
func answered(err error) bool {
	_, status := errors.AsType[*apierrors.StatusError](err)
	return status && !apierrors.IsUnauthorized(err)
}

// gatherer fills in facts step by step.
type gatherer struct {
	ctx     context.Context
	client  kubernetes.Interface
	objects dynamic.Interface // of kinds that are not Kubernetes' own
	facts   *Facts
}

type step struct {
	what string
	read func() error
}

func (g *gatherer) steps() []step {
	f, all, ours := g.facts, metav1.ListOptions{}, metav1.ListOptions{LabelSelector: installed.Selector}
	core, admission := g.client.CoreV1(), g.client.AdmissionregistrationV1()
	return []step{
		{whatGroups, g.groups},
		{whatNodes, g.nodes},
		{whatNamespaces, listed(g, &f.Namespaces, core.Namespaces().List, all)},
		{whatDaemonSets, listed(g, &f.DaemonSets, g.client.AppsV1().DaemonSets(metav1.NamespaceAll).List, all)},
		{whatOperator, g.added(pools.ClusterPolicies, "", f.addClusterPolicy)},
		{whatConfigs, g.configs},
		{whatQuotas, listed(g, &f.Quotas, core.ResourceQuotas(metav1.NamespaceAll).List, all)},
		{whatLimits, listed(g, &f.Limits, core.LimitRanges(metav1.NamespaceAll).List, all)},
		{whatRuntimes, listed(g, &f.Runtimes, g.client.NodeV1().RuntimeClasses().List, all)},
		{whatOverlays, g.added(nodeOverlays, "", f.addOverlay)},
		{whatDevices, g.devices},
		{whatAmounts, g.amounts},
		{whatClaimed, g.claimed},
		{whatWaiting, g.waiting},
		{whatWebhooks, both(
			listed(g, &f.Mutating, admission.MutatingWebhookConfigurations().List, all),
			listed(g, &f.Validating, admission.ValidatingWebhookConfigurations().List, all))},
		{whatChanges, ifServed(listed(g, &f.MutatingPolicies, admission.MutatingAdmissionPolicies().List, all))},
		{whatCertificates, g.certificates},
		{whatInjector, g.injector},
		{whatLastLine, both(
			listed(g, &f.LastLine, admission.ValidatingAdmissionPolicies().List, ours),
			listed(g, &f.Bindings, admission.ValidatingAdmissionPolicyBindings().List, ours))},
		{whatFlows, listed(g, &f.Flows, g.client.FlowcontrolV1().FlowSchemas().List, ours)},
		{whatPolicies, g.policies},
		{whatPods, g.pods},
		{whatTenants, g.tenants},
		{whatWebhook, g.webhook},
		{whatRights, g.rights},
	}
}

// listed reads the objects of one kind.
func listed[T, L runtime.Object](g *gatherer, into *[]T, list kube.List[L], o metav1.ListOptions) func() error {
	return func() (err error) {
		*into, err = kube.Listed[T](list(g.ctx, o))
		return err
	}
}

// ifServed reads a kind that older API servers do not have.
func ifServed(read func() error) func() error {
	return func() error {
		if err := read(); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
}

// both reads one after the other, unless the first cannot be read.
func both(first, second func() error) func() error {
	return func() error {
		if err := first(); err != nil {
			return err
		}
		return second()
	}
}

func (g *gatherer) groups() error {
	list, err := g.client.Discovery().ServerGroups()
	if err != nil {
		return err
	}
	for _, group := range list.Groups {
		g.facts.Groups = append(g.facts.Groups, group.Name)
		for _, v := range group.Versions {
			g.facts.Groups = append(g.facts.Groups, v.GroupVersion)
		}
	}
	return nil
}

func (g *gatherer) nodes() (err error) {
	g.facts.Nodes, err = installed.Nodes(g.ctx, g.client)
	return err
}

// nodeOverlays are Karpenter's objects about what instance types offer.
var nodeOverlays = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1alpha1", Resource: "nodeoverlays"}

// added adds the objects of a resource in a namespace ("": in all) as JSON, if the cluster has the resource.
func (g *gatherer) added(resource schema.GroupVersionResource, namespace string, add func(json.RawMessage) error) func() error {
	return func() error {
		list, err := g.objects.Resource(resource).Namespace(namespace).List(g.ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			raw, err := item.MarshalJSON()
			if err != nil {
				return fmt.Errorf("read %s %s: %w", resource.Resource, item.GetName(), err)
			}
			if err := add(raw); err != nil {
				return err
			}
		}
		return nil
	}
}

// configs reads the ConfigMaps that NVIDIA's DaemonSets mount, and those that a ClusterPolicy names.
func (g *gatherer) configs() error {
	for _, name := range g.facts.namedConfigs() {
		m, err := g.client.CoreV1().ConfigMaps(name.Namespace).Get(g.ctx, name.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			g.facts.Configs = append(g.facts.Configs, m)
		}
	}
	return nil
}

// devices reads the ResourceSlices of drivers of dynamic resource allocation.
func (g *gatherer) devices() error {
	source, err := installed.Source(g.ctx, g.client, nil)
	g.facts.Slices, g.facts.Classes = source.Slices, slices.Collect(maps.Values(source.Classes))
	return err
}

// pods reads the control plane's pods, and all others only where the toolkit has the driver's limit or nodes offer parts of GPUs.
func (g *gatherer) pods() error {
	servers := metav1.ListOptions{LabelSelector: "component=kube-apiserver"}
	if err := listed(g, &g.facts.APIServers, g.client.CoreV1().Pods(metav1.NamespaceSystem).List, servers)(); err != nil {
		return err
	}
	if _, _, limits := limitsHook(g.facts); !limits && len(g.facts.granularPools()) == 0 && !slices.ContainsFunc(g.facts.Nodes, offersParts) {
		return nil
	}
	_, err := kube.EachPod(g.ctx, g.client.CoreV1().Pods(metav1.NamespaceAll), metav1.ListOptions{}, g.facts.addHolder)
	return err
}

func (g *gatherer) policies() (err error) {
	if g.facts.Policies, err = installed.Policies(g.ctx, g.client, g.facts.System); err != nil {
		return err
	}
	g.facts.State, err = installed.State(g.ctx, g.client, g.facts.System)
	return err
}

func (g *gatherer) tenants() (err error) {
	g.facts.Tenants, err = installed.Tenants(g.ctx, g.client, "")
	return err
}

func (g *gatherer) webhook() (err error) {
	if g.facts.Deployment, err = installed.Deployment(g.ctx, g.client, g.facts.System); err != nil || g.facts.Deployment == nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(g.facts.Deployment.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read the webhook's selector: %w", err)
	}
	err = listed(g, &g.facts.Pods, g.client.CoreV1().Pods(g.facts.System).List, metav1.ListOptions{LabelSelector: selector.String()})()
	g.facts.Pods = slices.DeleteFunc(g.facts.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	return err
}

// certificates reads cert-manager's objects where it writes caBundle.
func (g *gatherer) certificates() error {
	f, v1 := g.facts, certmanager.SchemeGroupVersion
	if len(f.injected()) == 0 {
		return nil
	}
	return both(g.added(v1.WithResource("certificates"), f.System, list(&f.Certificates)), both(
		g.added(v1.WithResource("issuers"), f.System, list(&f.Issuers)),
		g.added(v1.WithResource("clusterissuers"), "", list(&f.ClusterIssuers))))()
}

// injector reads the Lease of cert-manager's CA injector, which can be in any namespace.
func (g *gatherer) injector() error {
	if len(g.facts.injected()) == 0 {
		return nil
	}
	var all []*coordinationv1.Lease
	name := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, injectorLease).String()}
	err := listed(g, &all, g.client.CoordinationV1().Leases(metav1.NamespaceAll).List, name)()
	for _, l := range all {
		if g.facts.Injector == nil || renewedAt(l).After(renewedAt(g.facts.Injector)) {
			g.facts.Injector = l
		}
	}
	return err
}

// rights checks whether the user could install gpuslice.
func (g *gatherer) rights() error {
	for _, r := range wanted(g.facts.System) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Namespace: r.Namespace},
		}}
		answer, err := g.client.AuthorizationV1().SelfSubjectAccessReviews().Create(g.ctx, review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		r.Allowed = answer.Status.Allowed
		g.facts.Rights = append(g.facts.Rights, r)
	}
	return nil
}

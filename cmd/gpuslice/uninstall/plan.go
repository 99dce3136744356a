package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/keys"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// keep lists the parts of an installation that stay, so that one after it can go on.
type keep struct {
	policies bool // with the namespace that holds them
	keys     bool // by which living pods' slices are known
}

// kind is a kind of object that an installation has.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool // only those of the system namespace are ours
	// also reports whether an object without our label is ours, by a label or name of its own.
	also func(name string, labels map[string]string) bool
}

func (k kind) String() string {
	if stem, ok := strings.CutSuffix(k.resource.Resource, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(k.resource.Resource, "s")
}

// kinds lists the kinds to remove, in this order: first the configurations by which the API server calls the webhook,
// so that nothing can be denied; then the servers, so that nothing is created again; then their remains.
func kinds() []kind {
	cluster := func(group, version, resource string) kind {
		return kind{resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}}
	}
	system := func(group, version, resource string) kind {
		return kind{resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, namespaced: true}
	}
	configMaps, secrets, leases := system("", "v1", "configmaps"), system("", "v1", "secrets"), system("coordination.k8s.io", "v1", "leases")
	configMaps.also, secrets.also, leases.also = configMapOfOurs, named, named
	return []kind{
		cluster("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
		cluster("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
		cluster("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"),
		cluster("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"),
		system("apps", "v1", "deployments"),
		system("apps", "v1", "daemonsets"),
		system("policy", "v1", "poddisruptionbudgets"),
		system("", "v1", "services"),
		system("networking.k8s.io", "v1", "networkpolicies"),
		system("monitoring.coreos.com", "v1", "servicemonitors"),
		system("monitoring.coreos.com", "v1", "podmonitors"),
		system("monitoring.coreos.com", "v1", "prometheusrules"),
		system("cert-manager.io", "v1", "certificates"),
		system("cert-manager.io", "v1", "issuers"),
		cluster("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
		cluster("rbac.authorization.k8s.io", "v1", "clusterroles"),
		system("rbac.authorization.k8s.io", "v1", "rolebindings"),
		system("rbac.authorization.k8s.io", "v1", "roles"),
		system("", "v1", "serviceaccounts"),
		cluster("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"),
		cluster("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations"),
		system("", "v1", "resourcequotas"),
		leases, configMaps, secrets,
	}
}

// named reports whether gpuslice created an object itself: it sets no label, but begins every name like this.
func named(name string, _ map[string]string) bool {
	return strings.HasPrefix(name, "gpuslice-")
}

// configMapOfOurs does the same for ConfigMaps: state, ledgers and policies.
func configMapOfOurs(name string, labels map[string]string) bool {
	return labels[api.LabelPolicy] == "true" || labels[ledger.Label] == "true" || name == cluster.StateName || named(name, labels)
}

// remover removes an installation.
type remover struct {
	client dynamic.Interface
	system string // the namespace of the installation
	keep   keep
	dryRun bool // print the removals, and remove nothing
	out    io.Writer

	wait     time.Duration // for the namespace; 0: it is not waited for
	interval time.Duration // between looks at it
}

// item is one object to remove.
type item struct {
	kind kind
	name string
}

// String names it as kubectl does.
func (i item) String() string { return i.kind.String() + "/" + i.name }

// plan lists the objects to remove.
type plan struct {
	items     []item
	namespace bool     // the system namespace is removed too
	ending    bool     // it is being removed already
	keys      bool     // the keys are there, and are kept
	kept      []string // objects that stay, a sentence each
	helm      bool
	unlisted  []error // kinds that could not be listed: the others are removed all the same
}

// empty reports whether nothing of gpuslice is there.
func (p *plan) empty() bool {
	return len(p.items) == 0 && !p.namespace && !p.ending && len(p.unlisted) == 0
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// find lists the objects to remove, in the order of their removal. Kinds that the cluster does not serve are left out.
func (r *remover) find(ctx context.Context) (*plan, error) {
	p := &plan{}
	for _, k := range kinds() {
		list, err := r.of(k).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if _, answered := errors.AsType[*apierrors.StatusError](err); answered {
			p.unlisted = append(p.unlisted, fmt.Errorf("list %s: %w", k.resource.Resource, err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", k.resource.Resource, err)
		}
		for i := range list.Items {
			p.add(k, &list.Items[i], r.keep)
		}
	}
	return p, r.findNamespace(ctx, p)
}

// add adds an object if it is ours.
func (p *plan) add(k kind, u *unstructured.Unstructured, keep keep) {
	labels := u.GetLabels()
	if keep.keys && k.resource.Resource == "secrets" && u.GetName() == keys.SecretName {
		p.keys = true
		p.kept = append(p.kept, "secret/"+keys.SecretName+" stays, so that gpuslice knows the slices of living pods when it is installed again; --purge removes it")
		return
	}
	kept := keep.policies && k.resource.Resource == "configmaps" && labels[api.LabelPolicy] == "true"
	ours := labels["app.kubernetes.io/name"] == "gpuslice" || k.also != nil && k.also(u.GetName(), labels)
	if !ours || kept {
		return
	}
	p.helm = p.helm || labels["app.kubernetes.io/managed-by"] == "Helm"
	p.items = append(p.items, item{k, u.GetName()})
}

// findNamespace decides about the system namespace: it is removed only if it was created for gpuslice.
func (r *remover) findNamespace(ctx context.Context, p *plan) error {
	ns, err := r.client.Resource(namespaces).Get(ctx, r.system, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", r.system, err)
	}
	switch {
	case ns.GetDeletionTimestamp() != nil:
		p.ending = true
	case r.keep.policies:
		p.kept = append(p.kept, "namespace "+r.system+" stays, with its policies")
	case p.keys:
		p.kept = append(p.kept, "namespace "+r.system+" stays, with that Secret")
	case ns.GetLabels()["app.kubernetes.io/name"] != "gpuslice":
		p.kept = append(p.kept, "namespace "+r.system+" stays: it does not carry the label app.kubernetes.io/name: gpuslice, so others may use it")
	default:
		p.namespace = true
	}
	return nil
}

// carry removes the objects of the plan. It goes on after a failure, and returns every failure in the end: the sooner
// the rest is gone the better.
func (r *remover) carry(ctx context.Context, p *plan) []error {
	failed := slices.Clone(p.unlisted)
	for _, err := range p.unlisted {
		fmt.Fprintln(r.out, err)
	}
	for _, i := range p.items {
		failed = append(failed, r.remove(ctx, r.of(i.kind), i.name, i.String())...)
	}
	if p.namespace {
		failed = append(failed, r.remove(ctx, r.client.Resource(namespaces), r.system, "namespace/"+r.system)...)
	}
	if (p.namespace || p.ending) && !r.dryRun && r.wait > 0 && len(failed) == 0 {
		if err := r.waitForNamespace(ctx); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

func (r *remover) of(k kind) dynamic.ResourceInterface {
	if k.namespaced {
		return r.client.Resource(k.resource).Namespace(r.system)
	}
	return r.client.Resource(k.resource)
}

// remove deletes one object; one that is gone already is as good.
func (r *remover) remove(ctx context.Context, kind dynamic.ResourceInterface, name, object string) []error {
	if r.dryRun {
		fmt.Fprintf(r.out, "%s would be removed\n", object)
		return nil
	}
	background := metav1.DeletePropagationBackground
	err := kind.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		fmt.Fprintf(r.out, "%s could not be removed: %v\n", object, err)
		return []error{fmt.Errorf("remove %s: %w", object, err)}
	}
	done := "removed"
	if object == "namespace/"+r.system { // it goes with all that is in it, which takes a while
		done = "is being removed"
	}
	fmt.Fprintf(r.out, "%s %s\n", object, done)
	return nil
}

// remains lists the objects that stay in a cluster without gpuslice, and how to find them.
func (p *plan) remains() []string {
	remains := append(slices.Clone(p.kept),
		"running pods keep their slice and their guard until they end; to find them:\n"+
			"  kubectl get pods -A -o json | jq -r '.items[] | select(.metadata.annotations[\"gpuslice.dev/promise\"]) | .metadata.namespace + \"/\" + .metadata.name'",
		"pods created from now on stay as they are written: whole GPUs, under the names that the device plugin offers",
		"labels gpuslice.dev/* on namespaces, and ConfigMaps gpuslice-policy of tenants, stay without effect")
	if p.helm {
		remains = append(remains, "Helm still lists a release: remove it with helm uninstall RELEASE, or its next upgrade installs everything again")
	}
	return remains
}

// waitForNamespace waits until the namespace is gone, and prints the remaining objects: an installation into one that
// is being removed fails, and leaves webhooks that nothing answers.
func (r *remover) waitForNamespace(ctx context.Context) error {
	said := ""
	err := wait.PollUntilContextTimeout(ctx, r.interval, r.wait, true, func(ctx context.Context) (bool, error) {
		ns, err := r.client.Resource(namespaces).Get(ctx, r.system, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			fmt.Fprintf(r.out, "namespace/%s removed\n", r.system)
			return true, nil
		case err != nil:
			return false, nil // until the deadline: the API server may be busy
		case ns.GetDeletionTimestamp() == nil:
			return false, fmt.Errorf("namespace %s was created again", r.system)
		}
		if text := remaining(ns); text != said {
			said = text
			fmt.Fprintf(r.out, "waiting for namespace/%s: %s\n", r.system, text)
		}
		return false, nil
	})
	if wait.Interrupted(err) {
		fmt.Fprintf(r.out, "namespace/%s is not removed after %s: %s\n", r.system, r.wait.Round(time.Second), said)
		return fmt.Errorf("wait for namespace %s: %w", r.system, err)
	}
	return err
}

// remaining names the obstacle to a namespace's removal, by its own conditions.
func remaining(ns *unstructured.Unstructured) string {
	conditions, _, err := unstructured.NestedSlice(ns.Object, "status", "conditions")
	if err != nil {
		conditions = nil
	}
	var texts []string
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["status"] != "True" {
			continue
		}
		if message, ok := condition["message"].(string); ok {
			texts = append(texts, message)
		}
	}
	if len(texts) == 0 {
		return "Kubernetes removes what is in it"
	}
	return strings.Join(texts, "; ")
}

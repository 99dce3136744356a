package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/keys"
)

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
		p.kept = append(p.kept,
			"secret/"+keys.SecretName+" stays, so that gpuslice knows the slices of living pods when it is installed again; --purge removes it")
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
		p.kept = append(p.kept,
			"namespace "+r.system+" stays: it does not carry the label app.kubernetes.io/name: gpuslice, so others may use it")
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
		remains = append(remains,
			"Helm still lists a release: remove it with helm uninstall RELEASE, or its next upgrade installs everything again")
	}
	return remains
}

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Options say what to remove.
type Options struct {
	Client       dynamic.Interface
	System       string // the namespace of the installation
	KeepPolicies bool   // leave policies, and the namespace that holds them
	DryRun       bool   // say what would be removed, and remove nothing
	Out          io.Writer
}

// Item is one object that goes.
type Item struct {
	kind kind
	Name string
}

// String names it as kubectl does.
func (i Item) String() string { return i.kind.String() + "/" + i.Name }

// Plan is what there is to remove.
type Plan struct {
	Items     []Item
	Namespace bool     // the system namespace goes too
	Left      []string // what stays, a sentence each
	helm      bool
	unseen    []error // kinds that could not be listed: the others go all the same
}

// Empty says that nothing is left of gpuslice.
func (p *Plan) Empty() bool { return len(p.Items) == 0 && !p.Namespace && len(p.unseen) == 0 }

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Find lists what there is to remove, in the order in which it goes. Kinds that the cluster does not have are left out.
func Find(ctx context.Context, o Options) (*Plan, error) {
	p := &Plan{}
	for _, k := range kinds(o.KeepPolicies) {
		list, err := o.of(k).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if _, answered := errors.AsType[*apierrors.StatusError](err); answered {
			p.unseen = append(p.unseen, fmt.Errorf("list %s: %w", k.resource.Resource, err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", k.resource.Resource, err)
		}
		for i := range list.Items {
			p.take(k, &list.Items[i], o.KeepPolicies)
		}
	}
	return p, p.namespace(ctx, o)
}

// take notes an object that is ours.
func (p *Plan) take(k kind, u *unstructured.Unstructured, keepPolicies bool) {
	labels := u.GetLabels()
	kept := keepPolicies && k.resource.Resource == "configmaps" && labels[api.LabelPolicy] == "true"
	ours := labels["app.kubernetes.io/name"] == "gpuslice" || k.also != nil && k.also(u.GetName(), labels)
	if !ours || kept {
		return
	}
	p.helm = p.helm || labels["app.kubernetes.io/managed-by"] == "Helm"
	p.Items = append(p.Items, Item{k, u.GetName()})
}

// namespace decides about the system namespace: it goes only where it was made for gpuslice.
func (p *Plan) namespace(ctx context.Context, o Options) error {
	ns, err := o.Client.Resource(namespaces).Get(ctx, o.System, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", o.System, err)
	}
	switch {
	case ns.GetDeletionTimestamp() != nil:
		p.Left = append(p.Left, "namespace "+o.System+" is being removed already")
	case o.KeepPolicies:
		p.Left = append(p.Left, "namespace "+o.System+" stays, with its policies")
	case ns.GetLabels()["app.kubernetes.io/name"] != "gpuslice":
		p.Left = append(p.Left, "namespace "+o.System+" stays: it does not carry the label app.kubernetes.io/name: gpuslice, so others may use it")
	default:
		p.Namespace = true
	}
	return nil
}

// Carry removes what the plan lists. It goes on after a failure, and returns every failure in the end: the sooner the
// rest is gone the better.
func Carry(ctx context.Context, p *Plan, o Options) []error {
	failed := slices.Clone(p.unseen)
	for _, unseen := range p.unseen {
		fmt.Fprintln(o.Out, unseen)
	}
	for _, item := range p.Items {
		failed = append(failed, o.remove(ctx, o.of(item.kind), item.Name, item.String())...)
	}
	if p.Namespace {
		failed = append(failed, o.remove(ctx, o.Client.Resource(namespaces), o.System, "namespace/"+o.System)...)
	}
	return failed
}

func (o Options) of(k kind) dynamic.ResourceInterface {
	if k.namespaced {
		return o.Client.Resource(k.resource).Namespace(o.System)
	}
	return o.Client.Resource(k.resource)
}

// remove deletes one object; one that is gone already is as good.
func (o Options) remove(ctx context.Context, r dynamic.ResourceInterface, name, what string) []error {
	if o.DryRun {
		fmt.Fprintf(o.Out, "%s would be removed\n", what)
		return nil
	}
	background := metav1.DeletePropagationBackground
	err := r.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		fmt.Fprintf(o.Out, "%s stays: %v\n", what, err)
		return []error{fmt.Errorf("remove %s: %w", what, err)}
	}
	fmt.Fprintf(o.Out, "%s removed\n", what)
	return nil
}

// Remains says what stays in a cluster that gpuslice is removed from, and how to find it.
func (p *Plan) Remains() []string {
	remains := append(slices.Clone(p.Left),
		"pods that run keep their slice and their guard until they end; to find them:\n"+
			"  kubectl get pods -A -o json | jq -r '.items[] | select(.metadata.annotations[\"gpuslice.dev/promise\"]) | .metadata.namespace + \"/\" + .metadata.name'",
		"pods that are made from now on come out as they are written: whole GPUs, under the names that the device plugin offers",
		"labels gpuslice.dev/* on namespaces, and ConfigMaps gpuslice-policy of tenants, stay and do nothing")
	if p.helm {
		remains = append(remains, "Helm still lists a release: helm uninstall RELEASE forgets it; without that its next upgrade brings everything back")
	}
	return remains
}

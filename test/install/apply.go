package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Applier applies manifests as a user does, by server-side apply.
type Applier struct {
	config *rest.Config
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

// NewApplier makes an Applier that acts with config's rights.
func NewApplier(config *rest.Config) (*Applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	return &Applier{config, client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}, nil
}

// Warning returns an Applier whose warnings from the server go to handler.
func (a *Applier) Warning(handler rest.WarningHandler) *Applier {
	config := rest.CopyConfig(a.config)
	config.WarningHandler = handler
	return &Applier{config, dynamic.NewForConfigOrDie(config), a.mapper}
}

// Objects reads a stream of YAML documents.
func Objects(manifest []byte) ([]*unstructured.Unstructured, error) {
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	var all []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		switch err := d.Decode(u); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read manifest: %w", err)
		case len(u.Object) > 0:
			all = append(all, u)
		}
	}
}

// Apply applies the objects of a manifest but those of the given kinds.
func (a *Applier) Apply(ctx context.Context, manifest []byte, exceptKinds ...string) error {
	objects, err := Objects(manifest)
	if err != nil {
		return err
	}
	for _, u := range objects {
		if slices.Contains(exceptKinds, u.GetKind()) {
			continue
		}
		r, err := a.resource(u)
		if err != nil {
			return err
		}
		if _, err := r.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "install", Force: true}); err != nil {
			return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// Create creates one object and returns what the server made of it.
func (a *Applier) Create(ctx context.Context, u *unstructured.Unstructured, o metav1.CreateOptions) (*unstructured.Unstructured, error) {
	r, err := a.resource(u)
	if err != nil {
		return nil, err
	}
	return r.Create(ctx, u, o)
}

func (a *Applier) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	m, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find resource of %s: %w", gvk, err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := u.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		return a.client.Resource(m.Resource).Namespace(namespace), nil
	}
	return a.client.Resource(m.Resource), nil
}

// Get returns the object as the server has it.
func (a *Applier) Get(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r, err := a.resource(u)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, u.GetName(), metav1.GetOptions{})
}

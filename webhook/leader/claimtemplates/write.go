package claimtemplates

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/claims"
)

// templateNamed is gpuslice's template of that name, as the namespace has to have it; nil: the name names none.
func templateNamed(namespace, name string) *resourcev1.ResourceClaimTemplate {
	t, err := claims.Parse(name)
	if err != nil {
		return nil
	}
	return t.Object(namespace)
}

// cached is the template of that name as it is; nil: there is none.
func (w *Writer) cached(namespace, name string) *resourcev1.ResourceClaimTemplate {
	object, _, _ := w.options.Templates.GetStore().GetByKey(namespace + "/" + name)
	have, _ := object.(*resourcev1.ResourceClaimTemplate)
	return have
}

// lacks reports whether a namespace has no such template, or one with another spec.
func (w *Writer) lacks(namespace, name string) bool {
	return !saysItsName(w.cached(namespace, name), templateNamed(namespace, name))
}

// saysItsName reports whether the template is there, with the content of its name.
func saysItsName(have, want *resourcev1.ResourceClaimTemplate) bool {
	return have != nil && equality.Semantic.DeepEqual(have.Spec.Spec, want.Spec.Spec)
}

// write makes the template, in place of one of its name with other content.
func (w *Writer) write(ctx context.Context, have, want *resourcev1.ResourceClaimTemplate) error {
	if have != nil {
		if err := w.remove(ctx, have); err != nil {
			return err
		}
	}
	_, err := w.options.Client.ResourceV1().ResourceClaimTemplates(want.Namespace).Create(ctx, want, metav1.CreateOptions{})
	switch {
	case err != nil && (have != nil || !apierrors.IsAlreadyExists(err)): // a finalizer keeps the one that was deleted
		return fmt.Errorf("create template: %w", err)
	case have != nil:
		w.reportReplaced(ctx, have)
	}
	return nil
}

// remove deletes the template that was read, and no other.
func (w *Writer) remove(ctx context.Context, have *resourcev1.ResourceClaimTemplate) error {
	err := w.options.Client.ResourceV1().ResourceClaimTemplates(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete template: %w", err)
	}
	return nil
}

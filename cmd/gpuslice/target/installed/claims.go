package installed

import (
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// Claims returns device classes, and the specs of the claims and templates of every namespace, or of one if the others
// may not be read. Beside an error it holds the readable ones. A cluster that allocates no devices dynamically has
// none.
func Claims(ctx context.Context, client kubernetes.Interface, namespace string) (cluster.Claims, error) {
	api := client.ResourceV1()
	out := cluster.Claims{Classes: map[string]*resourcev1.DeviceClass{}, Claims: map[string]*resourcev1.ResourceClaimSpec{}, Templates: map[string]*resourcev1.ResourceClaimSpec{}}
	classes, failed := api.DeviceClasses().List(ctx, metav1.ListOptions{})
	if failed == nil {
		for i := range classes.Items {
			out.Classes[classes.Items[i].Name] = &classes.Items[i]
		}
	}
	claims, err := readable(namespace, func(namespace string) (*resourcev1.ResourceClaimList, error) {
		return api.ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	})
	if err == nil {
		for i := range claims.Items {
			out.Add(&claims.Items[i])
		}
	}
	failed = errors.Join(failed, err)
	templates, err := readable(namespace, func(namespace string) (*resourcev1.ResourceClaimTemplateList, error) {
		return api.ResourceClaimTemplates(namespace).List(ctx, metav1.ListOptions{})
	})
	if err == nil {
		for i := range templates.Items {
			out.Templates[templates.Items[i].Namespace+"/"+templates.Items[i].Name] = &templates.Items[i].Spec.Spec
		}
	}
	if failed = errors.Join(failed, err); failed == nil || apierrors.IsNotFound(err) {
		out.Unserved = apierrors.IsNotFound(err)
		return out, nil
	}
	return out, fmt.Errorf("read claims of devices: %w", failed)
}

// readable lists in every namespace, or in one where the others may not be read.
func readable[T any](namespace string, list func(string) (T, error)) (T, error) {
	all, err := list(metav1.NamespaceAll)
	if apierrors.IsForbidden(err) && namespace != "" {
		return list(namespace)
	}
	return all, err
}

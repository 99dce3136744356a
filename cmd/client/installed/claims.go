package installed

import (
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// Claims returns device classes, and the specs of the claims and templates of every namespace, or of one if the others
// may not be read. Beside an error it has the readable ones. A cluster that allocates no devices dynamically has
// none.
func Claims(ctx context.Context, client kubernetes.Interface, namespace string) (cluster.Claims, error) {
	api, all := client.ResourceV1(), metav1.ListOptions{}
	out := cluster.Claims{Classes: map[string]*resourcev1.DeviceClass{}, Claims: map[string]*resourcev1.ResourceClaimSpec{},
		Templates: map[string]*resourcev1.ResourceClaimSpec{}}
	classes, classesUnread := kube.Listed[*resourcev1.DeviceClass](api.DeviceClasses().List(ctx, all))
	for _, c := range classes {
		out.Classes[c.Name] = c
	}
	claims, claimsUnread := readable(namespace, func(namespace string) ([]*resourcev1.ResourceClaim, error) {
		return kube.Listed[*resourcev1.ResourceClaim](api.ResourceClaims(namespace).List(ctx, all))
	})
	for _, c := range claims {
		out.Add(c)
	}
	templates, err := readable(namespace, func(namespace string) ([]*resourcev1.ResourceClaimTemplate, error) {
		return kube.Listed[*resourcev1.ResourceClaimTemplate](api.ResourceClaimTemplates(namespace).List(ctx, all))
	})
	for _, t := range templates {
		out.Templates[t.Namespace+"/"+t.Name] = &t.Spec.Spec
	}
	out.Unserved = apierrors.IsNotFound(err)
	if err = errors.Join(classesUnread, claimsUnread, err); err != nil && !out.Unserved {
		return out, fmt.Errorf("read claims of devices: %w", err)
	}
	return out, nil
}

// readable lists in every namespace, or in one where the others may not be read.
func readable[T any](namespace string, list func(string) (T, error)) (T, error) {
	all, err := list(metav1.NamespaceAll)
	if apierrors.IsForbidden(err) && namespace != "" {
		return list(namespace)
	}
	return all, err
}

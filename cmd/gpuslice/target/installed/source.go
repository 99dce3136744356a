package installed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Source holds the objects from which the pools of the nodes are read. Beside an error it holds the nodes. A cluster
// that allocates no devices dynamically has no ResourceSlices and no DeviceClasses.
func Source(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) (pools.Source, error) {
	source := pools.Source{Nodes: nodes}
	published, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return source, nil
	}
	if err != nil {
		return source, fmt.Errorf("read ResourceSlices: %w", err)
	}
	classes, err := client.ResourceV1().DeviceClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return source, fmt.Errorf("read DeviceClasses: %w", err)
	}
	source.Slices, source.Classes = kube.Pointers(published.Items), map[string]*resourcev1.DeviceClass{}
	for i := range classes.Items {
		source.Classes[classes.Items[i].Name] = &classes.Items[i]
	}
	return source, nil
}

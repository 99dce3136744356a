package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// ClusterPolicyKind is the GPU Operator's kind, as far as the webhook reads it. A webhook that starts before it is served notices
// it only half a minute later.
const ClusterPolicyKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterpolicies.nvidia.com}
spec:
  group: nvidia.com
  scope: Cluster
  names: {kind: ClusterPolicy, listKind: ClusterPolicyList, plural: clusterpolicies, singular: clusterpolicy}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Runtimes makes a manifest of RuntimeClasses and ClusterPolicies all that the cluster has of NVIDIA's. Settle waits
// until the webhook has read them.
func (i *Installation) Runtimes(ctx context.Context, manifest []byte, told pools.Runtimes) error {
	classes, err := i.Server.Client.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list runtime classes: %w", err)
	}
	for _, c := range classes.Items {
		if err := i.Server.Client.NodeV1().RuntimeClasses().Delete(ctx, c.Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete runtime class %s: %w", c.Name, err)
		}
	}
	policies := i.Apply.client.Resource(schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"})
	if err := policies.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete cluster policies: %w", err)
	}
	i.runtimes = told
	i.Apply.mapper.Reset() // the kind may be younger
	return i.Apply.Apply(ctx, manifest)
}

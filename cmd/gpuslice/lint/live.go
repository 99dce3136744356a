package lint

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
)

// readLive reads the policies of a cluster, and its namespaces beside them, as they would stand in a file.
func readLive(ctx context.Context, c *kube.Connection, system string) ([]manifest.Policy, manifest.Rest, error) {
	var found []manifest.Policy
	var rest manifest.Rest
	maps, err := installed.Policies(ctx, c.Client, system)
	if err != nil {
		return nil, rest, err
	}
	for _, m := range maps {
		o, err := manifest.FromCluster("v1", "ConfigMap", m)
		if err != nil {
			return nil, rest, err
		}
		if p, ok := (manifest.PolicyReader{System: system}).ConfigMap(o); ok {
			found = append(found, p)
		}
	}
	namespaces, err := c.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, rest, fmt.Errorf("read namespaces: %w", err)
	}
	for i := range namespaces.Items {
		o, err := manifest.FromCluster("v1", "Namespace", &namespaces.Items[i])
		if err != nil {
			return nil, rest, err
		}
		rest.Objects = append(rest.Objects, o)
	}
	return found, rest, nil
}

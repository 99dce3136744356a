package install

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// Devices makes exactly these ResourceSlices and DeviceClasses those of the cluster.
func (i *Installation) Devices(ctx context.Context, source pools.Source) error {
	api := i.Server.Client.ResourceV1()
	everything := metav1.ListOptions{}
	if err := api.ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, everything); err != nil {
		return fmt.Errorf("delete ResourceSlices: %w", err)
	}
	if err := api.DeviceClasses().DeleteCollection(ctx, metav1.DeleteOptions{}, everything); err != nil {
		return fmt.Errorf("delete DeviceClasses: %w", err)
	}
	for _, class := range source.Classes {
		if _, err := api.DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create DeviceClass %s: %w", class.Name, err)
		}
	}
	for _, published := range source.Slices {
		if _, err := api.ResourceSlices().Create(ctx, published, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ResourceSlice %s: %w", published.Name, err)
		}
	}
	return nil
}

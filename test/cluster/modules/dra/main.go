// Command dra is a driver of dynamic resource allocation that shares devices out by memory, as NVIDIA's does with its gate
// ConsumableShares: any number of claims have a part of a device, and the scheduler finds one with room. It is for tests alone:
// flags name the devices, and nothing watches their health.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &driver{}
	var kubeconfig string
	flag.StringVar(&d.name, "driver-name", "gpu.nvidia.com", "name of the driver in ResourceSlices and claims")
	flag.StringVar(&d.node, "node-name", "", "name of the node")
	flag.StringVar(&d.specs, "cdi-root", "/var/run/cdi", "folder of CDI specifications")
	flag.StringVar(&d.product, "product", "NVIDIA H100 80GB HBM3", "name of the product")
	flag.StringVar(&d.release, "driver-version", "580.95.5", "release of the GPU driver, as a semantic version")
	flag.StringVar(&kubeconfig, "kubeconfig", "", "access to the cluster")
	flag.Int64Var(&d.shares, "shares", 0, "number of claims that share a device; 0: as many as its memory holds")
	flag.Func("device", "NAME=UUID=MEMORY of a device that is shared, NAME=UUID=MEMORY=PROFILE of a MIG instance, which is not (repeatable)", d.add)
	flag.Parse()
	if err := d.run(ctx, kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "dra:", err)
		os.Exit(1)
	}
}

// add reads one device.
func (d *driver) add(text string) error {
	parts := strings.Split(text, "=")
	if len(parts) != 3 && len(parts) != 4 {
		return fmt.Errorf("%q is not NAME=UUID=MEMORY or NAME=UUID=MEMORY=PROFILE", text)
	}
	memory, err := resource.ParseQuantity(parts[2])
	if err != nil {
		return fmt.Errorf("memory of device %s: %w", parts[0], err)
	}
	g := gpu{name: parts[0], uuid: parts[1], memory: memory}
	if len(parts) == 4 {
		g.profile = parts[3]
	}
	d.devices = append(d.devices, g)
	return nil
}

// run registers with the kubelet, publishes the devices, and serves until ctx ends.
func (d *driver) run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	data := filepath.Join(kubeletplugin.KubeletPluginsDir, d.name)
	if err := errors.Join(os.MkdirAll(data, 0o750), os.MkdirAll(d.specs, 0o755)); err != nil {
		return fmt.Errorf("make folders: %w", err)
	}
	plugin, err := kubeletplugin.Start(ctx, d, kubeletplugin.KubeClient(client), kubeletplugin.NodeName(d.node),
		kubeletplugin.DriverName(d.name), kubeletplugin.PluginDataDirectoryPath(data))
	if err != nil {
		return fmt.Errorf("register with the kubelet: %w", err)
	}
	defer plugin.Stop()
	if err := plugin.PublishResources(ctx, d.resources()); err != nil {
		return fmt.Errorf("publish devices: %w", err)
	}
	<-ctx.Done()
	return nil
}

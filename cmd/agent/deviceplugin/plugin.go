// Package deviceplugin offers devices of a resource to the kubelet of a node: the scheduler places a pod that requests one only
// where somebody offers it. A container gets nothing for such a device.
package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kubelet "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/gpuslice/gpuslice/guard/ticks"
)

const (
	kubeletSocket = "kubelet.sock"
	socket        = "gpuslice.sock"

	period  = time.Second     // between two looks whether the devices are offered
	timeout = 5 * time.Second // how long the kubelet may take to answer
)

// Plugin offers devices of one resource.
type Plugin struct {
	Folder   string // the kubelet's, for device plugins
	Resource string
	Count    int
	Offers   func() bool // the devices are offered only then
	Log      *slog.Logger
}

// Run offers the devices until ctx is done. The kubelet forgets its plugins and
// removes their sockets when it restarts, which shows in the end of its stream:
// then they are offered again.
func (p *Plugin) Run(ctx context.Context) {
	failed := ""
	for range ticks.Every(ctx, period) {
		if p.Offers() {
			err := p.serve(ctx)
			if err != nil && ctx.Err() == nil && err.Error() != failed { // once for each reason
				p.Log.Warn("the kubelet does not offer the resource", "resource", p.Resource, "error", err)
			}
			failed = fmt.Sprint(err)
		}
	}
}

// serve offers the devices until the kubelet has gone, they are no longer offered, or ctx is done.
func (p *Plugin) serve(ctx context.Context) error {
	path := filepath.Join(p.Folder, socket)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an agent before: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("serve the kubelet: %w", err)
	}
	w := &registration{plugin: p, ended: make(chan struct{})}
	server := grpc.NewServer()
	kubelet.RegisterDevicePluginServer(server, w)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	err = p.register(ctx)
	if err == nil {
		err = w.wait(ctx)
	}
	server.Stop()
	return errors.Join(err, <-served)
}

// register names the socket to the kubelet.
func (p *Plugin) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := grpc.NewClient("unix:"+filepath.Join(p.Folder, kubeletSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("reach the kubelet: %w", err)
	}
	defer connection.Close()
	request := &kubelet.RegisterRequest{Version: kubelet.Version, Endpoint: socket,
		ResourceName: p.Resource, Options: &kubelet.DevicePluginOptions{}}
	if _, err := kubelet.NewRegistrationClient(connection).Register(ctx, request); err != nil {
		return fmt.Errorf("register with the kubelet: %w", err)
	}
	return nil
}

// registration is one with the kubelet.
type registration struct {
	kubelet.UnimplementedDevicePluginServer
	plugin *Plugin
	began  atomic.Bool
	ended  chan struct{} // is closed at the end of the first stream
}

// wait returns when the kubelet's stream is closed, or none came.
func (w *registration) wait(ctx context.Context) error {
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		select {
		case <-w.ended:
			return nil
		case <-ctx.Done():
			return nil
		case <-late.C:
			if !w.began.Load() {
				return errors.New("the kubelet registered the resource and did not list its devices")
			}
		}
	}
}

// ListAndWatch implements kubelet.DevicePluginServer. The stream is closed when the devices are no longer offered: the kubelet
// gives none of them to a new pod from then on, and remembers for five minutes that the node had them.
func (w *registration) ListAndWatch(_ *kubelet.Empty, stream grpc.ServerStreamingServer[kubelet.ListAndWatchResponse]) error {
	if w.began.Swap(true) {
		return errors.New("the devices are watched already")
	}
	defer close(w.ended)
	devices := make([]*kubelet.Device, w.plugin.Count)
	for i := range devices {
		devices[i] = &kubelet.Device{ID: strconv.Itoa(i), Health: kubelet.Healthy}
	}
	if err := stream.Send(&kubelet.ListAndWatchResponse{Devices: devices}); err != nil {
		return fmt.Errorf("list the devices: %w", err)
	}
	w.plugin.Log.Info("the kubelet offers the resource", "resource", w.plugin.Resource, "devices", len(devices))
	for range ticks.Every(stream.Context(), period) {
		if !w.plugin.Offers() {
			return errors.New("the devices are not offered now")
		}
	}
	return nil
}

// GetDevicePluginOptions implements kubelet.DevicePluginServer.
func (*registration) GetDevicePluginOptions(context.Context, *kubelet.Empty) (*kubelet.DevicePluginOptions, error) {
	return &kubelet.DevicePluginOptions{}, nil
}

// Allocate implements kubelet.DevicePluginServer. A container gets nothing for a device.
func (*registration) Allocate(_ context.Context, r *kubelet.AllocateRequest) (*kubelet.AllocateResponse, error) {
	out := &kubelet.AllocateResponse{}
	for range r.ContainerRequests {
		out.ContainerResponses = append(out.ContainerResponses, &kubelet.ContainerAllocateResponse{})
	}
	return out, nil
}

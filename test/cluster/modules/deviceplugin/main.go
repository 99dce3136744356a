// Command deviceplugin offers replicas of one extended resource to the kubelet, with variables, mounts and
// device nodes of the caller's choice: for what NVIDIA's own plugin cannot be made to do without a GPU.
//
// It registers once. Like real plugins it has to be started again when the kubelet was.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p := &plugin{done: ctx.Done()}
	flag.StringVar(&p.resource, "resource", "nvidia.com/gpu", "name of the resource")
	flag.StringVar(&p.device, "device-id", "GPU-0", "identity of the shared device; replicas are called ID::0, ID::1, ...")
	flag.IntVar(&p.replicas, "replicas", 1, "how many replicas there are")
	flag.Func("env", "NAME=VALUE that a container with a replica gets (repeatable)", p.addEnv)
	flag.Func("mount", "HOST:CONTAINER[:ro] that a container with a replica gets (repeatable)", p.addMount)
	flag.Func("device", "HOST:CONTAINER device node that a container with a replica gets (repeatable)", p.addDevice)
	flag.Parse()
	if err := p.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "deviceplugin:", err)
		os.Exit(1)
	}
}

// plugin implements the part of the device plugin API that has no options.
type plugin struct {
	api.UnimplementedDevicePluginServer

	resource, device string
	replicas         int
	answer           api.ContainerAllocateResponse
	done             <-chan struct{}
}

func (p *plugin) addEnv(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q is not NAME=VALUE", text)
	}
	if p.answer.Envs == nil {
		p.answer.Envs = map[string]string{}
	}
	p.answer.Envs[name] = value
	return nil
}

func (p *plugin) addMount(text string) error {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || (len(parts) == 3 && parts[2] != "ro") {
		return fmt.Errorf("%q is not HOST:CONTAINER[:ro]", text)
	}
	p.answer.Mounts = append(p.answer.Mounts, &api.Mount{HostPath: parts[0], ContainerPath: parts[1], ReadOnly: len(parts) == 3})
	return nil
}

func (p *plugin) addDevice(text string) error {
	host, container, ok := strings.Cut(text, ":")
	if !ok {
		return fmt.Errorf("%q is not HOST:CONTAINER", text)
	}
	p.answer.Devices = append(p.answer.Devices, &api.DeviceSpec{HostPath: host, ContainerPath: container, Permissions: "rw"})
	return nil
}

// run serves until ctx ends.
func (p *plugin) run(ctx context.Context) error {
	endpoint := strings.ReplaceAll(p.resource, "/", "_") + ".sock"
	path := filepath.Join(api.DevicePluginPath, endpoint)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove old socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if err := p.register(ctx, endpoint); err != nil {
		return err
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		server.Stop()
		return nil
	}
}

// register registers this plugin with the kubelet, waiting until the kubelet answers.
func (p *plugin) register(ctx context.Context, endpoint string) error {
	conn, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("dial kubelet: %w", err)
	}
	defer conn.Close()
	req := &api.RegisterRequest{Version: api.Version, Endpoint: endpoint, ResourceName: p.resource, Options: &api.DevicePluginOptions{}}
	if _, err := api.NewRegistrationClient(conn).Register(ctx, req, grpc.WaitForReady(true)); err != nil {
		return fmt.Errorf("register %s: %w", p.resource, err)
	}
	return nil
}

// GetDevicePluginOptions returns that there are none.
func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch lists the replicas, all healthy, and never changes its mind.
func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var list api.ListAndWatchResponse
	for i := range p.replicas {
		list.Devices = append(list.Devices, &api.Device{ID: fmt.Sprintf("%s::%d", p.device, i), Health: api.Healthy})
	}
	if err := stream.Send(&list); err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	select {
	case <-p.done:
	case <-stream.Context().Done():
	}
	return nil
}

// Allocate gives every container the same and prints the requested identities, one JSON list a line.
func (p *plugin) Allocate(_ context.Context, req *api.AllocateRequest) (*api.AllocateResponse, error) {
	var answer api.AllocateResponse
	for _, c := range req.ContainerRequests {
		if err := json.NewEncoder(os.Stdout).Encode(c.DevicesIds); err != nil {
			return nil, fmt.Errorf("print allocation: %w", err)
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &p.answer)
	}
	return &answer, nil
}

package deviceplugin

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kubelet "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// registry is the kubelet's part of the API.
type registry struct {
	kubelet.UnimplementedRegistrationServer
	registered chan *kubelet.RegisterRequest
}

// Register implements kubelet.RegistrationServer.
func (r registry) Register(_ context.Context, request *kubelet.RegisterRequest) (*kubelet.Empty, error) {
	r.registered <- request
	return &kubelet.Empty{}, nil
}

// startKubelet serves a kubelet in the folder, which it empties as a kubelet does.
func startKubelet(t *testing.T, folder string) (registered chan *kubelet.RegisterRequest, stop func()) {
	t.Helper()
	for _, name := range []string{socket, kubeletSocket} {
		_ = os.Remove(filepath.Join(folder, name))
	}
	l, err := net.Listen("unix", filepath.Join(folder, kubeletSocket))
	if err != nil {
		t.Fatal(err)
	}
	r := registry{registered: make(chan *kubelet.RegisterRequest, 8)}
	server := grpc.NewServer()
	kubelet.RegisterRegistrationServer(server, r)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return r.registered, server.Stop
}

// watch asks a plugin that registered for its devices, as the kubelet does.
func watch(t *testing.T, folder string,
	registered <-chan *kubelet.RegisterRequest) (stream kubelet.DevicePlugin_ListAndWatchClient, hangUp func()) {
	t.Helper()
	request := receive(t, registered)
	if request.ResourceName != "example.com/held" || request.Version != "v1beta1" {
		t.Fatalf("registered as %v", request)
	}
	connection, err := grpc.NewClient("unix:"+filepath.Join(folder, request.Endpoint),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	client := kubelet.NewDevicePluginClient(connection)
	if stream, err = client.ListAndWatch(t.Context(), &kubelet.Empty{}); err != nil {
		t.Fatal(err)
	}
	list, err := stream.Recv()
	if err != nil || len(list.Devices) != 1024 {
		t.Fatalf("%d devices: %v", len(list.GetDevices()), err)
	}
	ids := map[string]bool{}
	for _, d := range list.Devices {
		ids[d.ID] = d.Health == kubelet.Healthy
	}
	if len(ids) != 1024 || !ids["0"] {
		t.Errorf("devices %v", ids)
	}
	given, err := client.Allocate(t.Context(),
		&kubelet.AllocateRequest{ContainerRequests: []*kubelet.ContainerAllocateRequest{{DevicesIds: []string{"7"}}}})
	if err != nil || len(given.ContainerResponses) != 1 {
		t.Errorf("allocated %v: %v", given, err)
	}
	return stream, func() { _ = connection.Close() }
}

// shortFolder is a folder whose sockets' paths are short enough for Linux.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// offer runs a plugin, which offers its devices while the switch is on.
func offer(t *testing.T, folder string) (on *atomic.Bool, stop func()) {
	t.Helper()
	on = new(atomic.Bool)
	on.Store(true)
	p := Plugin{Folder: folder, Resource: "example.com/held", Count: 1024, Offers: on.Load,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { p.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return on, stop
}

func TestPlugin(t *testing.T) {
	t.Parallel()
	t.Run("registers with a kubelet that comes later, and again with the one after it", func(t *testing.T) {
		t.Parallel()
		folder := shortFolder(t)
		offer(t, folder)
		for range 2 {
			registered, stop := startKubelet(t, folder)
			_, hangUp := watch(t, folder, registered)
			hangUp()
			stop()
		}
	})
	t.Run("ends the stream while it offers nothing, and registers when it does again", func(t *testing.T) {
		t.Parallel()
		folder := shortFolder(t)
		registered, _ := startKubelet(t, folder)
		on, _ := offer(t, folder)
		stream, _ := watch(t, folder, registered)
		on.Store(false)
		if _, err := stream.Recv(); err == nil {
			t.Error("the stream goes on")
		}
		if len(registered) > 0 {
			t.Error("it registered while it offers nothing")
		}
		on.Store(true)
		watch(t, folder, registered)
	})
	t.Run("ends the stream when it ends, and removes its socket", func(t *testing.T) {
		t.Parallel()
		folder := shortFolder(t)
		registered, _ := startKubelet(t, folder)
		_, stop := offer(t, folder)
		stream, _ := watch(t, folder, registered)
		stop()
		if _, err := stream.Recv(); err == nil {
			t.Error("the stream goes on")
		}
		if _, err := os.Stat(filepath.Join(folder, socket)); !os.IsNotExist(err) {
			t.Errorf("its socket: %v", err)
		}
	})
	t.Run("takes the place of one that was killed", func(t *testing.T) {
		t.Parallel()
		folder := shortFolder(t)
		registered, _ := startKubelet(t, folder)
		if err := os.WriteFile(filepath.Join(folder, socket), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		offer(t, folder)
		watch(t, folder, registered)
	})
}

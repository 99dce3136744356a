package nodetest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, func(ctx context.Context, dir string) error {
		path, err := fakegpu.Build(ctx, dir)
		if err != nil {
			return err
		}
		return os.Symlink(path, filepath.Join(dir, library))
	}))
}

// shell is an image with a shell and little else, packed from this machine's programs.
const shell = "gpuslice.test/shell:v1"

// library is where the simulated GPU's library is found in the box's folder.
const library = "gpu.so"

// start starts the one node of this package's box.
var start = sync.OnceValues(func() (*cluster.Node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	i := image.Image{Name: shell, Entrypoint: []string{"/bin/sh", "-c"}, Files: map[string]string{}}
	for _, program := range []string{"/bin/sh", "/bin/cat", "/bin/sleep"} {
		files, err := image.Program(program, program)
		if err != nil {
			return nil, err
		}
		for dst, src := range files {
			i.Files[dst] = src
		}
	}
	gpu := &cluster.GPU{Library: filepath.Join(box.Dir(), library), MIGMinors: migMinors()}
	return cluster.StartNode(ctx, cluster.NodeOptions{Images: []image.Image{i}, GPU: gpu})
})

// node returns the node, or skips the test where no node was asked for.
func node(t *testing.T) *cluster.Node {
	t.Helper()
	if !cluster.Wanted("node") {
		t.Skip("starts a real node: set GPUSLICE_TEST=node to run it, as root")
	}
	n, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// container returns a container of the shell image that runs script.
func container(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: shell, ImagePullPolicy: corev1.PullNever, Args: []string{script}}
}

// create makes a pod, which goes away at once when the test is over.
func create(t *testing.T, n *cluster.Node, name string, spec corev1.PodSpec) {
	t.Helper()
	// A shell that is process 1 does not end on SIGTERM.
	grace := int64(1)
	spec.TerminationGracePeriodSeconds = &grace
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := n.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, n, name) })
}

// remove takes a pod away at once, if it is still there.
func remove(t *testing.T, n *cluster.Node, name string) {
	t.Helper()
	none := int64(0)
	err := n.Client.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &none})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// await polls until reached says so, for at most thirty seconds.
func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !reached() {
		select {
		case <-ctx.Done():
			t.Fatalf("no %s within 30 s", what)
		case <-poll.C:
		}
	}
}

// get returns a pod as it is.
func get(t *testing.T, n *cluster.Node, name string) *corev1.Pod {
	t.Helper()
	p, err := n.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// awaitPhase waits until a pod is in a phase.
func awaitPhase(t *testing.T, n *cluster.Node, name string, phase corev1.PodPhase) {
	t.Helper()
	await(t, string(phase)+" pod "+name, func() bool { return get(t, n, name).Status.Phase == phase })
}

// awaitLog waits until a container has printed text.
func awaitLog(t *testing.T, n *cluster.Node, pod, container, text string) {
	t.Helper()
	await(t, "line "+text+" of "+pod+"/"+container, func() bool {
		out, err := n.Kubectl(t.Context(), "logs", pod, "--container="+container)
		return err == nil && strings.Contains(out, text)
	})
}

package chart

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/install"
)

// helmFile is where the node's box has helm: it is built outside, where there is a network.
const helmFile = "helm"

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, prepare)) }

func prepare(ctx context.Context, dir string) error {
	bin, err := cluster.Build(ctx, os.Stderr, cluster.Helm())
	if err != nil {
		return err
	}
	if err := os.Symlink(bin["helm"], filepath.Join(dir, helmFile)); err != nil {
		return fmt.Errorf("place helm: %w", err)
	}
	if err := prepareCertManager(ctx, dir); err != nil {
		return err
	}
	return install.Build(ctx, dir)
}

const (
	chartFolder = "../../deploy/chart"
	release     = "gpuslice"
)

// helm runs the command that users have, with nothing of this machine's own settings.
type helm struct {
	*testing.T
	path, home, kubeconfig string
}

// newHelm returns a helm for the API server of a kubeconfig; "" is for rendering alone.
func newHelm(t *testing.T, kubeconfig string) *helm {
	t.Helper()
	h := &helm{T: t, home: t.TempDir(), kubeconfig: kubeconfig, path: filepath.Join(box.Dir(), helmFile)}
	if box.Dir() == "" {
		if !cluster.Wanted("apiserver") {
			t.Skip("compiles helm: set GPUSLICE_TEST=apiserver to run it")
		}
		bin, err := cluster.Build(t.Context(), os.Stderr, cluster.Helm())
		if err != nil {
			t.Fatal(err)
		}
		h.path = bin["helm"]
	}
	return h
}

// try runs helm and returns what it prints. Its error has what helm says of one.
func (h *helm) try(args ...string) (string, error) {
	cmd := exec.CommandContext(h.Context(), h.path, args...)
	cmd.Env = []string{"HOME=" + h.home, "KUBECONFIG=" + h.kubeconfig}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %s: %w: %s%s", args[0], err, &stderr, &stdout)
	}
	return stdout.String(), nil
}

// run is try, and ends the test where helm fails.
func (h *helm) run(args ...string) string {
	h.Helper()
	out, err := h.try(args...)
	if err != nil {
		h.Fatal(err)
	}
	return out
}

// render returns the objects of the chart, as helm would send them.
func (h *helm) render(args ...string) []*unstructured.Unstructured {
	h.Helper()
	text := h.run(append([]string{"template", release, chartFolder, "--namespace=" + api.SystemNamespace}, args...)...)
	objects, err := install.Objects([]byte(text))
	if err != nil {
		h.Fatalf("%v in\n%s", err, text)
	}
	return objects
}

// version names the images that there are.
func version(tag string) string { return "--set=image.tag=" + tag }

// byName keys objects by kind and name.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, o := range objects {
		key := strings.TrimSpace(o.GetKind() + " " + o.GetName())
		if out[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		out[key] = o.Object
	}
	return out
}

// withoutHelmLabels returns rendered objects without the labels that every chart gives.
func withoutHelmLabels(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		labels := o.GetLabels()
		for _, usual := range []string{"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance"} {
			if labels[usual] == "" {
				t.Errorf("%s %s lacks the label %s", o.GetKind(), o.GetName(), usual)
			}
			delete(labels, usual)
		}
		o.SetLabels(labels)
	}
	return objects
}

// convert returns the Deployment that o is.
func convert(t *testing.T, o *unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// pythonPaths are images by what they have in PYTHONPATH.
func pythonPaths() map[string][]string {
	return map[string][]string{
		"gpuslice.test/path:v1":         {"PYTHONPATH=/workspace:"},
		"gpuslice.test/without-path:v1": nil,
		"gpuslice.test/odd-path:v1":     {"PYTHONPATH=/it's"},
	}
}

// pythonImages run what they like: a shell that prints the variable, where the shim's file is there too.
func pythonImages() (all []image.Image, err error) {
	for name, env := range pythonPaths() {
		i, err := shellOf(name, "/bin/sh", "-c", `cat /gpuslice/shim/sitecustomize.py > /dev/null && echo "path=$PYTHONPATH"`)
		if err != nil {
			return nil, err
		}
		i.Env = env
		all = append(all, i)
	}
	return all, nil
}

// TestShimByFile is about containers whose image alone says what runs: the kubelet gives them what a container of the image
// recorded.
func TestShimByFile(t *testing.T) {
	t.Parallel()
	of := func(c corev1.Container) *corev1.Pod {
		p := once(slice("8Gi", "train", c))
		p.Labels[api.LabelFramework] = "pytorch-2.4"
		return p
	}
	for name, tt := range map[string]struct{ image, line string }{
		"behind the shim is what the image has": {"gpuslice.test/path:v1", "path=/gpuslice/shim:/workspace:"},
		"an image that has nothing there":       {"gpuslice.test/without-path:v1", "path=/gpuslice/shim"},
		"what no file can hold stays as it is":  {"gpuslice.test/odd-path:v1", "path=/it's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "env-files", fakegpu.Config{Devices: devices})
			s.create(of(asking(corev1.Container{Name: "trainer", Image: tt.image})))
			s.awaitLine("train", "trainer", tt.line, func(line string) bool { return line == tt.line })
		})
	}
	t.Run("under Pod Security restricted, with a root that is read-only", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "env-files", fakegpu.Config{Devices: devices}, "pod-security.kubernetes.io/enforce=restricted")
		c := strictly(asking(corev1.Container{Name: "trainer", Image: "gpuslice.test/path:v1"}), 1000)
		c.SecurityContext.ReadOnlyRootFilesystem = new(true)
		s.create(of(c))
		s.awaitLine("train", "trainer", "the recorded value", func(line string) bool { return line == "path=/gpuslice/shim:/workspace:" })
	})
	t.Run("a static program without Python runs as without it", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "env-files", fakegpu.Config{Devices: devices})
		s.create(of(sliced("trainer", "hold 4GiB", "leave")))
		if containerOf(s.get("train"), "gpuslice-record-0") == nil {
			t.Error("nothing records its image")
		}
		s.awaitPhase("train", corev1.PodSucceeded)
	})
}

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster/box"
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

// show prints the variable, of a container that is to load the shim where its file is there too, and ends as its argument says.
const show = `#!/bin/sh
case "$PYTHONPATH" in /gpuslice/*) cat /gpuslice/shim/sitecustomize.py > /dev/null || exit 1;; esac
echo "path=$PYTHONPATH"
exit "${1:-0}"
`

// Images that start their program without the variables that they were given.
const (
	clearsName   = "gpuslice.test/clears:v1"
	replacesName = "gpuslice.test/replaces:v1"
)

// pythonImages run what they like: a program that prints the variable.
func pythonImages() (all []image.Image, err error) {
	const program = "/usr/bin/show"
	script := filepath.Join(box.Dir(), "show")
	if err := os.WriteFile(script, []byte(show), 0o755); err != nil {
		return nil, err
	}
	entrypoints := map[string][]string{
		clearsName:   {"/usr/bin/env", "-i", program},
		replacesName: {"/usr/bin/env", "-i", "PYTHONPATH=/own", program},
	}
	for name := range pythonPaths() {
		entrypoints[name] = []string{program}
	}
	for name, entrypoint := range entrypoints {
		i, err := shellOf(name, entrypoint...)
		if err != nil {
			return nil, err
		}
		files, err := image.Program("/usr/bin/env", "/usr/bin/env")
		if err != nil {
			return nil, err
		}
		maps.Copy(i.Files, files)
		i.Files[program], i.Env = script, pythonPaths()[name]
		all = append(all, i)
	}
	return all, nil
}

// ofPyTorch is a pod of a PyTorch that reads no limit from the environment.
func ofPyTorch(c corev1.Container) *corev1.Pod {
	p := once(slice("8Gi", "train", asking(c)))
	p.Labels[api.LabelFramework] = "pytorch-2.4"
	return p
}

// TestShimByPod is about containers whose pod says what runs, or what the variable is.
func TestShimByPod(t *testing.T) {
	t.Parallel()
	literal := []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/own"}}
	for name, tt := range map[string]struct {
		c        corev1.Container
		byShim   bool // the shim's program starts it
		line     string
		exitCode int32
	}{
		"the command starts behind the shim, and keeps what the image has": {
			corev1.Container{Image: "gpuslice.test/path:v1", Command: []string{"/usr/bin/show"}}, true, "path=/gpuslice/shim:/workspace:", 0},
		"the command of an image that has nothing there": {
			corev1.Container{Image: "gpuslice.test/without-path:v1", Command: []string{"/usr/bin/show"}}, true, "path=/gpuslice/shim", 0},
		"a program that the image's PATH finds, and its arguments and exit status": {
			corev1.Container{Image: "gpuslice.test/odd-path:v1", Command: []string{"show"}, Args: []string{"7"}},
			true, "path=/gpuslice/shim:/it's", 7},
		"a command that clears the environment starts as it is": {
			corev1.Container{Image: "gpuslice.test/path:v1", Command: []string{"/usr/bin/env", "-i", "show"}}, false, "path=", 0},
		"a value that the pod has stays behind the shim": {
			corev1.Container{Image: "gpuslice.test/path:v1", Env: literal}, false, "path=/gpuslice/shim:/own", 0},
		"a value that the pod has beside a command": {
			corev1.Container{Image: "gpuslice.test/path:v1", Command: []string{"/usr/bin/show"}, Env: literal},
			false, "path=/gpuslice/shim:/own", 0},
		"an empty value": {
			corev1.Container{Image: "gpuslice.test/path:v1", Env: []corev1.EnvVar{{Name: "PYTHONPATH"}}}, false, "path=/gpuslice/shim", 0},
		"of several values the last": {
			corev1.Container{Image: "gpuslice.test/path:v1", Env: append([]corev1.EnvVar{{Name: "PYTHONPATH", Value: "/first"}}, literal...)},
			false, "path=/gpuslice/shim:/own", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "env-files", fakegpu.Config{Devices: devices})
			tt.c.Name = "trainer"
			made := containerOf(s.create(ofPyTorch(tt.c)), "trainer")
			if got := slices.Contains(made.Command, limits.ShimProgram); got != tt.byShim {
				t.Errorf("the command is %q", made.Command)
			}
			s.awaitLine("train", "trainer", tt.line, func(line string) bool { return line == tt.line })
			if end := s.awaitEnd("train", "trainer"); end.ExitCode != tt.exitCode {
				t.Errorf("exit code %d, want %d", end.ExitCode, tt.exitCode)
			}
		})
	}
}

// TestShimByFile is about containers whose image alone says what runs: the kubelet gives them what a container of the image
// recorded.
func TestShimByFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ image, line string }{
		"behind the shim is what the image has":                              {"gpuslice.test/path:v1", "path=/gpuslice/shim:/workspace:"},
		"an image that has nothing there":                                    {"gpuslice.test/without-path:v1", "path=/gpuslice/shim"},
		"what no file can hold stays as it is":                               {"gpuslice.test/odd-path:v1", "path=/it's"},
		"an entrypoint that clears the environment runs as without the shim": {clearsName, "path="},
		"an entrypoint that replaces it":                                     {replacesName, "path=/own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "env-files", fakegpu.Config{Devices: devices})
			s.create(ofPyTorch(corev1.Container{Name: "trainer", Image: tt.image}))
			s.awaitLine("train", "trainer", tt.line, func(line string) bool { return line == tt.line })
			s.awaitPhase("train", corev1.PodSucceeded)
		})
	}
	t.Run("under Pod Security restricted, with a root that is read-only", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "env-files", fakegpu.Config{Devices: devices}, "pod-security.kubernetes.io/enforce=restricted")
		c := strictly(corev1.Container{Name: "trainer", Image: "gpuslice.test/path:v1"}, 1000)
		c.SecurityContext.ReadOnlyRootFilesystem = new(true)
		s.create(ofPyTorch(c))
		s.awaitLine("train", "trainer", "the recorded value", func(line string) bool { return line == "path=/gpuslice/shim:/workspace:" })
	})
	t.Run("a static program without Python runs as without it", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "env-files", fakegpu.Config{Devices: devices})
		s.create(ofPyTorch(tenant("trainer", "hold 4GiB", "leave")))
		if containerOf(s.get("train"), "gpuslice-record-0") == nil {
			t.Error("nothing records its image")
		}
		s.awaitPhase("train", corev1.PodSucceeded)
	})
}

package shim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

func TestIgnoresEnvironment(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"python train.py":                        false,
		"python -I train.py":                     true,
		"/opt/conda/bin/python3.11 -uE -m train": true,
		"python3 -W ignore -S train.py":          true,
		"python -u -m torch.distributed.run -E":  false,
		"python -mIES":                           false,
		"python -c -I":                           false,
		"python -X dev -I x.py":                  true,
		"python train.py -I":                     false,
		"grep -E x":                              false,
		"cd /app && exec python -I x.py":         true,
		"python x.py; grep -E y z":               false,
		"gpuslice-exec python -I x.py":           true,
		"python -O train.py -E":                  false,
	} {
		if got := ignoresEnvironment(commandline.Split(&corev1.Container{Command: []string{"sh", "-c", command}})); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}

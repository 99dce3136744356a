#!/usr/bin/env bash
# One would expect: the label nvidia.com/gpu.family is "blackwell" for all of compute capability 10 to 12.
# What happens: 10.x and 12.x are "blackwell", and 11.0, which CUDA 13 gave to Jetson Thor (10.1 before), is "undefined". The label is
# written all the same, so a selector on its presence holds and one on the family does not.
# github.com/NVIDIA/k8s-device-plugin v0.19.3, internal/lm/resource.go (getArchFamily).
# Needs gcc and no GPU: go-nvml's mock answers. The module's name lets it import the internal packages.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > go.mod <<'END'
module github.com/NVIDIA/k8s-device-plugin/finding

go 1.26

require github.com/NVIDIA/k8s-device-plugin v0.19.3
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	config "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	"github.com/NVIDIA/k8s-device-plugin/internal/lm"
	"github.com/NVIDIA/k8s-device-plugin/internal/resource"
)

const ok = nvml.SUCCESS

// family is the label of a node with one GPU of this compute capability.
func family(major, minor int) (string, error) {
	gpu := &mock.Device{
		GetNameFunc:                  func() (string, nvml.Return) { return "GPU", ok },
		GetMemoryInfoFunc:            func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 64 << 30}, ok },
		GetCudaComputeCapabilityFunc: func() (int, int, nvml.Return) { return major, minor, ok },
		GetMigModeFunc:               func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED },
		GetPciInfoFunc:               func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, ok },
		GetGpuFabricInfoFunc:         func() (nvml.GpuFabricInfo, nvml.Return) { return nvml.GpuFabricInfo{}, nvml.ERROR_NOT_SUPPORTED },
	}
	lib := &mock.Interface{
		InitFunc:     func() nvml.Return { return ok },
		ShutdownFunc: func() nvml.Return { return ok },
		ExtensionsFunc: func() nvml.ExtendedInterface {
			return &mock.ExtendedInterface{LookupSymbolFunc: func(string) error { return nil }}
		},
		SystemGetDriverVersionFunc:     func() (string, nvml.Return) { return "580.95.05", ok },
		SystemGetCudaDriverVersionFunc: func() (int, nvml.Return) { return 13000, ok },
		DeviceGetCountFunc:             func() (int, nvml.Return) { return 1, ok },
		DeviceGetHandleByIndexFunc:     func(int) (nvml.Device, nvml.Return) { return gpu, ok },
	}
	strategy, file := config.MigStrategyNone, ""
	c := &config.Config{Version: config.Version}
	c.Flags.MigStrategy, c.Flags.GFD = &strategy, &config.GFDCommandLineFlags{MachineTypeFile: &file}
	labeler, err := lm.NewDeviceLabeler(resource.NewNVMLManager(lib, device.New(lib)), c)
	if err != nil {
		return "", err
	}
	labels, err := labeler.Labels()
	if err != nil {
		return "", err
	}
	return labels["nvidia.com/gpu.family"], nil
}

func main() {
	same := true
	for _, c := range []struct {
		major, minor int
		want         string
	}{{9, 0, "hopper"}, {10, 3, "blackwell"}, {11, 0, "undefined"}, {12, 1, "blackwell"}} {
		got, err := family(c.major, c.minor)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Printf("compute capability %d.%d: nvidia.com/gpu.family=%s\n", c.major, c.minor, got)
		same = same && got == c.want
	}
	if !same {
		fmt.Println("CHANGED: the behaviour is another one")
		os.Exit(1)
	}
}
END
echo "github.com/NVIDIA/k8s-device-plugin v0.19.3"
GOFLAGS=-mod=mod go run -trimpath . 2> err || { cat err; exit 1; }

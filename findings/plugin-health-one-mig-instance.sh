#!/usr/bin/env bash
# One would expect: an Xid of a MIG instance makes the device plugin take that instance off the node, and an Xid of the whole GPU takes
# all of its instances off.
# What happens: the plugin remembers one device per GPU, whichever came last in a walk over a Go map. Of seven instances each with an
# Xid of its own one is marked unhealthy, and for an Xid of the whole GPU also one. Six stay offered.
# github.com/NVIDIA/k8s-device-plugin v0.19.3, internal/rm/health.go (checkHealth, parentToDeviceMap).
# Needs gcc and no GPU: go-nvml's mock answers. The probe is a test added to a copy of the module.
set -euo pipefail
version=v0.19.3
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
source=$(go mod download -json "github.com/NVIDIA/k8s-device-plugin@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
cp -r "$source" plugin
chmod -R u+w plugin
cd plugin
rm internal/rm/*_test.go
cat > internal/rm/finding_test.go <<'END'
package rm

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	spec "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
)

const ok = nvml.SUCCESS

// unhealthy counts the instances that are marked after these events of a GPU with seven MIG instances.
func unhealthy(t *testing.T, events []nvml.EventData) int {
	gpu := &mock.Device{
		GetUUIDFunc:                func() (string, nvml.Return) { return "GPU-0", ok },
		GetSupportedEventTypesFunc: func() (uint64, nvml.Return) { return nvml.EventTypeXidCriticalError, ok },
		RegisterEventsFunc:         func(uint64, nvml.EventSet) nvml.Return { return ok },
	}
	devices, byUUID := Devices{}, map[string]nvml.Device{"GPU-0": gpu}
	for i := range 7 {
		id := fmt.Sprint("MIG-", i)
		devices[id] = &Device{Index: fmt.Sprint("0:", i)}
		devices[id].ID = id
		byUUID[id] = &mock.Device{
			IsMigDeviceHandleFunc:                  func() (bool, nvml.Return) { return true, ok },
			GetDeviceHandleFromMigDeviceHandleFunc: func() (nvml.Device, nvml.Return) { return gpu, ok },
			GetGpuInstanceIdFunc:                   func() (int, nvml.Return) { return i + 7, ok },
			GetComputeInstanceIdFunc:               func() (int, nvml.Return) { return 0, ok },
		}
	}
	stop := make(chan interface{})
	lib := &mock.Interface{
		InitFunc:     func() nvml.Return { return ok },
		ShutdownFunc: func() nvml.Return { return ok },
		DeviceGetHandleByUUIDFunc: func(id string) (nvml.Device, nvml.Return) {
			d, known := byUUID[id]
			if !known {
				return nil, nvml.ERROR_NOT_FOUND
			}
			return d, ok
		},
		EventSetCreateFunc: func() (nvml.EventSet, nvml.Return) {
			next := 0
			return &mock.EventSet{
				FreeFunc: func() nvml.Return { return ok },
				WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
					if next == len(events) {
						close(stop)
						return nvml.EventData{}, nvml.ERROR_TIMEOUT
					}
					e := events[next]
					e.Device, e.EventType, e.EventData = gpu, nvml.EventTypeXidCriticalError, 79
					next++
					return e, ok
				},
			}, ok
		},
	}
	fail := true
	c := &spec.Config{}
	c.Flags.FailOnInitError = &fail
	marked := make(chan *Device, 100)
	m := &nvmlResourceManager{resourceManager: resourceManager{config: c, devices: devices}, nvml: lib}
	if err := m.checkHealth(stop, devices, marked); err != nil {
		t.Fatal(err)
	}
	close(marked)
	seen := map[string]bool{}
	for d := range marked {
		seen[d.ID] = true
	}
	return len(seen)
}

func TestFinding(t *testing.T) {
	var each []nvml.EventData
	for i := range 7 {
		each = append(each, nvml.EventData{GpuInstanceId: uint32(i + 7), ComputeInstanceId: 0})
	}
	own := unhealthy(t, each)
	whole := unhealthy(t, []nvml.EventData{{GpuInstanceId: 0xFFFFFFFF, ComputeInstanceId: 0xFFFFFFFF}})
	fmt.Printf("RESULT seven MIG instances, an Xid 79 of each: %d marked unhealthy\n", own)
	fmt.Printf("RESULT seven MIG instances, an Xid 79 of the whole GPU: %d marked unhealthy\n", whole)
	if own != 1 || whole != 1 {
		t.Error("CHANGED: the behaviour is another one")
	}
}
END
echo "github.com/NVIDIA/k8s-device-plugin $version"
go test -trimpath -vet=off ./internal/rm -run '^TestFinding$' -count=1 -v > out 2>&1 || { cat out; exit 1; }
grep RESULT out

package fakegpu

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"
)

func TestNode(t *testing.T) {
	t.Run("shows what the config sets", func(t *testing.T) {
		g := load(t)
		g.say(t,
			Config{Devices: 2, Name: "NVIDIA L4", Driver: "560.35.03", CUDA: "12.6", ComputeCapability: "8.9", ComputeMode: "exclusive-process"})
		d := g.device(t, 1)
		driver, _ := g.SystemGetDriverVersion()
		cuda, _ := g.SystemGetCudaDriverVersion()
		count, _ := g.DeviceGetCount()
		name, _ := d.GetName()
		uuid, _ := d.GetUUID()
		minor, _ := d.GetMinorNumber()
		major, minorCC, _ := d.GetCudaComputeCapability()
		arch, _ := d.GetArchitecture()
		mode, _ := d.GetComputeMode()
		pci, _ := d.GetPciInfo()
		again, _ := g.DeviceGetHandleByUUID(uuid)
		got := []any{driver, cuda, count, name, uuid, minor, fmt.Sprintf("%d.%d", major, minorCC), arch,
			mode == nvml.COMPUTEMODE_EXCLUSIVE_PROCESS, pci.Bus, again == d}
		want := []any{"560.35.03", 12060, 2, "NVIDIA L4", "GPU-00000000-0000-4000-8000-000000000001", 1, "8.9",
			nvml.DeviceArchitecture(nvml.DEVICE_ARCH_ADA), true, uint32(8), true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
		v2, ret := d.GetMemoryInfo_v2()
		if ret != nvml.SUCCESS || Bytes(v2.Total) != 80*GiB {
			t.Errorf("newer total: %d, %v", v2.Total, ret)
		}
		if _, ret := d.GetTemperature(nvml.TEMPERATURE_GPU); ret != nvml.ERROR_NOT_SUPPORTED {
			t.Errorf("a function that is not imitated: %v", ret)
		}
		if _, ret := g.DeviceGetHandleByIndex(2); ret != nvml.ERROR_INVALID_ARGUMENT {
			t.Errorf("a device that is not there: %v", ret)
		}
	})
}

func TestNodeWithoutDevice(t *testing.T) {
	t.Run("has a driver", func(t *testing.T) {
		g := load(t)
		g.say(t, Config{Devices: -1})
		if ret := g.Init(); ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
		defer g.Shutdown()
		if n, ret := g.DeviceGetCount(); ret != nvml.SUCCESS || n != 0 {
			t.Errorf("%d devices, %v", n, ret)
		}
	})
}

func TestVisibleDevices(t *testing.T) {
	t.Run("are those that the variable names", func(t *testing.T) {
		const second = "GPU-00000000-0000-4000-8000-000000000001"
		mig := "MIG-00000000-0000-5000-8000-000000010001"
		g := load(t)
		tests := []struct {
			name, visible string
			want          []string
		}{
			{"all", "all", []string{"0: 0 []", "1: 1 [0 1]", "2: 2 []"}},
			{"an index", "2", []string{"0: 2 []"}},
			{"a UUID", second, []string{"0: 1 [0 1]"}},
			{"two", "0," + second, []string{"0: 0 []", "1: 1 [0 1]"}},
			{"a MIG instance", mig, []string{"0: 1 [1]"}},
			{"a MIG instance by its place", "1:0", []string{"0: 1 [0]"}},
			{"none", "void", nil},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Setenv("NVIDIA_VISIBLE_DEVICES", tt.visible)
				g.say(t, Config{Devices: 3, On: map[int]Fault{1: {MIG: []string{"1g.10gb", "2g.20gb"}}}})
				var got []string
				n, _ := g.DeviceGetCount()
				for i := range n {
					d := g.device(t, i)
					minor, _ := d.GetMinorNumber()
					var instances []int
					for j := range 7 {
						if m, ret := d.GetMigDeviceHandleByIndex(j); ret == nvml.SUCCESS {
							uuid, _ := m.GetUUID()
							instances = append(instances, int(uuid[len(uuid)-1]-'0'))
						}
					}
					got = append(got, fmt.Sprintf("%d: %d %v", i, minor, instances))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("index: minor [instances] (-want +got):\n%s", diff)
				}
				if ret := g.Init(); (ret == nvml.ERROR_DRIVER_NOT_LOADED) != (tt.want == nil) {
					t.Errorf("nvmlInit: %v", ret)
				} else if ret == nvml.SUCCESS {
					g.Shutdown()
				}
			})
		}
	})
}

func TestMIG(t *testing.T) {
	t.Run("instances have their own readings", func(t *testing.T) {
		g := load(t)
		g.start(t, "a", "gpu0.0=1GiB")
		g.start(t, "b", "MIG-00000000-0000-5000-8000-000000000001=2GiB")
		g.start(t, "c", "gpu0.2=3GiB")
		g.say(t, Config{Fault: Fault{MIG: []string{"1g.10gb", "1g.10gb", "3g.40gb"}, Closed: true}})
		parent := g.device(t, 0)
		if now, _, ret := parent.GetMigMode(); ret != nvml.SUCCESS || now != nvml.DEVICE_MIG_ENABLE {
			t.Fatalf("MIG mode %d, %v", now, ret)
		}
		want := []string{
			"NVIDIA A100-SXM4-80GB MIG 1g.10gb gi=7 slices=1 processors=14\ntotal: 1024 of 9728\ncompute: a=1024@7.0\n",
			"NVIDIA A100-SXM4-80GB MIG 1g.10gb gi=8 slices=1 processors=14\ntotal: 2048 of 9728\ncompute: b=2048@8.0\n",
			"NVIDIA A100-SXM4-80GB MIG 3g.40gb gi=1 slices=3 processors=42\ntotal: 3072 of 38912\ncompute: c=3072@1.0\n",
		}
		for i, want := range want {
			m, ret := parent.GetMigDeviceHandleByIndex(i)
			if ret != nvml.SUCCESS {
				t.Fatal(ret)
			}
			name, _ := m.GetName()
			gi, _ := m.GetGpuInstanceId()
			a, _ := m.GetAttributes()
			got := fmt.Sprintf("%s gi=%d slices=%d processors=%d\n%s", name, gi, a.GpuInstanceSliceCount, a.MultiprocessorCount, g.reading(m))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("instance %d (-want +got):\n%s", i, diff)
			}
			if p, ret := m.GetDeviceHandleFromMigDeviceHandle(); ret != nvml.SUCCESS || p != parent {
				t.Errorf("the parent of instance %d: %v", i, ret)
			}
		}
		if _, ret := parent.GetMigDeviceHandleByIndex(3); ret != nvml.ERROR_NOT_FOUND {
			t.Errorf("an instance that is not there: %v", ret)
		}
	})
}

func TestFailedStart(t *testing.T) {
	t.Run("leaves what is open", func(t *testing.T) {
		g := load(t)
		d := g.device(t, 0)
		g.say(t, Config{Fault: Fault{Fail: []Fail{{Call: "nvmlInit*", Return: "LIB_RM_VERSION_MISMATCH"}}}})
		if ret := g.Init(); ret != nvml.ERROR_LIB_RM_VERSION_MISMATCH {
			t.Errorf("nvmlInit: %v", ret)
		}
		if _, ret := d.GetMemoryInfo(); ret != nvml.SUCCESS {
			t.Errorf("a failed nvmlInit shut what was open: %v", ret)
		}
	})
}

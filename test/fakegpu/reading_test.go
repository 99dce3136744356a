package fakegpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReading(t *testing.T) {
	t.Run("shows what the processes hold", func(t *testing.T) {
		g := load(t)
		g.start(t, "a", "gpu0=4096MiB")
		g.start(t, "b", "gpu0=1GiB/C")
		g.start(t, "g", "gpu0=64MiB/G")
		g.start(t, "m", "gpu0=512MiB/M+C")
		g.start(t, "x", "gpu1=7GiB")
		g.start(t, "u", "GPU-00000000-0000-4000-8000-000000000001=1MiB")
		g.start(t, "i", "gpu0.1=2GiB")
		const (
			total   = "total: 5696 of 81920\n"
			compute = "compute: a=4096 b=1024 m=512\n"
			rest    = "graphics: g=64\nmps: m=512\n"
		)
		every := func(ret string) string { return "compute: " + ret + "\ngraphics: " + ret + "\nmps: " + ret + "\n" }
		fail := func(call, ret string) Config { return Config{Fault: Fault{Fail: []Fail{{Call: call, Return: ret}}}} }
		tests := []struct {
			name   string
			config Config
			device int
			want   string
		}{
			{"each kind in its list, an MPS client in two", Config{}, 0, total + compute + rest},
			{"another device has others", Config{Devices: 2}, 1, "total: 7169 of 81920\ncompute: u=1 x=7168\n"},
			{"MPS clients in their own list only", Config{Fault: Fault{MPSClients: "mps"}}, 0, total + "compute: a=4096 b=1024\n" + rest},
			{"MPS clients in the compute list only", Config{Fault: Fault{MPSClients: "compute"}}, 0, total + compute + "graphics: g=64\n"},
			{"neighbours and the driver's own share count in the total", Config{Fault: Fault{Base: 400 * MiB, Others: 20 * GiB}},
				0, "total: 26576 of 81920\n" + compute + rest},
			{"a total never exceeds the device", Config{Fault: Fault{Memory: 4 * GiB}}, 0, "total: 4096 of 4096\n" + compute + rest},
			{"duplicates, each with all", Config{Fault: Fault{Duplicates: true}}, 0,
				total + "compute: a=4096 a=4096 b=1024 b=1024 m=512 m=512\ngraphics: g=64 g=64\nmps: m=512 m=512\n"},
			{"all ones", Config{Fault: Fault{Figures: "all-ones"}}, 0, total + "compute: a=? b=? m=?\ngraphics: g=?\nmps: m=?\n"},
			{"zero while the total moves", Config{Fault: Fault{Figures: "zero"}}, 0, total + "compute: a=0 b=0 m=0\ngraphics: g=0\nmps: m=0\n"},
			{"PIDs of another namespace", Config{Fault: Fault{PIDs: "+5000000"}},
				0, total + "compute: a'=4096 b'=1024 m'=512\ngraphics: g'=64\nmps: m'=512\n"},
			{"an entry that is no process", Config{Fault: Fault{Listed: []Listed{{4194999, GiB}}}},
				0, total + "compute: 4194999=1024 a=4096 b=1024 m=512\n" + rest},
			{"lists unsupported", fail("nvmlDeviceGet*RunningProcesses*", "NOT_SUPPORTED"), 0, total + every("Not Supported")},
			{"no permission", fail("nvmlDeviceGet*RunningProcesses*", "NO_PERMISSION"), 0, total + every("Insufficient Permissions")},
			{"a time-out of one list", fail("nvmlDeviceGetCompute*", "TIMEOUT"), 0, total + "compute: Timeout\n" + rest},
			{"unified memory has no total", fail("nvmlDeviceGetMemoryInfo*", "NOT_SUPPORTED"), 0, "total: Not Supported\n" + compute + rest},
			{"a device lost", Config{On: map[int]Fault{0: {Fail: []Fail{{Call: "*", Return: "GPU_IS_LOST"}}}}},
				0, "total: GPU is lost\n" + every("GPU is lost")},
			{"a device to be reset", fail("nvmlDeviceGet*Processes*", "RESET_REQUIRED"), 0, total + every("GPU requires reset")},
			{"a lost device beside a good one", Config{Devices: 2, On: map[int]Fault{1: {Fail: []Fail{{Call: "*", Return: "GPU_IS_LOST"}}}}},
				0, total + compute + rest},
			{"the lost one of them", Config{Devices: 2, On: map[int]Fault{1: {Fail: []Fail{{Call: "*", Return: "GPU_IS_LOST"}}}}},
				1, "total: GPU is lost\n" + every("GPU is lost")},
			{"a device's own switch wins", Config{Fault: Fault{Figures: "zero"}, On: map[int]Fault{0: {Figures: "true"}}},
				0, total + compute + rest},
			{"MIG: the device shows its instances' too", Config{Fault: Fault{MIG: []string{"1g.10gb", "3g.40gb"}}}, 0,
				"total: 7744 of 81920\ncompute: a=4096 b=1024 i=2048@1.0 m=512\n" + rest},
			{"MIG: the device is shut to who may not monitor", Config{Fault: Fault{MIG: []string{"1g.10gb", "3g.40gb"}, Closed: true}}, 0,
				"total: Insufficient Permissions\n" + every("Insufficient Permissions")},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				g.say(t, tt.config)
				if diff := cmp.Diff(tt.want, g.reading(g.device(t, tt.device))); diff != "" {
					t.Errorf("reading (-want +got):\n%s", diff)
				}
			})
		}
	})
}

package fakegpu

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	t.Run("prints what is set and nothing else", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name   string
			config Config
			want   string
		}{
			{"a zero config is all default", Config{}, ""},
			{"a node without devices", Config{Devices: -1}, "devices=0\n"},
			{"a node of two devices, one of which is lost",
				Config{Devices: 2, Name: "NVIDIA L4", On: map[int]Fault{1: {Fail: []Fail{{Call: "nvmlDevice*", Return: "GPU_IS_LOST"}}}}},
				"devices=2\nname=NVIDIA L4\nfail@1=nvmlDevice*:GPU_IS_LOST\n"},
			{"amounts, times and lists", Config{Fault: Fault{Memory: 24 * GiB, Base: 1500, MIG: []string{"1g.10gb", "3g.40gb"}, Closed: true,
				Listed: []Listed{{7, GiB}}, Hidden: []int{8, 9}, Linger: 1500 * time.Millisecond,
				Fail: []Fail{{"nvmlInit_v2", "UNKNOWN", 2}}, Hang: []string{"nvmlDeviceGet*"}, Slow: []Slow{{"*", time.Second}}}},
				"memory=24576MiB\nbase=1500B\nmig=1g.10gb,3g.40gb\nmonitor=no\nlisted=7:1024MiB\nhidden=8\nhidden=9\nlinger=1500ms\n" +
					"fail=nvmlInit_v2:UNKNOWN:2\nhang=nvmlDeviceGet*\nslow=*:1000ms\n"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(tt.want, tt.config.String()); diff != "" {
					t.Errorf("config (-want +got):\n%s", diff)
				}
			})
		}
	})
}

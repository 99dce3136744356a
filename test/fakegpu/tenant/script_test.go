package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	t.Run("reads steps", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name string
			args []string
			want script
		}{
			{"steps as one argument or several", []string{"hold 4GiB", "grow", "1GiB", "2GiB", "2s"}, script{kind: "C",
				steps: []step{{do: "hold", amount: 4096}, {do: "grow", amount: 1024, to: 2048, length: 2 * time.Second}}}},
			{"what it is", []string{"device 1.0", "node t7", "kind M+C", "ignore-term", "fork-on-term 1MiB", "exit-after 3s"},
				script{device: "1.0", node: "t7", kind: "M+C", ignoreTerm: true, forkOnTerm: 1, exitAfter: 3 * time.Second}},
			{"attacks", []string{"occupy 9 connect 1.2.3.4:80 fifo /a/b chroot /proc end-first-thread"}, script{kind: "C",
				steps: []step{{do: "occupy", count: 9}, {do: "connect", text: "1.2.3.4:80"}, {do: "fifo", text: "/a/b"},
					{do: "chroot", text: "/proc"}, {do: "end-first-thread"}}}},
			{"every other step", []string{"spike 9GiB 500ms wait 1s fork 2 4GiB say crossed reexec leave"}, script{kind: "C",
				steps: []step{{do: "spike", amount: 9216, length: 500 * time.Millisecond}, {do: "wait", length: time.Second},
					{do: "fork", count: 2, amount: 4096}, {do: "say", text: "crossed"}, {do: "reexec"}, {do: "leave"}}}},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				got, err := parse(tt.args)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(script{}, step{})); diff != "" {
					t.Errorf("script (-want +got):\n%s", diff)
				}
				got.device = "gpu0" // a running script knows its device
				again, err := parse(got.arguments(0))
				if diff := cmp.Diff(got, again, cmp.AllowUnexported(script{}, step{})); diff != "" || err != nil {
					t.Errorf("printed and read again (-want +got): %v\n%s", err, diff)
				}
			})
		}
	})

	t.Run("rejects what it does not know", func(t *testing.T) {
		t.Parallel()
		for _, args := range []string{"dance", "hold", "hold 4", "hold -1GiB", "hold 1KiB",
			"hold 99999GiB", "wait soon", "say", "fork two 1GiB"} {
			if s, err := parse(strings.Fields(args)); err == nil {
				t.Errorf("%q is read as %+v", args, s)
			}
		}
	})
}

func TestTenantDevice(t *testing.T) {
	t.Parallel()
	t.Run("is the one that its container was given", func(t *testing.T) {
		t.Parallel()
		tests := []struct{ said, visible, want string }{
			{"", "", "gpu0"}, {"", "all", "gpu0"}, {"1", "all", "gpu1"}, {"1.2", "", "gpu1.2"},
			{"", "GPU-a,GPU-b", "GPU-a"}, {"", "MIG-a", "MIG-a"}, {"2", "GPU-a", "gpu2"}, {"MIG-b", "GPU-a", "MIG-b"}, {"gpu3", "GPU-a", "gpu3"},
		}
		for _, tt := range tests {
			if got := ownDevice(tt.said, tt.visible); got != tt.want {
				t.Errorf("ownDevice(%q, %q) = %q, want %q", tt.said, tt.visible, got, tt.want)
			}
		}
	})
}

package box

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseHierarchies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, mountinfo string
		want            []hierarchy
	}{
		{
			name: "one controller each, and a named one",
			mountinfo: `30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
32 30 0:28 /docker/x /sys/fs/cgroup/systemd rw shared:9 - cgroup systemd rw,xattr,release_agent=/lib/agent,name=systemd
`,
			want: []hierarchy{
				{path: "/sys/fs/cgroup/cpu", options: []string{"cpu"}},
				{path: "/sys/fs/cgroup/systemd", options: []string{"name=systemd"}},
			},
		},
		{
			name:      "two controllers in one hierarchy stay together",
			mountinfo: "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct,clone_children\n",
			want:      []hierarchy{{path: "/sys/fs/cgroup/cpu,cpuacct", options: []string{"cpu", "cpuacct"}}},
		},
		{
			name: "v2 beside v1, mounts elsewhere and broken lines are left alone",
			mountinfo: `33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
34 30 0:30 / /mnt/cgroup/cpu rw - cgroup cgroup rw,cpu
35 30
`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, parseHierarchies(tc.mountinfo), cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMissingCapability(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, status, want string }{
		{"full root lacks nothing", "CapPrm:\t0\nCapEff:\t000001ffffffffff\n", ""},
		{"the default set of a container lacks SYS_ADMIN", "CapEff:\t00000000a80425fb\n", "SYS_ADMIN"},
		{"without NET_ADMIN there is no network of its own", "CapEff:\t000001ffffffefff\n", "NET_ADMIN"},
		{"a status without the line has nothing", "Name:\tx\n", "SYS_ADMIN"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := missingCapability(tc.status); got != tc.want {
				t.Errorf("missingCapability() = %q, want %q", got, tc.want)
			}
		})
	}
}

package cgroup

import (
	"errors"
	"strings"
	"testing"
)

const (
	trainer = "1f2e3d4c5b6a79880f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778"
	other   = "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"
	pod     = "0aa1b2c3-4d5e-6f70-8192-a3b4c5d6e7f8"
	podU    = "0aa1b2c3_4d5e_6f70_8192_a3b4c5d6e7f8"
	another = "ffffffff-0000-4000-8000-000000000001"
)

// v1 is the text of a cgroup v1 node, where every controller has the same path.
func v1(at string) string {
	var text strings.Builder
	for _, controllers := range []string{"12:rdma:/", "11:memory:" + at, "10:pids:" + at,
		"9:freezer:" + at, "8:blkio:" + at, "7:devices:" + at,
		"6:net_cls,net_prio:" + at, "5:cpu,cpuacct:" + at, "4:hugetlb:" + at, "3:cpuset:" + at,
		"2:perf_event:" + at, "1:name=systemd:" + at, "0::/"} {
		text.WriteString(controllers + "\n")
	}
	return text.String()
}

func v2(at string) string { return "0::" + at + "\n" }

func TestMemberOf(t *testing.T) {
	for _, c := range []struct {
		name, text string
		pod, id    string // empty: no container of a pod
	}{
		{"v1, cgroupfs, containerd", v1("/kubepods/burstable/pod" + pod + "/" + trainer), pod, trainer},
		{"v1, cgroupfs, guaranteed", v1("/kubepods/pod" + pod + "/" + trainer), pod, trainer},
		{"v1, cgroupfs, CRI-O", v1("/kubepods/besteffort/pod" + pod + "/crio-" + trainer), pod, trainer},
		{"v1, systemd, containerd",
			v1("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + podU + ".slice/cri-containerd-" + trainer + ".scope"),
			pod, trainer},
		{"v1, systemd, guaranteed", v1("/kubepods.slice/kubepods-pod" + podU + ".slice/cri-containerd-" + trainer + ".scope"), pod, trainer},
		{"v1, systemd, docker",
			v1("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + podU + ".slice/docker-" + trainer + ".scope"), pod, trainer},
		{"v1, kubelet with systemd, containerd without",
			v1("/system.slice/containerd.service/kubepods-burstable-pod" + podU + ".slice:cri-containerd:" + trainer), pod, trainer},
		{"v1, private cgroup namespace", v1("/../../besteffort/pod" + pod + "/" + trainer), pod, trainer},
		{"v2, systemd, containerd",
			v2("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + podU + ".slice/cri-containerd-" + trainer + ".scope"),
			pod, trainer},
		{"v2, systemd, CRI-O",
			v2("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + podU + ".slice/crio-" + trainer + ".scope"), pod, trainer},
		{"v2, systemd, CRI-O with crun's own cgroup",
			v2("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + podU + ".slice/crio-" + trainer + ".scope/container"),
			pod, trainer},
		{"v2, cgroupfs", v2("/kubepods/besteffort/pod" + pod + "/" + trainer), pod, trainer},
		{"v2, cgroupfs, crun's own cgroup", v2("/kubepods/besteffort/pod" + pod + "/" + trainer + "/container"), pod, trainer},
		{"v2, kind", v2("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + podU +
			".slice/cri-containerd-" + trainer + ".scope"), pod, trainer},
		{"v2, a kubelet with a root cgroup of its own", v2("/k8s/kubepods/burstable/pod" + pod + "/" + trainer), pod, trainer},
		{"v2, private cgroup namespace, cgroupfs, same class", v2("/../../pod" + pod + "/" + trainer), pod, trainer},
		{"v2, private cgroup namespace, cgroupfs, other class", v2("/../../../burstable/pod" + pod + "/" + trainer), pod, trainer},
		{"v2, private cgroup namespace, systemd",
			v2("/../../../kubepods-besteffort.slice/kubepods-besteffort-pod" + podU + ".slice/cri-containerd-" + trainer + ".scope"), pod, trainer},
		{"v2, private cgroup namespace, crun's own cgroup", v2("/../../../pod" + pod + "/crio-" + trainer + ".scope/container"), pod, trainer},
		{"user namespace: nothing differs", v2("/kubepods/pod" + pod + "/" + trainer + "/init.scope"), pod, trainer},
		{"a static pod", v2("/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" + trainer), "0123456789abcdef0123456789abcdef", trainer},
		{"a cgroup of the tenant's", v2("/kubepods/pod" + pod + "/" + trainer + "/ray/worker-7"), pod, trainer},
		{"docker in a pod", v1("/kubepods/burstable/pod" + pod + "/" + trainer + "/docker/" + other), pod, trainer},
		{"a cluster in a pod: the outermost pod counts",
			v2("/kubepods/burstable/pod" + pod + "/" + trainer + "/kubelet/kubepods/besteffort/pod" + another + "/" + other), pod, trainer},
		{"a cgroup of the tenant's that is called like another's pod",
			v2("/kubepods/pod" + pod + "/" + trainer + "/kubepods/pod" + another + "/" + other), pod, trainer},
		{"a removed cgroup", v2("/kubepods/pod" + pod + "/" + trainer + " (deleted)"), pod, trainer},
		{"v1 and a v2 tree that agree", v1("/kubepods/pod"+pod+"/"+trainer) + v2("/kubepods/pod"+pod+"/"+trainer), pod, trainer},

		{"hierarchies of two containers",
			"11:memory:/kubepods/pod" + pod + "/" + trainer + "\n10:pids:/kubepods/pod" + pod + "/" + other + "\n", "", ""},
		{"hierarchies of two pods",
			"11:memory:/kubepods/pod" + pod + "/" + trainer + "\n10:pids:/kubepods/pod" + another + "/" + trainer + "\n", "", ""},
		{"a process of the node", v2("/system.slice/containerd.service"), "", ""},
		{"a user's session", v2("/user.slice/user-1000.slice/session-3.scope"), "", ""},
		{"the first process", v2("/init.scope"), "", ""},
		{"the reader itself, in a private cgroup namespace", v2("/"), "", ""},
		{"a container of the reader's pod, in a private cgroup namespace", v2("/../" + trainer), "", ""},
		{"docker beside the kubelet", v2("/docker/" + trainer), "", ""},
		{"a folder that is called like a pod, outside the kubelet's", v2("/docker/pod" + pod + "/" + trainer), "", ""},
		{"CRI-O's monitor", v2("/kubepods.slice/kubepods-pod" + podU + ".slice/crio-conmon-" + trainer + ".scope"), "", ""},
		{"the pod's own cgroup", v2("/kubepods/pod" + pod), "", ""},
		{"a name of the pod's that is no container", v2("/kubepods/pod" + pod + "/kata_overhead"), "", ""},
		{"an ID that is too short", v2("/kubepods/pod" + pod + "/" + trainer[1:]), "", ""},
		{"an ID that is too long", v2("/kubepods/pod" + pod + "/" + trainer + "0"), "", ""},
		{"a UID that is none", v2("/kubepods/pod" + strings.Repeat("-", 36) + "/" + trainer), "", ""},
		{"steps up below a pod", v2("/kubepods/pod" + pod + "/../" + trainer), "", ""},
		{"no line", "", "", ""},
		{"a line without a path", "0::\n1:memory\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := MemberOf(c.text)
			if want := (Member{c.pod, c.id}); got != want || (err == nil) != (c.pod != "") {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestMemberOfNobody(t *testing.T) {
	if _, err := MemberOf(v2("/system.slice")); !errors.Is(err, ErrNoPod) {
		t.Errorf("a process of the node: %v", err)
	}
	if _, err := MemberOf("1:a:/kubepods/pod" + pod + "/" + trainer + "\n2:b:/kubepods/pod" + pod +
		"/" + other + "\n"); !errors.Is(err, errDisagree) {
		t.Errorf("a process of two containers: %v", err)
	}
}

// FuzzMemberOf: whatever a tenant adds below its own cgroup, its processes stay
// its own.
func FuzzMemberOf(f *testing.F) {
	for _, below := range []string{"", "/container", "/../" + other, "/kubepods/pod" + another + "/" + other, ":cri-containerd:" + other,
		"/x\n0::/kubepods/pod" + another + "/" + other, "/kubepods-pod" + podU + ".slice:cri-containerd:" + other} {
		f.Add(below)
	}
	f.Fuzz(func(t *testing.T, below string) {
		if m, err := MemberOf(below); err == nil && (!apiUID.MatchString(m.PodUID) || len(m.ContainerID) != 64) {
			t.Errorf("%q gave %+v", below, m)
		}
		if strings.Contains(below, "\n") { // the kernel escapes it in a name
			return
		}
		for _, above := range []string{"/kubepods/pod" + pod + "/" + trainer, "/../../pod" + pod + "/" + trainer,
			"/kubepods.slice/kubepods-pod" + podU + ".slice/cri-containerd-" + trainer + ".scope"} {
			m, err := MemberOf("0::" + above + "/" + below)
			if err != nil || m != (Member{pod, trainer}) {
				t.Errorf("%q below %s gave %+v, %v", below, above, m, err)
			}
		}
	})
}

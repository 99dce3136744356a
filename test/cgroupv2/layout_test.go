package cgroupv2

import (
	"fmt"
	"path"
	"strings"
)

// layout is where a kubelet and a runtime put the cgroups of pods and containers.
type layout struct {
	name    string
	runtime string // the program that makes containers
	pod     string // a pod's cgroup, with its UID
	hyphen  string // what stands for a hyphen of the UID
	scope   string // a container's, with its ID
	below   string // the cgroup below that one in which the processes are
}

var layouts = []layout{
	{name: "containerd, cgroupfs", runtime: "runc", pod: "/kubepods/burstable/pod%s", hyphen: "-", scope: "%s"},
	{name: "containerd, systemd", runtime: "runc", hyphen: "_", scope: "cri-containerd-%s.scope",
		pod: "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice"},
	{name: "CRI-O with crun, cgroupfs", runtime: "crun", pod: "/kubepods/besteffort/pod%s", hyphen: "-", scope: "crio-%s"},
	{name: "CRI-O with crun, systemd", runtime: "crun", hyphen: "_", scope: "crio-%s.scope", below: "container",
		pod: "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod%s.slice"},
}

// container returns the cgroup of a container.
func (l layout) container(podUID, id string) string {
	return path.Join(fmt.Sprintf(l.pod, strings.ReplaceAll(podUID, "-", l.hyphen)), fmt.Sprintf(l.scope, id))
}

// processes returns the cgroup in which the container's processes start.
func (l layout) processes(podUID, id string) string {
	return path.Join(l.container(podUID, id), l.below)
}

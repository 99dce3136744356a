package cgroup

import (
	"errors"
	"iter"
	"regexp"
	"strings"
)

// ErrNoPod is returned for a process that is in no container of a pod.
var ErrNoPod = errors.New("the process is in no container of a pod")

// errDisagree is returned for a text whose hierarchies name different containers.
var errDisagree = errors.New("the process's cgroups name different containers")

// Member is the container that a process belongs to.
type Member struct {
	PodUID      string // as the API server has it
	ContainerID string // 64 hexadecimal digits, as the runtime has it
}

// MemberOf returns the container of a process, as the node's cgroups name it. It
// takes the hierarchies that name a pod, and those have to agree: a process in
// cgroups of two containers belongs to neither.
func MemberOf(text string) (Member, error) {
	var found Member
	for _, at := range paths(text) {
		m, ok := memberAt(at)
		switch {
		case !ok:
		case found == Member{}:
			found = m
		case found != m:
			return Member{}, errDisagree
		}
	}
	if found == (Member{}) {
		return Member{}, ErrNoPod
	}
	return found, nil
}

var (
	// podSlice is a pod's slice under the systemd driver, where a kubelet may have a
	// parent of its own ("kubelet-kubepods-...").
	podSlice = regexp.MustCompile(`^(?:[a-zA-Z0-9_.]+-)*kubepods(?:-besteffort|-burstable)?-pod([0-9a-f_]{32,36})\.slice$`)
	// podFolder is a pod's cgroup under the cgroupfs driver.
	podFolder = regexp.MustCompile(`^pod([0-9a-f-]{32,36})$`)
	// apiUID is a pod's UID; the UID of a static pod has no hyphens on its node.
	apiUID = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})$`)
	// containerScope is a container's cgroup: the ID alone, or with the runtime's name
	// before it. A monitor of CRI-O ("crio-conmon-") is no container.
	containerScope = regexp.MustCompile(`^(?:cri-containerd-|crio-|docker-|libpod-)?([0-9a-f]{64})(?:\.scope)?$`)
	// runtimeScope is containerd's name for both if the kubelet has the systemd
	// driver and containerd has not.
	runtimeScope = regexp.MustCompile(`^([^:]+):cri-containerd:([0-9a-f]{64})$`)
)

// memberAt returns the container that a path leads into: the outermost pod's, and
// the name right below it.
func memberAt(at string) (Member, bool) {
	names := strings.Split(strings.TrimPrefix(at, "/"), "/")
	inKubelet := names[0] == ".." // in a private cgroup namespace the kubelet's own cgroups are above the root
	for i, name := range names {
		if m := runtimeScope.FindStringSubmatch(name); m != nil {
			uid, ok := podUID(m[1], true)
			return Member{uid, m[2]}, ok
		}
		uid, isPod := podUID(name, inKubelet)
		if !isPod {
			inKubelet = inKubelet || name == "kubepods"
			continue
		}
		if i+1 == len(names) {
			return Member{}, false
		}
		m := containerScope.FindStringSubmatch(names[i+1])
		if m == nil {
			return Member{}, false
		}
		return Member{uid, m[1]}, true
	}
	return Member{}, false
}

// podUID returns the UID of the pod whose cgroup has that name.
func podUID(name string, inKubelet bool) (string, bool) {
	uid := ""
	if m := podSlice.FindStringSubmatch(name); m != nil {
		uid = strings.ReplaceAll(m[1], "_", "-")
	} else if m := podFolder.FindStringSubmatch(name); m != nil && inKubelet {
		uid = m[1]
	}
	return uid, apiUID.MatchString(uid)
}

// errNone is returned for a text that names no cgroup.
var errNone = errors.New("no cgroup is named")

// Path returns the path that identifies containers: of a v1 controller that every
// runtime sets, else of the v2 tree.
func Path(text string) (string, error) {
	found := map[string]string{}
	for controllers, at := range paths(text) {
		for c := range strings.SplitSeq(controllers, ",") {
			found[c] = at
		}
	}
	for _, controller := range []string{"memory", "pids", "devices", "", "name=systemd"} {
		if at, ok := found[controller]; ok {
			return at, nil
		}
	}
	return "", errNone
}

// paths yields each line's controllers and path. A line that is none is left out.
func paths(text string) iter.Seq2[string, string] {
	return func(yield func(controllers, at string) bool) {
		for line := range strings.Lines(text) {
			_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			controllers, at, found := strings.Cut(rest, ":")
			if !found || !strings.HasPrefix(at, "/") {
				continue
			}
			if !yield(controllers, strings.TrimSuffix(at, " (deleted)")) {
				return
			}
		}
	}
}

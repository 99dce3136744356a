package proc

import (
	"path"
	"strings"
)

// place is where a cgroup lies, seen from the guard's own.
type place int

const (
	elsewhere place = iota // outside the pod, or unknown
	own                    // the guard's own container
	sibling                // another container of the pod
)

// layout is how the runtime lays out the cgroups of the pod's containers.
//
// In a private cgroup namespace the guard reads itself as "/", and a container
// beside it as "/../name"; more steps up leave the pod. Without one both read
// the whole path, and a container of the pod has the same parent. crun may put
// processes one level below the container's cgroup, "name/container", so that
// the pod is one step further up.
type layout struct {
	ours string
	up   int    // in a private cgroup namespace, steps up to the pod
	pod  string // without one, the pod's path; empty: unknown
}

// learnLayout returns the layout, from the guard's own cgroup and the cgroup of PID 1,
// which is the pause process where the PID namespace is shared: empty, it is
// unknown.
func learnLayout(ours, first string) layout {
	l := layout{ours: ours, up: 1}
	if ours == "/" {
		if up, below := steps(first); up == 2 && len(below) == 2 {
			l.up = up
		}
		return l
	}
	if strings.HasPrefix(ours, "/..") {
		return l
	}
	l.pod = path.Dir(ours)
	// Some runtimes nest one more cgroup in each container's: the pod's is then a step higher.
	if over := path.Dir(l.pod); strings.HasPrefix(first, over+"/") && path.Dir(path.Dir(first)) == over && path.Dir(first) != l.pod {
		l.pod = over
	}
	if l.pod == "/" {
		l.pod = "" // a cgroup at the root has no pod around it
	}
	return l
}

// steps splits a path into the steps up that it begins with and the names after
// them.
func steps(at string) (up int, below []string) {
	for name := range strings.SplitSeq(strings.Trim(at, "/"), "/") {
		switch {
		case name == ".." && len(below) == 0:
			up++
		case name != "":
			below = append(below, name)
		}
	}
	return up, below
}

// locate returns where the cgroup at lies, and the part of it that names the
// container: below a container's cgroup its processes may make more.
func (l layout) locate(at string) (place, string) {
	if l.ours == "/" {
		return l.locatePrivate(at)
	}
	rest, inPod := strings.CutPrefix(at, l.pod+"/")
	name, _, _ := strings.Cut(rest, "/")
	switch {
	// The name ".." leads out of what this namespace shows.
	case l.pod == "" || !inPod || name == "" || name == "..":
		return elsewhere, ""
	case strings.HasPrefix(l.ours+"/", l.pod+"/"+name+"/"):
		return own, l.ours
	}
	return sibling, l.pod + "/" + name
}

func (l layout) locatePrivate(at string) (place, string) {
	up, below := steps(at)
	switch {
	// The pod's own cgroup, and what is above it, are no container's.
	case !strings.HasPrefix(at, "/") || up > l.up || up == l.up && (len(below) == 0 || below[0] == ".."):
		return elsewhere, ""
	case up < l.up:
		return own, "/"
	}
	return sibling, strings.Repeat("/..", up) + "/" + below[0]
}

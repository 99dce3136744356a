package proc

import (
	"errors"
	"path"
	"strings"
)

// errNoCgroup is returned for a cgroup file that names no cgroup.
var errNoCgroup = errors.New("no cgroup is named")

// cgroupPath returns the path that tells containers apart, out of the text of
// /proc/<pid>/cgroup: of a v1 controller that every runtime sets, else of the v2
// tree.
func cgroupPath(text string) (string, error) {
	paths := map[string]string{}
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, at, found := strings.Cut(rest, ":")
		if !found || !strings.HasPrefix(at, "/") {
			continue
		}
		for c := range strings.SplitSeq(controllers, ",") {
			paths[c] = strings.TrimSuffix(at, " (deleted)")
		}
	}
	for _, controller := range []string{"memory", "pids", "devices", "", "name=systemd"} {
		if at, found := paths[controller]; found {
			return at, nil
		}
	}
	return "", errNoCgroup
}

// place is where a cgroup lies, seen from the guard's own.
type place int

const (
	elsewhere place = iota // outside the pod, or unknown
	own                    // the guard's own container
	sibling                // another container of the pod
)

// locate returns where the cgroup at lies, and the part of it that names the
// container: below a container's cgroup its processes may make more.
//
// In a private cgroup namespace the guard reads itself as "/", and a container
// beside it as "/../name"; more steps up leave the pod. Without one both read
// the whole path, and a container of the pod has the same parent.
func locate(ours, at string) (place, string) {
	if ours == "/" {
		return locatePrivate(at)
	}
	pod := path.Dir(ours)
	if pod == "/" || strings.HasPrefix(ours, "/..") {
		return elsewhere, "" // a cgroup at the root has no pod around it
	}
	rest, inPod := strings.CutPrefix(at, pod+"/")
	name, _, _ := strings.Cut(rest, "/")
	switch {
	case !inPod || name == "" || name == "..":
		return elsewhere, ""
	case pod+"/"+name == ours:
		return own, ours
	}
	return sibling, pod + "/" + name
}

func locatePrivate(at string) (place, string) {
	rest, up := strings.CutPrefix(at, "/../")
	if !up {
		if at == "/.." || !strings.HasPrefix(at, "/") {
			return elsewhere, ""
		}
		return own, "/"
	}
	name, _, _ := strings.Cut(rest, "/")
	if name == ".." || name == "" {
		return elsewhere, ""
	}
	return sibling, "/../" + name
}

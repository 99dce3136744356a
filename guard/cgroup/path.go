package cgroup

import (
	"errors"
	"iter"
	"strings"
)

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

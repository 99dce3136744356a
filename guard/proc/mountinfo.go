package proc

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// errNoTerminationLog is returned for a process whose mounts name no container.
var errNoTerminationLog = errors.New("no mount of a termination log")

// kubeletDir is where the kubelet keeps the termination logs of the pod's
// containers: the device, the path on it, and the pod's UID. Any volume may have
// a folder that is called like one; no volume has this one.
type kubeletDir struct {
	device, prefix, podUID string
}

// identity is the identity that a container's mounts reveal.
type identity struct {
	container string
	path      string // of the termination log inside the container
}

// ownLog is the root of the mount of the guard's own termination log.
var ownLog = regexp.MustCompile(`^(/|.*/)pods/([^/]+)/containers/` + limits.GuardContainer + `/[0-9a-f]+$`)

// log is the rest of a root after the containers' folder.
var log = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)/[0-9a-f]+$`)

// mount is a line of mountinfo.
type mount struct{ device, root, at string }

// mounts returns the mounts in the text of /proc/<pid>/mountinfo.
func mounts(text string) []mount {
	var all []mount
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 5 {
			all = append(all, mount{fields[2], unescape(fields[3]), unescape(fields[4])})
		}
	}
	return all
}

// learnKubeletDir reads the mounts of the guard's own container, which are the
// webhook's.
func learnKubeletDir(text string) (kubeletDir, error) {
	var found kubeletDir
	for _, m := range mounts(text) {
		match := ownLog.FindStringSubmatch(m.root)
		if match == nil {
			continue
		}
		this := kubeletDir{m.device, match[1], match[2]}
		if found != (kubeletDir{}) && found != this {
			return kubeletDir{}, errors.New("the guard has two termination logs")
		}
		found = this
	}
	if found == (kubeletDir{}) {
		return kubeletDir{}, errNoTerminationLog
	}
	return found, nil
}

// identify reads the mounts of a container's process. Mounts that name two
// containers are an error.
func (k kubeletDir) identify(text string) (identity, error) {
	var found identity
	if k.podUID == "" {
		return found, errNoTerminationLog
	}
	folder := k.prefix + "pods/" + k.podUID + "/containers/"
	for _, m := range mounts(text) {
		rest, below := strings.CutPrefix(m.root, folder)
		match := log.FindStringSubmatch(rest)
		// An image may have the same path on a file system of its own.
		if !below || match == nil || m.device != k.device {
			continue
		}
		if found.container != "" && found.container != match[1] {
			return identity{}, fmt.Errorf("mounts name both %s and %s", found.container, match[1])
		}
		found = identity{match[1], m.at}
	}
	if found.container == "" {
		return identity{}, errNoTerminationLog
	}
	return found, nil
}

// unescape undoes the octal escapes of mountinfo (space, tab, newline,
// backslash).
func unescape(field string) string {
	if !strings.Contains(field, `\`) {
		return field
	}
	var text strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) {
			if b, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				text.WriteByte(byte(b))
				i += 3
				continue
			}
		}
		text.WriteByte(field[i])
	}
	return text.String()
}

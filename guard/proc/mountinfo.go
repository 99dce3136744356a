package proc

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// terminationLog is the root of the mount that the kubelet makes on a
// container's termination log, wherever the pod asks for it to appear.
var terminationLog = regexp.MustCompile(`(?:^|/)pods/([^/]+)/containers/([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)/[0-9a-f]+$`)

// errNoTerminationLog is returned for a process whose mounts name no container.
var errNoTerminationLog = errors.New("no mount of a termination log")

// identity is what a container's mounts reveal.
type identity struct {
	podUID, container string
	path              string // of the termination log inside the container
}

// parseMounts reads the text of /proc/<pid>/mountinfo. Mounts that name two
// containers are an error.
func parseMounts(text string) (identity, error) {
	var found identity
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		match := terminationLog.FindStringSubmatch(unescape(fields[3]))
		if match == nil {
			continue
		}
		this := identity{podUID: match[1], container: match[2], path: unescape(fields[4])}
		if found.container != "" && (found.container != this.container || found.podUID != this.podUID) {
			return identity{}, fmt.Errorf("mounts name both %s and %s", found.container, this.container)
		}
		found = this
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

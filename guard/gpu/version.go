package gpu

import (
	"fmt"
	"strconv"
	"strings"
)

// Driver releases at which a container's view of its processes changed.
const (
	// FirstInPod lists PIDs of the caller's namespace with their memory. Older
	// ones list the node's PIDs, or no memory.
	FirstInPod = "565.57.01"
	// firstUtilization translates the PIDs of per-process utilization.
	firstUtilization = "570.86.15"
)

// Older reports whether driver version a is older than b. A version that cannot
// be read is older than every other.
func Older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if x, y := part(as, i), part(bs, i); x != y {
			return x < y
		}
	}
	return false
}

func part(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		return -1
	}
	return n
}

// Unsupported returns why a driver of that version cannot be relied on inside a
// pod, or an empty text.
func (d *Driver) Unsupported(version string) string {
	if d.options.NodePIDs || !Older(version, FirstInPod) {
		return ""
	}
	return fmt.Sprintf("driver %s does not report to a pod what its processes use; %s and newer do", version, FirstInPod)
}

package policies

import (
	"strconv"
	"strings"
)

// firstDriverWithLimits is the driver release that brings a memory limit for each cgroup.
const firstDriverWithLimits = 615

// firstGuardDriver is the release line from which an in-pod guard is shown its siblings' PIDs with their memory. Before
// 565.57.01 the driver reports host PIDs, or zero memory.
const (
	firstGuardDriver  = 565
	firstGuardRelease = "565.57.01"
)

// maxDriverVersion bounds each part of a driver's release.
const maxDriverVersion = 99_999

// driverVersion reads "580.95.05"; 0, 0 is unknown.
func driverVersion(text string) (major, minor int) {
	parts := strings.Split(text, ".")
	major, err := strconv.Atoi(parts[0])
	if err != nil || major < 1 || major > maxDriverVersion {
		return 0, 0
	}
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return major, min(max(minor, 0), maxDriverVersion)
}

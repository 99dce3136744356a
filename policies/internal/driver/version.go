package driver

import (
	"strconv"
	"strings"
)

// FirstWithLimits is the driver release that brings a memory limit for each cgroup.
const FirstWithLimits = 615

// FirstForGuard is the release line from which an in-pod guard is shown its siblings' PIDs with their memory. Before
// 565.57.01 the driver reports host PIDs, or zero memory.
const (
	FirstForGuard        = 565
	FirstReleaseForGuard = "565.57.01"
)

// Generation tells releases apart that hold slices in different ways.
func Generation(major int) int {
	switch {
	case major >= FirstWithLimits:
		return 2
	case major >= FirstForGuard:
		return 1
	}
	return 0
}

// MaxVersion bounds each part of a driver's release.
const MaxVersion = 99_999

// Version reads "580.95.05"; 0, 0 is unknown.
func Version(text string) (major, minor int) {
	parts := strings.Split(text, ".")
	major, err := strconv.Atoi(parts[0])
	if err != nil || major < 1 || major > MaxVersion {
		return 0, 0
	}
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return major, min(max(minor, 0), MaxVersion)
}

// LabelMajor is the label of nodes with the release line.
const LabelMajor = "nvidia.com/cuda.driver-version.major"

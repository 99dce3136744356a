package nvidia

import (
	"strconv"
	"strings"
)

// DriverWithLimits is the driver release that brings a memory limit for each cgroup.
const DriverWithLimits = 615

// DriverForGuard is the release line from which an in-pod guard is shown its siblings' PIDs with their memory. Before
// 565.57.01 the driver reports host PIDs, or zero memory.
const (
	DriverForGuard        = 565
	DriverReleaseForGuard = "565.57.01"
)

// DriverGeneration groups releases by how they enforce slices.
func DriverGeneration(major int) int {
	switch {
	case major >= DriverWithLimits:
		return 2
	case major >= DriverForGuard:
		return 1
	}
	return 0
}

// MaxDriverVersion bounds each part of a driver's release.
const MaxDriverVersion = 99_999

// DriverVersion reads "580.95.05"; 0, 0 is unknown.
func DriverVersion(text string) (major, minor int) {
	parts := strings.Split(text, ".")
	major, err := strconv.Atoi(parts[0])
	if err != nil || major < 1 || major > MaxDriverVersion {
		return 0, 0
	}
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return major, min(max(minor, 0), MaxDriverVersion)
}

// LabelDriverMajor is the label of nodes with the release line.
const LabelDriverMajor = "nvidia.com/cuda.driver-version.major"

// ChannelClasses are the device classes of its driver for memory across nodes: channels of a ComputeDomain and their daemons, no GPUs.
var ChannelClasses = []string{"compute-domain-default-channel.nvidia.com", "compute-domain-channel.nvidia.com", "compute-domain-daemon.nvidia.com"}

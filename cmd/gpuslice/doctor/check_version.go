package doctor

import (
	"strconv"
	"strings"
)

// firstMinor is the first minor version of Kubernetes 1 whose admission is all there: match conditions and validating
// admission policies are stable.
const firstMinor = 30

func checkVersion(f *Facts) []Finding {
	if f.Version == nil {
		return nil // of files
	}
	minor, err := strconv.Atoi(strings.TrimRight(f.Version.Minor, "+"))
	switch {
	case err != nil || f.Version.Major != "1":
		return []Finding{newFinding(Note, "the version of Kubernetes is not understood").With("version", "gitVersion", f.Version.GitVersion)}
	case minor < firstMinor:
		return []Finding{newFinding(Problem, "Kubernetes 1.%d is older than 1.%d, the first that gpuslice works on", minor, firstMinor).
			With("version", "gitVersion", f.Version.GitVersion).WithRemedy("upgrade the control plane to Kubernetes 1.%d or later", firstMinor)}
	}
	return []Finding{newFinding(OK, "Kubernetes %s", f.Version.GitVersion)}
}

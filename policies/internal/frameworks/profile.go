package frameworks

import (
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// DefaultAllowance returns the context allowance, in bytes, that holds where policy names none. NCCL adds its buffers to
// every process once a container holds several GPUs.
func DefaultAllowance(gpus int) int64 {
	if gpus > 1 {
		return 1 << 30
	}
	return 512 << 20
}

// For returns the settings, warnings and denials of the container's framework profile. It never changes its input.
func For(in Input) Result {
	out := Result{}
	if in.Container == nil {
		out.NotCapped = "there is no container to look at"
		return out
	}
	found := search{image: parseImage(in.Container.Image), words: commandline.Split(in.Container)}
	choice, denial := choose(&in, found)
	if denial != nil {
		out.Denials = append(out.Denials, *denial)
		out.NotCapped = denial.Detail
		return out
	}
	if choice.profile == nil {
		out.NotCapped = "no framework was recognised by image, command or label"
		return out
	}
	out.Framework = choice.profile.Name
	out.Version, out.VersionSource = choice.version.String(), choice.source
	(&evaluation{in: &in, found: found, out: &out}).run(choice)
	return out
}

// Recognised reports whether a framework label or a policy's defaultFramework names a built-in profile: its name, with
// "-VERSION" if wanted.
func Recognised(framework string) bool {
	known, rest := called(table, strings.ToLower(framework))
	_, versioned := parseVersion(rest)
	return known != nil && (rest == "" || versioned)
}

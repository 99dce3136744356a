package frameworks

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// View says what a process in the container sees of its device's memory. Which formula is right follows from it.
type View string

const (
	// ViewWhole is time-slicing: total and free are the device's own.
	ViewWhole View = "whole"
	// ViewLimitedFree is a pinned limit of MPS: total is the device's own, free ends at the slice.
	ViewLimitedFree View = "limited-free"
	// ViewSliced is MIG or an interposer: total and free are the slice.
	ViewSliced View = "sliced"
	// ViewUnknown is a pool where the driver's limit may hold: the total may be the device's or the limit.
	ViewUnknown View = "unknown"
)

// Where the version of a framework was read.
const (
	VersionFromLabel  = "label"
	VersionFromPolicy = "policy"
	VersionFromImage  = "image tag"
)

// FrameworkNone is the value of the framework label that asks for no profile at all.
const None = "none"

// Input is all that a profile's rules may depend on. Byte counts are per GPU.
type Input struct {
	Container      *corev1.Container // image, command, args, env, envFrom; never changed
	Framework      string            // "pytorch-2.4", "jax", FrameworkNone; "" when nobody said
	SliceBytes     int64             // what the container was given
	LimitBytes     int64             // what it may burst to; caps use it; below SliceBytes it counts as SliceBytes
	TotalBytes     int64             // device memory; 0 when not known
	AllowanceBytes int64             // memory of one process outside the framework's allocator
	Processes      int               // processes of the container that share one GPU; below 1 counts as 1
	GPUs           int               // GPUs of the container
	View           View              // "" counts as ViewUnknown
	DeviceAlone    bool              // the device has one replica: free at start is the total
	Switches       map[string]Switch // by profile name
}

// Env is one variable to set. Value is ready for a pod: "$" is doubled, so that the kubelet expands nothing.
type Env struct {
	Name, Value string
	Cap         bool // the variable holds the framework at or below the limit
}

// Denial is a pod that must not run as it is. Reason is stable; Detail says what was asked, what there is, what to write.
type Denial struct {
	Reason, Detail string
}

// Reasons of a Denial.
const (
	DeniedFramework = "UnknownFramework"
	DeniedArgument  = "FrameworkArgument"
	DeniedConflict  = "FrameworkConflict"
)

// Result is what a profile does for one container. Its order is a function of the input alone.
type Result struct {
	Framework     string   // name of the profile; "" when none applies
	Version       string   // as far as it is known; "" when not
	VersionSource string   // one of the VersionFrom constants; "" without a version
	Env           []Env    // never a variable that the user set, or may have set by envFrom where that matters
	Args          []string // what to add at the end of the container's arguments
	Capped        bool     // a framework cap at or below the limit is in force
	Cap           string   // which one, for people; "" unless Capped
	NotCapped     string   // why not, for people; "" when Capped
	Notes         []string // what was left as the user wrote it
	Warnings      []string // what the user should act on
	Denials       []Denial // empty unless the pod must be refused
}

// DefaultAllowance returns the context allowance, in bytes, that holds where policy names none. NCCL adds its buffers to
// every process once a container holds several GPUs.
func DefaultAllowance(gpus int) int64 {
	if gpus > 1 {
		return 1 << 30
	}
	return 512 << 20
}

// For returns what the container's framework profile sets, warns of and refuses. It never changes its input.
func For(in Input) Result {
	out := Result{}
	if in.Container == nil {
		out.NotCapped = "there is no container to look at"
		return out
	}
	found := search{image: parseImage(in.Container.Image), words: words(in.Container)}
	choice, refusal := choose(&in, found)
	if refusal != nil {
		out.Denials = append(out.Denials, *refusal)
		out.NotCapped = refusal.Detail
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

// All returns the built-in profiles sorted by name. They are shared: callers only read them.
func All() []Profile {
	all := make([]Profile, 0, len(table))
	for _, p := range table {
		all = append(all, p.Profile)
	}
	return all
}

// FrameworkNames returns the names of the built-in profiles, sorted: what the framework label may begin with.
func Names() []string {
	names := make([]string, 0, len(table))
	for _, p := range table {
		names = append(names, p.Name)
	}
	return names
}

// Recognised reports whether a framework label or a policy's defaultFramework names a built-in profile: its name, with
// "-VERSION" if wanted.
func Recognised(framework string) bool {
	known, rest := called(table, strings.ToLower(framework))
	_, versioned := parseVersion(rest)
	return known != nil && (rest == "" || versioned)
}

// ReservedVariables returns every variable that some profile may set, sorted and without repetition.
func ReservedVariables() []string {
	return variableNames(table)
}

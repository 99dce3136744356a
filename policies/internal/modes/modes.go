package modes

// Mode selects the pods of a namespace that get a slice.
type Mode string

// The modes.
const (
	Off         Mode = "off"
	OptIn       Mode = "opt-in"
	Transparent Mode = "transparent"
)

// All lists the modes, the one that governs least first.
func All() []Mode { return []Mode{Off, OptIn, Transparent} }

// TemplatesMode is the handling of fractional quantities in workload templates, which Kubernetes rejects.
type TemplatesMode string

// The template modes.
const (
	TemplatesOff     TemplatesMode = "off"
	TemplatesCheck   TemplatesMode = "check"
	TemplatesRewrite TemplatesMode = "rewrite"
)

// NativeMode is the handling of Kubernetes' own ResourceQuotas on GPU resources. They count a pod under the names that
// it carries, so that one whose resource was renamed is not counted under the name that its author wrote.
type NativeMode string

// The native modes.
const (
	NativeCheck NativeMode = "check" // the default: count renamed pods for the quotas that there are
	NativeOff   NativeMode = "off"   // leave their counting as it is
)

// MIGRounding selects the MIG instance for an amount of memory that is a little more than an instance has.
type MIGRounding string

// The ways of rounding.
const (
	MIGUp      MIGRounding = "up"      // the default: the next larger instance
	MIGNearest MIGRounding = "nearest" // the instance whose name has the amount: 10Gi gets a 1g.10gb, which has 9.5Gi
)

// AllMIGRoundings lists the ways of rounding.
func AllMIGRoundings() []MIGRounding { return []MIGRounding{MIGUp, MIGNearest} }

// ClaimsMode is the handling of pods that claim GPUs by dynamic resource allocation, which no slice bounds.
type ClaimsMode string

// The claims modes.
const (
	ClaimsCount ClaimsMode = "count" // the default: they count in quotas as whole devices
	ClaimsDeny  ClaimsMode = "deny"
)

// AllClaims lists the claims modes, the laxer one first.
func AllClaims() []ClaimsMode { return []ClaimsMode{ClaimsCount, ClaimsDeny} }

// Ways in which the guard reaches NVML.
const (
	AccessAuto   = "auto" // the default: whatever the cluster has
	AccessEnv    = "env"
	AccessVolume = "volume"
	AccessCDI    = "cdi"
	AccessClaim  = "claim" // that of the slice: no policy has to say so
)

// DescribeAccess names a way to NVML together with the pod's runtime class, on which it depends.
func DescribeAccess(way, runtimeClass string) string {
	if runtimeClass == "" {
		return way
	}
	return way + ", runtime class " + runtimeClass
}

// Guards that enforce a slice.
const (
	GuardAuto    = "auto"    // the default: the agent where each node of the pool has one, else the sidecar
	GuardSidecar = "sidecar" // a container of the pod
	GuardAgent   = "agent"   // the agent of the pod's node
)

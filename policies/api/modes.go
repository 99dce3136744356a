package api

// Mode says which pods of a namespace get a slice.
type Mode string

// The modes.
const (
	ModeOff         Mode = "off"
	ModeOptIn       Mode = "opt-in"
	ModeTransparent Mode = "transparent"
)

// EnforcementMode says what becomes of a decision: audit reports, warn rewrites but rejects nothing, enforce does both.
type EnforcementMode string

// The enforcement modes.
const (
	EnforceAudit EnforcementMode = "audit"
	EnforceWarn  EnforcementMode = "warn"
	EnforceFull  EnforcementMode = "enforce"
)

// TemplatesMode says what happens to fractional quantities in workload templates, which Kubernetes rejects.
type TemplatesMode string

// The template modes.
const (
	TemplatesOff     TemplatesMode = "off"
	TemplatesCheck   TemplatesMode = "check"
	TemplatesRewrite TemplatesMode = "rewrite"
)

// NativeMode says what becomes of Kubernetes' own ResourceQuotas on GPU resources. They count a pod under the names that
// it carries, so that one whose resource was renamed is not counted under the name that its author wrote.
type NativeMode string

// The native modes.
const (
	NativeCheck NativeMode = "check" // the default: count renamed pods for the quotas that there are
	NativeWrite NativeMode = "write" // and write the policy's own limit as a ResourceQuota
	NativeOff   NativeMode = "off"   // leave them to count what they count
)

package api

// EnforcementMode bounds the effect of a decision: audit reports, warn rewrites but rejects nothing, enforce does both.
type EnforcementMode string

// The enforcement modes.
const (
	EnforceAudit EnforcementMode = "audit"
	EnforceWarn  EnforcementMode = "warn"
	EnforceFull  EnforcementMode = "enforce"
)

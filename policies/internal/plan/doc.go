// Package plan finds the pool and strategy that a request fits, checks frameworks, guard, tiers and limits there, and
// builds the Promise. If nothing fits, a FitError for each pool gives the reason.
package plan

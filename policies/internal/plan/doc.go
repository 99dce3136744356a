// Package plan finds the pool and strategy that a request fits, checks frameworks, guard, tiers and limits there, and builds the
// Promise. Where nothing fits, a FitError for each pool says why.
package plan

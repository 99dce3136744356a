// Package limits is the contract between the webhook that injects the guard and the
// guard that reads its settings: the slice of every container of the pod, and how
// the guard is to act on it.
//
// The one idea: a Limits value travels as a handful of environment variables and
// comes back equal. The webhook writes every value in full, defaults included, so
// that a guard of another release reads the same. The variables carry a version; a
// guard rejects a version it does not know rather than guess at its meaning.
//
// The package imports the standard library only.
package limits

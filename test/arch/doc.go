// Package arch holds what keeps the module readable, and is red when it is broken: imports run one way, files of a package
// do not all need each other, packages stay small, a strategy is one file, and words are those of the field. What does not
// hold yet is listed in exempt_test.go.
package arch

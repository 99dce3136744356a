// Package arch holds what keeps the module readable, and is red when it is broken: imports run one way, files of a package
// do not all need each other, packages stay small, a strategy is one file, words are those of the field, and go.mod says which modules
// tests alone need.
package arch

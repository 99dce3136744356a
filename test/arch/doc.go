// Package arch holds what keeps the module readable, and is red when it is broken: imports run one way, files of a package
// do not all need each other, packages stay small, a strategy is one file, and words are those of the field.
package arch

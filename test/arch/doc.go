// Package arch holds the import rules of the module, each with its reason, and the test that enforces them.
package arch

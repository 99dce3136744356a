// Package corpus holds pods from public repositories as input for tests: see README.md.
package corpus

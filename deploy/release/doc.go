// Command release makes everything of a release but the upload, from a clean checkout: see README.md. The same commit,
// version, Go and C compiler give the same bytes.
package main

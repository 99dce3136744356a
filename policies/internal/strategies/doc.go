// Package strategies holds the ways to share a device and the providers of MPS daemons. Each is one file with its properties; no
// other code compares their names.
package strategies

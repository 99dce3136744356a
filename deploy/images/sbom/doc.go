// Package sbom lists the parts of an image or an archive, as an SPDX 2.3 document: the whole, its programs, the Go
// modules that are linked into them, and the packages of its C library. The parts of a program are read from the
// program itself.
package sbom

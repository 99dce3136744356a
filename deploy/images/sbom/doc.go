// Package sbom says what an image or an archive consists of, as an SPDX 2.3 document: the whole, its programs, the Go modules that are
// linked into them, and the packages of its C library. What is in a program is read from the program itself.
package sbom

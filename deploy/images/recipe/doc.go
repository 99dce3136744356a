// Package recipe says what gpuslice's images hold and builds them: the programs of this checkout, compiled so that the
// same sources give the same bytes, for the guard with Debian's C library below it (see package debian), each with the
// licences of what is in it and an SPDX document (see package sbom).
//
// The command in the folder above, the end-to-end tests and the demonstration build their images here.
package recipe

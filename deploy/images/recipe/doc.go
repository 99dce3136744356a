// Package recipe describes gpuslice's images and builds them: the programs of this checkout, compiled so that the same
// sources give the same bytes, for the guard with Debian's C library below it (see package debian), each with the
// licences of its parts and an SPDX document (see package sbom).
//
// The command in the folder above, the end-to-end tests and the demonstration build their images here.
package recipe

// Package debian takes the C library of the guard's image out of Debian's package of it: the release, version and
// digests are those of libc6.yaml, so that every build has the same one.
//
// It needs apt-get to fetch a package, unless a folder with the file is named, and dpkg-deb to unpack it.
package debian

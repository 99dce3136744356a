// Package vm runs a program in a virtual machine with a kernel of its own: Debian's, in QEMU, which needs no KVM, no root and
// no disk.
//
// The one idea: the machine is one archive of files, which its kernel unpacks into memory, and its first process is the
// program that started it. A test calls Main in TestMain, and Machine.Run starts the same test there; Inside
// distinguishes the two. The machine has two serial lines: the kernel writes to one, the program to the other.
//
// QEMU, the kernel and what else a test names are Debian's packages, fetched once and installed nowhere.
package vm

// Package oncard finds out which sentences about memory, MPS, allocators and termination hold on a card and its driver, without
// Kubernetes. A sentence is a row: rows are run one after the other, and each is printed and written to a file when it is done.
//
// Memory is held by processes of the program's own, by plain allocations of at most a few GiB, and never more than is free. No
// setting of the device is changed.
package oncard

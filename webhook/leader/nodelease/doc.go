// Package nodelease follows the Leases by which the agents of nodes report that they enforce: package lease has their
// content.
package nodelease

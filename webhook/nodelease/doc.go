// Package nodelease is the Lease by which the agent of a node tells the cluster that it enforces.
//
// The one idea: no clock is compared with another. Whoever follows the Leases notes when it saw one renewed, by its own
// clock, and an agent whose Lease it has not seen renewed for Duration is away.
package nodelease

// Package pools derives pools from nodes and declarations: sets of nodes that offer the same resource, strategy, memory and
// driver. It also answers whether a pod's own constraints let it reach a pool.
package pools

// Package api is the vocabulary of policies: names of labels, annotations, variables and resources, amounts of memory, fractions,
// tiers, modes, sizes and requests, and why a pod is denied. It decides nothing.
package api

// Package api is the vocabulary of policies: names of labels and annotations, tiers,
// enforcement modes, requests, and why a pod is denied. It decides nothing.
package api

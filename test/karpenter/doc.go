// Package karpenter runs Karpenter with the settings of our page on it: nodes start for pods with slices, as many as the slices need, and
// end with them.
package karpenter

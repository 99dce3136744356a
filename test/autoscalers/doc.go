// Package autoscalers runs Karpenter and Cluster Autoscaler with the settings of our pages on them: nodes start for pods with slices, as
// many as the slices need, and end with them.
package autoscalers

// Package accounting computes a pod's charge in quotas: by its Promise, or without one by the GPUs that it requests.
package accounting

package api

import "github.com/gpuslice/gpuslice/policies/internal/quantity"

// MiB is an amount of GPU memory in mebibytes.
type MiB = quantity.MiB

package api

import "github.com/gpuslice/gpuslice/policies/internal/quantity"

// MiB is an amount of GPU memory in mebibytes.
type MiB = quantity.MiB

// Devices is an amount of GPU equivalents, which is exact.
type Devices = quantity.Devices

// Device is one whole device.
const Device = quantity.Device

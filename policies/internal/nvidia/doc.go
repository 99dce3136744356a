// Package nvidia has the names that gpuslice shares with NVIDIA's software: resources, environment variables, and releases of the driver.
package nvidia

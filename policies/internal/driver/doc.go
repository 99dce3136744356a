// Package driver knows releases of the NVIDIA driver: how they are written, and since which of them it does what.
package driver

// Package guardaccess is how a guard, which requests no GPU, reaches the driver: as policy says, or as the cluster allows.
package guardaccess

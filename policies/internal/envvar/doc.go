// Package envvar holds the environment variables that gpuslice writes, or that give a container its devices.
package envvar

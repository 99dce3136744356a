// Package gpu reads devices through NVML, by the library that the container
// runtime mounts.
//
// The one idea: a blank is never a figure. A value that the driver does not know,
// does not allow, gives in another PID namespace, or does not answer in time comes
// out as a fault or as a process without a figure, so that nothing above can take
// it for evidence.
//
// NVML is initialized once and kept open. The cheap total of a device is read
// with every sample, the list of its processes, which takes the driver's global
// lock, when the total moved or the list is old. Every newer function is looked
// up before it is called: calling one that the library lacks aborts the process.
//
// Needs cgo and glibc. The package imports guard and go-nvml.
package gpu

// Package fakegpu builds an imitation of NVIDIA's libnvidia-ml.so.1, which is
// loaded the way the real one is.
//
// The one idea: its processes are the real ones of the caller's PID namespace.
// A process holds what its name says: one whose command or first argument is
// "gpu:0:9216M" holds 9216 MiB on device 0, "gpu:0.1:4G" 4 GiB on the second MIG
// instance of it. So the library agrees with the kernel inside any container,
// without a file that containers would have to share.
//
// Everything else is said by switches, as lines "KEY VALUE" in the file that
// GPUSLICE_FAKE_GPU names, re-read at every call, and separated by ";" in
// GPUSLICE_FAKE_GPU_SWITCHES, which win; lib/fake.h lists them. They make the
// library fail in the ways that drivers do.
//
// Building needs gcc, and go-nvml in the module cache for its header.
package fakegpu

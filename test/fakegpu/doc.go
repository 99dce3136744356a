// Package fakegpu builds an imitation of NVIDIA's libnvidia-ml.so.1, which
// programs load the way they load the real one.
//
// The one idea: its processes are the real ones of the caller's PID namespace. A
// process holds what words of its command line say, so the library agrees with
// the kernel inside any container, without a file that containers would share:
//
//	[NODE/]DEVICE=AMOUNT[/KIND]
//
//	gpu0=9216MiB      9216 MiB on the device with minor number 0
//	gpu0.2=4GiB       on the third MIG instance of it
//	GPU-<uuid>=4GiB   on the device, or MIG-<uuid> the instance, of that UUID
//	gpu1=1GiB/G       graphics; also C, compute (default), and M+C, an MPS client
//	t7/gpu0=1GiB      on the node t7 alone: a library whose config has node=t7 sees
//	                  such words and no others, so that tests do not see each other
//
// Amounts are whole numbers of B, KiB, MiB or GiB. A word may stand anywhere in the
// command line and several may: the same device twice adds up. Test/fakegpu/tenant is
// a program that changes its words as it runs; "sleep" does for a start:
// exec.Command(sleep) with Args {"gpu0=4GiB", "60"}.
//
// What the devices are, and how they fail, stands in the config, which [Config] prints
// and the library reads again at every call: GPUSLICE_FAKE_GPU_CONFIG is its text (if it
// holds a "=") or its path, else it is /etc/gpuslice-fake-gpu, else all is default. A path may be
// a folder that holds a file "config", which containers can mount and see change. Lines, or
// pieces between ";", are KEY=VALUE; "KEY@1=VALUE" is for the device 1 alone.
//
// Beside it lies an imitation of libcuda.so.1. What a program allocates by it, it writes over the program's last argument
// as such a word, so that the program needs a long one.
//
// A device's total is the memory of its processes, and the config's base and others. To see
// the tenants of other PID namespaces in the total, as a driver does, mount the node's
// /proc at /run/gpuslice-fake-gpu/proc, or name it in GPUSLICE_FAKE_GPU.
//
// NVIDIA_VISIBLE_DEVICES is obeyed as a container runtime would: unset or "all" shows
// all devices, "void" or "none" none (nvmlInit fails), and a list of indices, UUIDs of
// devices or of MIG instances only those, with indices counted from 0 and minor numbers kept.
// GPUSLICE_FAKE_GPU_VISIBLE wins over it, for runtimes that say void and give devices by CDI.
//
// A config line that has no meaning is reported on standard error. GPUSLICE_FAKE_GPU_TRACE names a
// file that collects the names of the functions called.
//
// Programs that use go-nvml load one library and stay with it: tests of several configs in
// one process share a file and run one after the other.
//
// Building needs gcc, and go-nvml's source in the module cache for its header.
package fakegpu

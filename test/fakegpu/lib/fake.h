// fake.h: what the parts of the imitation share.
#ifndef GPUSLICE_FAKE_H
#define GPUSLICE_FAKE_H
#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include "nvml.h"

#define MAX_DEVICES 16
#define MAX_MIG 7
#define MAX_EVENTS 64
#define MAX_LISTED 1024
#define EXPORT __attribute__((visibility("default")))

struct nvmlDevice_st { int gpu, mig; };  // mig < 0: the whole device

// What the switches say. A code is a number of nvmlReturn_t; 0 is no failure.
struct switches {
	int devices;      // devices N         how many there are (1)
	char name[96];    // name TEXT         "NVIDIA A100-SXM4-80GB"
	char driver[80];  // driver VERSION    "580.95.05"
	int cuda;         // cuda N            13000
	int mem_mib;      // mem_mib N         memory of each device (81920)
	int cc_major;     // cc MAJOR MINOR    compute capability (8 0)
	int cc_minor;
	int mig;          // mig N             MIG instances 1g.10gb on each device; -1: no MIG at all (0)
	int others_mib;   // others_mib N      held by tenants whom the caller does not see (0)
	int compute_mode; // compute_mode N    3: exclusive process (0)
	int init;         // init CODE         what nvmlInit returns
	int memory;       // memory CODE       what the memory total returns
	int list;         // list CODE         what the process lists return
	int lost;         // lost CODE         what every call on a device returns, as 15 GPU_IS_LOST
	int hang;         // hang 1            process lists never return; 2: the total neither
	int duplicates;   // duplicates 1      every process is listed twice
	int all_ones;     // all_ones 1        every figure is NVML_VALUE_NOT_AVAILABLE
	int zero;         // zero 1            every figure is 0
	int host_pids;    // host_pids N       N is added to every PID
	int graphics;     // graphics 1        the graphics list repeats the compute list
	int mps;          // mps 1             the MPS list repeats it too; 2: and the compute list is empty
	int short_lists;  // short_lists N     the next N lists ask for more room than they need
	int charges;      // charges 1         the driver charges cgroups: GetMemoryLimits answers
	int charge_mib;   // charge_mib N      and says N, not the sum of the processes
	int utilization;  // utilization 1     per-process utilisation, 40 % each; 2: and one of a PID of the node
	int events;       // xid DEVICE CODE   a critical event, each line delivered once
	int event_device[MAX_EVENTS], event_code[MAX_EVENTS];
	int listed;       // proc DEVICE PID MIB   a process that is not a real one
	int listed_device[MAX_LISTED], listed_pid[MAX_LISTED], listed_mib[MAX_LISTED];
};

// switches_read reads the file and the environment anew.
void switches_read(struct switches *s);

// switches_trace appends the called function's name to the file that
// GPUSLICE_FAKE_GPU_TRACE names.
void switches_trace(const char *function);

// processes_on fills in who holds what on the device and returns how many; list
// may be NULL. total is the sum in bytes.
unsigned processes_on(const struct switches *s, nvmlDevice_t device, nvmlProcessInfo_t *list, unsigned room, unsigned long long *total);

nvmlDevice_t device_whole(int gpu);
nvmlDevice_t device_instance(int gpu, int mig);
unsigned long long device_bytes(const struct switches *s, nvmlDevice_t device);

// CALL begins a function: its switches are in s.
#define CALL(name, ...) \
	EXPORT nvmlReturn_t name(__VA_ARGS__) { struct switches s; switches_trace(#name); switches_read(&s);
#define ON_DEVICE if (s.lost) return s.lost;
#define DONE return NVML_SUCCESS; }
#endif

// processes.c: the real processes of the caller's PID namespace, as a driver
// lists them.
#include "fake.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// held reads "gpu:0:9216M" or "gpu:0.1:4G" and returns the bytes held on the
// device, 0 for another one.
static unsigned long long held(const char *name, nvmlDevice_t device) {
	int gpu, mig = -1, used = 0;
	unsigned long long amount;
	if (sscanf(name, "gpu:%d%n", &gpu, &used) != 1) return 0;
	name += used;
	if (*name == '.' && sscanf(name, ".%d%n", &mig, &used) == 1) name += used;
	char unit = 0;
	if (sscanf(name, ":%llu%c", &amount, &unit) != 2 || gpu != device->gpu) return 0;
	if (device->mig >= 0 && mig != device->mig) return 0;
	return unit == 'G' ? amount << 30 : unit == 'M' ? amount << 20 : unit == 'K' ? amount << 10 : 0;
}

static size_t slurp(const char *pid, const char *file, char *text, size_t room) {
	char path[320];
	snprintf(path, sizeof path, "/proc/%s/%s", pid, file);
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, room - 1, f) : 0;
	if (f) fclose(f);
	text[n] = 0;
	return n;
}

// holds returns what a living process holds on the device.
static unsigned long long holds(const char *pid, nvmlDevice_t device) {
	char text[512];
	if (!slurp(pid, "stat", text, sizeof text)) return 0;
	char *name = strchr(text, '('), *end = strrchr(text, ')');
	if (!name || !end || end[1] == 0 || end[2] == 'Z' || end[2] == 'X') return 0;
	*end = 0;
	unsigned long long bytes = held(name + 1, device);
	if (bytes || !slurp(pid, "cmdline", text, sizeof text)) return bytes;
	return held(text, device);
}

static unsigned add(const struct switches *s, nvmlProcessInfo_t *list, unsigned n, unsigned room, nvmlDevice_t d, unsigned pid, unsigned long long bytes) {
	for (int again = 0; again <= (s->duplicates != 0); again++, n++) {
		if (!list || n >= room) continue;
		list[n].pid = pid + s->host_pids;
		list[n].usedGpuMemory = s->all_ones ? ~0ULL : s->zero ? 0 : bytes;
		list[n].gpuInstanceId = d->mig < 0 ? ~0U : 7 + d->mig;
		list[n].computeInstanceId = d->mig < 0 ? ~0U : 0;
	}
	return n;
}

unsigned processes_on(const struct switches *s, nvmlDevice_t device, nvmlProcessInfo_t *list, unsigned room, unsigned long long *total) {
	unsigned n = 0;
	*total = 0;
	for (int i = 0; i < s->listed; i++)
		if (s->listed_device[i] == device->gpu) {
			*total += (unsigned long long)s->listed_mib[i] << 20;
			n = add(s, list, n, room, device, s->listed_pid[i], (unsigned long long)s->listed_mib[i] << 20);
		}
	DIR *proc = opendir("/proc");
	for (struct dirent *e; proc && (e = readdir(proc));) {
		unsigned long long bytes = isdigit(e->d_name[0]) ? holds(e->d_name, device) : 0;
		if (!bytes) continue;
		*total += bytes;
		n = add(s, list, n, room, device, atoi(e->d_name), bytes);
	}
	if (proc) closedir(proc);
	return n;
}

// lists answers one of the three calls that list processes.
static nvmlReturn_t lists(struct switches *s, nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *list, int none) {
	static int shortened;
	while (s->hang) {
		sleep(1);
		switches_read(s);
	}
	if (s->lost) return s->lost;
	if (s->list) return s->list;
	unsigned long long total;
	unsigned room = *count, n = none ? 0 : processes_on(s, d, list, room, &total);
	if (shortened < s->short_lists) {
		shortened++;
		*count = room;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = n;
	return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

CALL(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t d, unsigned *n, nvmlProcessInfo_t *p)
	return lists(&s, d, n, p, s.mps == 2); }
CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDevice_t d, unsigned *n, nvmlProcessInfo_t *p)
	return lists(&s, d, n, p, !s.graphics); }
CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDevice_t d, unsigned *n, nvmlProcessInfo_t *p)
	return lists(&s, d, n, p, !s.mps); }

CALL(nvmlDeviceGetProcessUtilization, nvmlDevice_t d, nvmlProcessUtilizationSample_t *u, unsigned *n, unsigned long long since) ON_DEVICE
	if (!s.utilization || d->mig >= 0) return NVML_ERROR_NOT_SUPPORTED;
	static nvmlProcessInfo_t list[MAX_LISTED];
	unsigned long long total;
	s.duplicates = 0;
	unsigned have = processes_on(&s, d, list, MAX_LISTED - 1, &total), room = *n;
	if (have > MAX_LISTED - 1) have = MAX_LISTED - 1;
	if (s.utilization == 2) list[have++].pid = 645400;
	*n = have;
	if (!u || room < have) return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < have; i++)
		u[i] = (nvmlProcessUtilizationSample_t){.pid = list[i].pid, .timeStamp = since + 1000, .smUtil = 40, .memUtil = 10};
	DONE
CALL(nvmlDeviceGetMemoryLimits_v1, nvmlDevice_t d, nvmlGetMemoryLimits_v1_t *l) ON_DEVICE
	if (!s.charges || d->mig >= 0) return NVML_ERROR_NOT_SUPPORTED;
	if (access(l->nameSpace, F_OK)) return NVML_ERROR_OPERATING_SYSTEM;
	unsigned long long total;
	processes_on(&s, d, NULL, 0, &total);
	l->softLimit = 0;
	l->hardLimit = NVML_DEVICE_MEMORY_LIMIT_MAX;
	l->currentUsed = s.charge_mib ? (unsigned long long)s.charge_mib << 20 : total;
	DONE

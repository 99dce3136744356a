// lists.c: the calls that tell of processes.
#include "fake.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

// A line of a list, as its newest form has it.
typedef nvmlProcessInfo_v2_t line;

static bool hidden(const struct fault *f, unsigned pid) {
	for (int i = 0; i < f->hidden_count; i++)
		if (f->hidden[i] == pid) return true;
	return false;
}

// wanted are the kinds that a list of this kind names.
static int wanted(const struct fault *f, enum kind list) {
	if (list == COMPUTE && f->clients != CLIENTS_MPS) return COMPUTE | CLIENT;
	if (list == CLIENT && f->clients == CLIENTS_COMPUTE) return 0;
	return list;
}

static bytes figure(const struct fault *f, bytes held) {
	return f->figures == FIGURES_ALL_ONES ? ~0ULL : f->figures == FIGURES_ZERO ? 0 : held;
}

static line of_entry(const struct fault *f, const struct entry *e) {
	bool whole = e->instance < 0;
	line l = {.pid = e->pid + f->offset, .usedGpuMemory = figure(f, e->held), .gpuInstanceId = ~0U, .computeInstanceId = ~0U};
	if (!whole) mig_ids(f, e->instance, &l.gpuInstanceId, &l.computeInstanceId);
	return l;
}

// lines fills in the list of the processes of these kinds.
static int lines(const struct config *c, struct nvmlDevice_st *d, int kinds, line *to, int room) {
	static __thread struct entry found[MAX_ENTRIES];
	const struct fault *f = &c->of[d->gpu];
	int n = 0, have = processes(c, d, f->pids == PIDS_NODE, found);
	for (int i = 0; i < have; i++) {
		if (!(found[i].kind & kinds) || (found[i].gone && !f->stale) || hidden(f, found[i].pid)) continue;
		for (int times = 1 + f->duplicates; times > 0 && n < room; times--) to[n++] = of_entry(f, &found[i]);
	}
	for (int i = 0; kinds & COMPUTE && i < f->listed_count && n < room; i++)
		to[n++] = (line){.pid = f->listed[i].pid, .usedGpuMemory = figure(f, f->listed[i].held), .gpuInstanceId = ~0U, .computeInstanceId = ~0U};
	return n;
}

// answer is the list call of every form: lines that fit, and how many there are.
static nvmlReturn_t answer(const struct config *c, struct nvmlDevice_st *d, enum kind kind, unsigned *count, void *infos, size_t size) {
	static __thread line all[2 * MAX_ENTRIES];
	NEED(count);
	unsigned room = infos ? *count : 0, n = lines(c, d, wanted(&c->of[d->gpu], kind), all, 2 * MAX_ENTRIES);
	*count = n;
	if (n > room) return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < n; i++) memcpy((char *)infos + i * size, &all[i], size);
	return NVML_SUCCESS;
}

// The first form of a line ends before the instances.
_Static_assert(offsetof(nvmlProcessInfo_v1_t, usedGpuMemory) == offsetof(line, usedGpuMemory), "forms of a line differ");

#define LIST(name, kind, form) \
	CALL(name, nvmlDevice_t d, unsigned *n, form *infos) { \
		NEED(d.handle); \
		BEGIN(d.handle) \
		return answer(&c, d.handle, kind, n, infos, sizeof *infos); \
	}
LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE, nvmlProcessInfo_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS, nvmlProcessInfo_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, CLIENT, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, CLIENT, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, CLIENT, nvmlProcessInfo_t)

CALL(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t d, nvmlProcessDetailList_t *list) {
	static __thread line all[2 * MAX_ENTRIES];
	NEED(d.handle && list && list->mode < NVML_PROCESS_MODE_MAX);
	BEGIN(d.handle)
	if (list->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	const enum kind of_mode[] = {COMPUTE, GRAPHICS, CLIENT};
	int kinds = list->mode == NVML_PROCESS_MODE_ALL ? COMPUTE | GRAPHICS | CLIENT : wanted(OF(d), of_mode[list->mode]);
	unsigned room = list->procArray ? list->numProcArrayEntries : 0, n = lines(&c, d.handle, kinds, all, 2 * MAX_ENTRIES);
	list->numProcArrayEntries = n;
	if (n > room) return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < n; i++)
		list->procArray[i] = (nvmlProcessDetail_v1_t){all[i].pid, all[i].usedGpuMemory, all[i].gpuInstanceId, all[i].computeInstanceId, 0};
	return NVML_SUCCESS;
}

static bytes now_us(void) {
	struct timeval t;
	gettimeofday(&t, NULL);
	return t.tv_sec * 1000000ULL + t.tv_usec;
}

// Every process keeps 40 % of the multiprocessors busy. The driver leaves numbers of
// the node in this list for processes that the caller cannot see.
enum { BUSY = 40, STRANGER = 645400 };

CALL(nvmlDeviceGetProcessUtilization, nvmlDevice_t d, nvmlProcessUtilizationSample_t *samples, unsigned *count, unsigned long long since) {
	static __thread line all[2 * MAX_ENTRIES];
	NEED(d.handle && count);
	BEGIN(d.handle)
	if (OF(d)->usage == USAGE_OFF || OF(d)->instances) return NVML_ERROR_NOT_SUPPORTED;
	struct fault plain = c.of[d.handle->gpu];
	c.of[d.handle->gpu].duplicates = false;
	int n = lines(&c, d.handle, COMPUTE | GRAPHICS | CLIENT, all, 2 * MAX_ENTRIES - 1);
	if (plain.usage == USAGE_NODE) all[n++].pid = STRANGER;
	unsigned room = samples ? *count : 0;
	bytes now = now_us();
	if (since >= now || n == 0 || plain.usage == USAGE_NONE || plain.usage == USAGE_UNNAMED) return NVML_ERROR_NOT_FOUND;
	*count = n;
	if (room < (unsigned)n) return NVML_ERROR_INSUFFICIENT_SIZE;
	unsigned busy = plain.usage == USAGE_TRACE ? 0 : BUSY; // of less than a percent
	for (int i = 0; i < n; i++)
		samples[i] = (nvmlProcessUtilizationSample_t){.pid = all[i].pid, .timeStamp = now, .smUtil = busy, .memUtil = busy / 4};
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetUtilizationRates, nvmlDevice_t d, nvmlUtilization_t *rates) {
	static __thread struct entry found[MAX_ENTRIES];
	NEED(d.handle && rates);
	BEGIN(d.handle)
	if (OF(d)->instances) return NVML_ERROR_NOT_SUPPORTED;
	bool rests = OF(d)->usage == USAGE_NONE || OF(d)->usage == USAGE_TRACE;
	unsigned busy = rests ? 0 : BUSY * processes(&c, d.handle, of_node_known(), found);
	rates->gpu = busy < 100 ? busy : 100;
	rates->memory = rates->gpu / 4;
	return NVML_SUCCESS;
}

// in_cgroup adds up what the cgroup's processes hold, by the numbers that its file
// shows the reader.
static bytes in_cgroup(const struct config *c, struct nvmlDevice_st *d, FILE *procs) {
	static __thread struct entry found[MAX_ENTRIES];
	int n = processes(c, d, false, found);
	bytes sum = 0;
	for (unsigned pid; fscanf(procs, "%u", &pid) == 1;)
		for (int i = 0; i < n; i++) sum += found[i].pid == pid ? found[i].held : 0;
	return sum;
}

CALL(nvmlDeviceGetMemoryLimits_v1, nvmlDevice_t d, nvmlGetMemoryLimits_v1_t *limits) {
	NEED(d.handle && limits && limits->nameSpace);
	BEGIN(d.handle)
	if (!OF(d)->limits || OF(d)->instances) return NVML_ERROR_NOT_SUPPORTED;
	char path[4096];
	snprintf(path, sizeof path, "%s/cgroup.procs", limits->nameSpace);
	FILE *procs = fopen(path, "re");
	if (!procs) return NVML_ERROR_NOT_FOUND;
	limits->softLimit = 0;
	bool set = OF(d)->cuda_limit && OF(d)->cuda_limit_of == LIMIT_OF_POD;
	limits->hardLimit = set ? OF(d)->cuda_limit : NVML_DEVICE_MEMORY_LIMIT_MAX;
	limits->currentUsed = OF(d)->charged ? OF(d)->charged : in_cgroup(&c, d.handle, procs);
	fclose(procs);
	return NVML_SUCCESS;
}

// The limits are the cgroup's: an attribute of its folder, which goes with it.
CALL(nvmlDeviceSetMemoryLimits_v1, nvmlDevice_t d, nvmlSetMemoryLimits_v1_t *limits) {
	NEED(d.handle && limits && limits->nameSpace && limits->softLimit <= limits->hardLimit);
	BEGIN(d.handle)
	if (!OF(d)->limits || OF(d)->instances) return NVML_ERROR_NOT_SUPPORTED;
	char text[64];
	int length = snprintf(text, sizeof text, "%llu %llu", limits->softLimit, limits->hardLimit);
	if (setxattr(limits->nameSpace, "user.gpuslice.memory-limits", text, length, 0) && errno != ENOTSUP) return NVML_ERROR_OPERATING_SYSTEM;
	return NVML_SUCCESS;
}

// events.c: critical events, which the config names and each event set gets once.
#include "fake.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct nvmlEventSet_st { bool of[MAX_DEVICES]; int delivered[MAX_DEVICES]; };

CALL(nvmlEventSetCreate, nvmlEventSet_t *set) {
	NEED(set);
	BEGIN(NULL)
	set->handle = calloc(1, sizeof *set->handle);
	return set->handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}
CALL(nvmlEventSetFree, nvmlEventSet_t set) { BEGIN(NULL) free(set.handle); return NVML_SUCCESS; }

CALL(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t d, unsigned long long *types) {
	NEED(d.handle && types);
	BEGIN(d.handle)
	*types = nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeSingleBitEccError;
	return NVML_SUCCESS;
}
CALL(nvmlDeviceRegisterEvents, nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set) {
	NEED(d.handle && set.handle);
	BEGIN(d.handle)
	set.handle->of[d.handle->gpu] = types & nvmlEventTypeXidCriticalError;
	return NVML_SUCCESS;
}

// next finds an event that the set has not had.
static bool next(const struct config *c, struct nvmlEventSet_st *set, nvmlEventData_t *event) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int *delivered = set->delivered;
	bool found = false;
	pthread_mutex_lock(&lock);
	for (int gpu = 0; gpu < c->devices && !found; gpu++) {
		if (c->of[gpu].xid_count < delivered[gpu]) delivered[gpu] = 0;  // a new config
		if (!set->of[gpu] || delivered[gpu] >= c->of[gpu].xid_count) continue;
		*event = (nvmlEventData_t){.device = device_of(gpu, -1), .eventType = nvmlEventTypeXidCriticalError,
			.eventData = c->of[gpu].xids[delivered[gpu]++], .gpuInstanceId = ~0U, .computeInstanceId = ~0U};
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static long long now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static nvmlReturn_t wait(struct config *c, nvmlEventSet_t set, nvmlEventData_t *event, unsigned ms) {
	NEED(set.handle && event);
	for (long long until = now_ms() + ms;; usleep(10000)) {
		if (next(c, set.handle, event)) return NVML_SUCCESS;
		if (now_ms() >= until) return NVML_ERROR_TIMEOUT;
		config_read(c);
	}
}
CALL(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_t *event, unsigned ms) { BEGIN(NULL) return wait(&c, set, event, ms); }
CALL(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *event, unsigned ms) { BEGIN(NULL) return wait(&c, set, event, ms); }

// mig.c: MIG instances of profile 1g.10gb, GPU instance 7 and up, compute
// instance 0, and the events that a device plugin waits for.
#include "fake.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHOLE if (d->mig >= 0) return NVML_ERROR_INVALID_ARGUMENT;
#define INSTANCE if (d->mig < 0) return NVML_ERROR_INVALID_ARGUMENT;

CALL(nvmlDeviceGetMigMode, nvmlDevice_t d, unsigned *now, unsigned *pending) WHOLE
	if (s.mig < 0) return NVML_ERROR_NOT_SUPPORTED;
	*now = *pending = s.mig > 0;
	DONE
CALL(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t d, unsigned *n) (void)d; *n = s.mig < 0 ? 0 : MAX_MIG; DONE
CALL(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t d, unsigned i, nvmlDevice_t *m)
	if ((int)i >= s.mig) return NVML_ERROR_NOT_FOUND;
	*m = device_instance(d->gpu, i);
	DONE
CALL(nvmlDeviceIsMigDeviceHandle, nvmlDevice_t d, unsigned *yes) *yes = d->mig >= 0; DONE
CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t d, nvmlDevice_t *parent) INSTANCE *parent = device_whole(d->gpu); DONE
CALL(nvmlDeviceGetGpuInstanceId, nvmlDevice_t d, unsigned *id) INSTANCE *id = 7 + d->mig; DONE
CALL(nvmlDeviceGetComputeInstanceId, nvmlDevice_t d, unsigned *id) INSTANCE *id = 0; DONE
CALL(nvmlDeviceGetAttributes_v2, nvmlDevice_t d, nvmlDeviceAttributes_t *a) INSTANCE
	memset(a, 0, sizeof *a);
	a->multiprocessorCount = 14;
	a->sharedCopyEngineCount = a->gpuInstanceSliceCount = a->computeInstanceSliceCount = 1;
	a->memorySizeMB = 9728;
	DONE
CALL(nvmlDeviceGetGpuInstanceById, nvmlDevice_t d, unsigned id, nvmlGpuInstance_t *g)
	if (id < 7 || (int)id - 7 >= s.mig) return NVML_ERROR_NOT_FOUND;
	*g = (nvmlGpuInstance_t)device_instance(d->gpu, id - 7);
	DONE
CALL(nvmlGpuInstanceGetInfo, nvmlGpuInstance_t g, nvmlGpuInstanceInfo_t *info)
	nvmlDevice_t m = (nvmlDevice_t)g;
	memset(info, 0, sizeof *info);
	info->device = device_whole(m->gpu);
	info->id = 7 + m->mig;
	info->profileId = 19;
	info->placement.start = m->mig;
	info->placement.size = 1;
	DONE
CALL(nvmlGpuInstanceGetComputeInstanceById, nvmlGpuInstance_t g, unsigned id, nvmlComputeInstance_t *c)
	(void)id;
	*c = (nvmlComputeInstance_t)g;
	DONE
CALL(nvmlComputeInstanceGetInfo_v2, nvmlComputeInstance_t c, nvmlComputeInstanceInfo_t *info)
	nvmlDevice_t m = (nvmlDevice_t)c;
	memset(info, 0, sizeof *info);
	info->device = device_whole(m->gpu);
	info->placement.size = 1;
	DONE
CALL(nvmlDeviceGetGpuInstanceProfileInfo, nvmlDevice_t d, unsigned profile, nvmlGpuInstanceProfileInfo_t *info)
	(void)d;
	if (profile != NVML_GPU_INSTANCE_PROFILE_1_SLICE || s.mig < 0) return NVML_ERROR_NOT_SUPPORTED;
	memset(info, 0, sizeof *info);
	info->id = 19;
	info->sliceCount = 1;
	info->instanceCount = MAX_MIG;
	info->multiprocessorCount = 14;
	info->copyEngineCount = 1;
	info->memorySizeMB = 9728;
	DONE
CALL(nvmlGpuInstanceGetComputeInstanceProfileInfo, nvmlGpuInstance_t g, unsigned profile, unsigned engine, nvmlComputeInstanceProfileInfo_t *info)
	(void)g; (void)engine;
	if (profile) return NVML_ERROR_NOT_SUPPORTED;
	memset(info, 0, sizeof *info);
	info->sliceCount = info->instanceCount = 1;
	info->multiprocessorCount = 14;
	info->sharedCopyEngineCount = 1;
	DONE

struct nvmlEventSet_st { int unused; };
CALL(nvmlEventSetCreate, nvmlEventSet_t *set) *set = calloc(1, sizeof(struct nvmlEventSet_st)); DONE
CALL(nvmlEventSetFree, nvmlEventSet_t set) free(set); DONE
CALL(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t d, unsigned long long *types)
	(void)d;
	*types = nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeSingleBitEccError;
	DONE
CALL(nvmlDeviceRegisterEvents, nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set)
	(void)d; (void)types; (void)set;
	DONE
CALL(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *event, unsigned ms)
	static int delivered;
	(void)set;
	for (unsigned waited = 0; waited < ms; waited += 100, usleep(100000), switches_read(&s)) {
		if (delivered >= s.events) continue;
		memset(event, 0, sizeof *event);
		event->device = device_whole(s.event_device[delivered]);
		event->eventType = nvmlEventTypeXidCriticalError;
		event->eventData = s.event_code[delivered++];
		event->gpuInstanceId = event->computeInstanceId = ~0U;
		return NVML_SUCCESS;
	}
	return NVML_ERROR_TIMEOUT; }

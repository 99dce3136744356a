// mig.c: MIG instances, each with one compute instance that fills it. Numbers
// are those of an A100.
#include "fake.h"
#include <string.h>

enum { SLICE_PROCESSORS = 14 };

// A size of instance: its profiles as NVML counts them, its profile id, and the
// first of the instance ids that such instances get.
static const struct size { int slices; unsigned profile, id, first; } sizes[] = {
	{1, NVML_GPU_INSTANCE_PROFILE_1_SLICE, 19, 7}, {2, NVML_GPU_INSTANCE_PROFILE_2_SLICE, 14, 3},
	{3, NVML_GPU_INSTANCE_PROFILE_3_SLICE, 9, 1}, {4, NVML_GPU_INSTANCE_PROFILE_4_SLICE, 5, 1},
	{7, NVML_GPU_INSTANCE_PROFILE_7_SLICE, 0, 0},
};

static const struct size *size_of(int slices) {
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i].slices == slices) return &sizes[i];
	return NULL;
}

static const struct size *size_of_profile(unsigned profile) {
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i].profile == profile) return &sizes[i];
	return NULL;
}

static unsigned instance_id(const struct fault *f, int instance) {
	const struct size *own = size_of(f->mig[instance].slices), *other;
	unsigned id = own ? own->first : 0;
	for (int i = 0; i < instance; i++)
		if ((other = size_of(f->mig[i].slices)) && own && other->first == own->first) id++;
	return id;
}

// mig_ids are the ids of an instance and of its compute instance.
void mig_ids(const struct fault *f, int instance, unsigned *gi, unsigned *ci) {
	*gi = instance_id(f, instance);
	*ci = 0;
}

#define WHOLE NEED(d.handle); BEGIN(d.handle) NEED(d.handle->instance < 0);
#define INSTANCE NEED(d.handle); BEGIN(d.handle) NEED(d.handle->instance >= 0);
#define PROFILE(d) (&OF(d)->mig[(d).handle->instance])

CALL(nvmlDeviceGetMigMode, nvmlDevice_t d, unsigned *now, unsigned *pending) {
	WHOLE
	NEED(now && pending);
	if (c.cc_major < 8) return NVML_ERROR_NOT_SUPPORTED;
	*now = *pending = OF(d)->instances ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t d, unsigned *n) {
	WHOLE
	NEED(n);
	*n = c.cc_major < 8 ? 0 : MAX_INSTANCES;
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t d, unsigned index, nvmlDevice_t *instance) {
	WHOLE
	int i = visible_instance(&c, d.handle->gpu, index);
	NEED(instance);
	if (i < 0) return NVML_ERROR_NOT_FOUND;
	*instance = device_of(d.handle->gpu, i);
	return NVML_SUCCESS;
}
CALL(nvmlDeviceIsMigDeviceHandle, nvmlDevice_t d, unsigned *is) {
	NEED(d.handle && is);
	BEGIN(d.handle)
	*is = d.handle->instance >= 0;
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t d, nvmlDevice_t *parent) {
	INSTANCE
	NEED(parent);
	*parent = device_of(d.handle->gpu, -1);
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetGpuInstanceId, nvmlDevice_t d, unsigned *id) {
	INSTANCE
	NEED(id);
	*id = instance_id(OF(d), d.handle->instance);
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetComputeInstanceId, nvmlDevice_t d, unsigned *id) { INSTANCE NEED(id); *id = 0; return NVML_SUCCESS; }

CALL(nvmlDeviceGetAttributes_v2, nvmlDevice_t d, nvmlDeviceAttributes_t *a) {
	INSTANCE
	NEED(a);
	unsigned slices = PROFILE(d)->slices;
	*a = (nvmlDeviceAttributes_t){.multiprocessorCount = SLICE_PROCESSORS * slices, .sharedCopyEngineCount = slices,
		.gpuInstanceSliceCount = slices, .computeInstanceSliceCount = slices, .memorySizeMB = device_memory(&c, d.handle) >> 20};
	return NVML_SUCCESS;
}

// The handle of an instance serves as that of its GPU and compute instance.
#define MIG_OF(instance) ((nvmlDevice_t){(struct nvmlDevice_st *)(instance).handle})

CALL(nvmlDeviceGetGpuInstanceById, nvmlDevice_t d, unsigned id, nvmlGpuInstance_t *to) {
	WHOLE
	NEED(to);
	for (int i = 0; i < OF(d)->instances; i++) {
		if (instance_id(OF(d), i) != id) continue;
		to->handle = (struct nvmlGpuInstance_st *)device_of(d.handle->gpu, i).handle;
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}
CALL(nvmlGpuInstanceGetInfo, nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info) {
	nvmlDevice_t d = MIG_OF(instance);
	INSTANCE
	const struct size *size = size_of(PROFILE(d)->slices);
	NEED(info && size);
	*info = (nvmlGpuInstanceInfo_t){.device = device_of(d.handle->gpu, -1), .id = instance_id(OF(d), d.handle->instance), .profileId = size->id};
	for (int i = 0; i < d.handle->instance; i++) info->placement.start += OF(d)->mig[i].slices;
	info->placement.size = size->slices;
	return NVML_SUCCESS;
}
CALL(nvmlGpuInstanceGetComputeInstanceById, nvmlGpuInstance_t instance, unsigned id, nvmlComputeInstance_t *to) {
	nvmlDevice_t d = MIG_OF(instance);
	INSTANCE
	NEED(to);
	if (id) return NVML_ERROR_NOT_FOUND;
	to->handle = (struct nvmlComputeInstance_st *)d.handle;
	return NVML_SUCCESS;
}
CALL(nvmlComputeInstanceGetInfo_v2, nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *info) {
	nvmlDevice_t d = MIG_OF(instance);
	INSTANCE
	const struct size *size = size_of(PROFILE(d)->slices);
	NEED(info && size);
	*info = (nvmlComputeInstanceInfo_t){.device = device_of(d.handle->gpu, -1), .profileId = size->profile};
	info->gpuInstance.handle = (struct nvmlGpuInstance_st *)d.handle;
	info->placement.size = size->slices;
	return NVML_SUCCESS;
}

// gigabytes are those of the configured instances of that size, else a share by slices.
static unsigned gigabytes(const struct fault *f, int slices) {
	for (int i = 0; i < f->instances; i++)
		if (f->mig[i].slices == slices) return f->mig[i].gigabytes;
	return (f->memory >> 30) * (slices == 3 ? 4 : slices == 7 ? 8 : slices) / 8;
}
CALL(nvmlDeviceGetGpuInstanceProfileInfo, nvmlDevice_t d, unsigned profile, nvmlGpuInstanceProfileInfo_t *info) {
	NEED(d.handle && info);
	BEGIN(d.handle)
	const struct size *size = size_of_profile(profile);
	if (!size || c.cc_major < 8) return NVML_ERROR_NOT_SUPPORTED;
	*info = (nvmlGpuInstanceProfileInfo_t){.id = size->id, .sliceCount = size->slices, .instanceCount = MAX_INSTANCES / size->slices,
		.multiprocessorCount = SLICE_PROCESSORS * size->slices, .copyEngineCount = size->slices,
		.memorySizeMB = gigabytes(OF(d), size->slices) * 1024ULL * 95 / 100};
	return NVML_SUCCESS;
}
CALL(nvmlGpuInstanceGetComputeInstanceProfileInfo, nvmlGpuInstance_t instance, unsigned profile, unsigned engine, nvmlComputeInstanceProfileInfo_t *info) {
	nvmlDevice_t d = MIG_OF(instance);
	INSTANCE
	const struct size *size = size_of(PROFILE(d)->slices);
	NEED(info);
	if (!size || profile != size->profile || engine) return NVML_ERROR_NOT_SUPPORTED;
	*info = (nvmlComputeInstanceProfileInfo_t){.id = size->profile, .sliceCount = size->slices, .instanceCount = 1,
		.multiprocessorCount = SLICE_PROCESSORS * size->slices, .sharedCopyEngineCount = size->slices};
	return NVML_SUCCESS;
}

// device.c: the system and its devices.
#include "fake.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

nvmlDevice_t device_of(int gpu, int instance) {
	static struct nvmlDevice_st all[MAX_DEVICES][MAX_INSTANCES + 1];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct nvmlDevice_st *d = &all[gpu][instance + 1];
	pthread_mutex_lock(&lock);
	*d = (struct nvmlDevice_st){gpu, instance};
	pthread_mutex_unlock(&lock);
	return (nvmlDevice_t){d};
}

void device_uuid(struct nvmlDevice_st *d, char *text, size_t room) {
	if (d->instance < 0) snprintf(text, room, "GPU-00000000-0000-4000-8000-%012x", d->gpu);
	else snprintf(text, room, "MIG-00000000-0000-5000-8000-%08x%04x", d->gpu, d->instance);
}

// An instance has 95 % of its profile's round number, as the real ones about do.
bytes device_memory(const struct config *c, struct nvmlDevice_st *d) {
	const struct fault *f = &c->of[d->gpu];
	return d->instance < 0 ? f->memory : (bytes)f->mig[d->instance].gigabytes * 1024 * 95 / 100 << 20;
}

static nvmlReturn_t put(char *to, unsigned room, const char *text) {
	NEED(to);
	if (strlen(text) >= room) return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(to, text);
	return NVML_SUCCESS;
}

CALL(nvmlSystemGetDriverVersion, char *to, unsigned room) { BEGIN(NULL) return put(to, room, c.driver); }
CALL(nvmlSystemGetNVMLVersion, char *to, unsigned room) {
	BEGIN(NULL)
	char text[80];
	snprintf(text, sizeof text, "%d.%s", c.cuda_major, c.driver);
	return put(to, room, text);
}
static nvmlReturn_t cuda(int *to, const struct config *c) {
	NEED(to);
	*to = c->cuda_major * 1000 + c->cuda_minor * 10;
	return NVML_SUCCESS;
}
CALL(nvmlSystemGetCudaDriverVersion, int *to) { BEGIN(NULL) return cuda(to, &c); }
CALL(nvmlSystemGetCudaDriverVersion_v2, int *to) { BEGIN(NULL) return cuda(to, &c); }

static nvmlReturn_t count(const struct config *c, unsigned *n) {
	NEED(n);
	for (*n = 0; visible_device(c, *n) >= 0; ++*n) {}
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetCount, unsigned *n) { BEGIN(NULL) return count(&c, n); }
CALL(nvmlDeviceGetCount_v2, unsigned *n) { BEGIN(NULL) return count(&c, n); }

static nvmlReturn_t by_index(const struct config *c, unsigned index, nvmlDevice_t *d) {
	int gpu = visible_device(c, index);
	NEED(d && gpu >= 0);
	*d = device_of(gpu, -1);
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetHandleByIndex, unsigned index, nvmlDevice_t *d) { BEGIN(NULL) return by_index(&c, index, d); }
CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvmlDevice_t *d) { BEGIN(NULL) return by_index(&c, index, d); }

CALL(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *d) {
	NEED(uuid && d);
	BEGIN(NULL)
	char have[96];
	for (int gpu = 0; gpu < c.devices; gpu++)
		for (int i = -1; i < c.of[gpu].instances; i++) {
			device_uuid(&(struct nvmlDevice_st){gpu, i}, have, sizeof have);
			if (!visible(&c, gpu, i) || strcmp(have, uuid)) continue;
			*d = device_of(gpu, i);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

static void bus_id(char *to, size_t room, int gpu, int digits) {
	snprintf(to, room, "%0*X:%02X:00.0", digits, 0, 7 + gpu);
}
static nvmlReturn_t by_bus(const struct config *c, const char *id, nvmlDevice_t *d) {
	NEED(id && d);
	for (int gpu = 0; gpu < c->devices; gpu++)
		for (int digits = 4; digits <= 8; digits += 4) {
			char have[32];
			bus_id(have, sizeof have, gpu, digits);
			if (!visible(c, gpu, -1) || strcasecmp(have, id)) continue;
			*d = device_of(gpu, -1);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}
CALL(nvmlDeviceGetHandleByPciBusId, const char *id, nvmlDevice_t *d) { BEGIN(NULL) return by_bus(&c, id, d); }
CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *id, nvmlDevice_t *d) { BEGIN(NULL) return by_bus(&c, id, d); }

// ON begins a function of a device or an instance, WHOLE one of a device.
#define ON NEED(d.handle); BEGIN(d.handle)
#define WHOLE ON NEED(d.handle->instance < 0);

CALL(nvmlDeviceGetPciInfo_v3, nvmlDevice_t d, nvmlPciInfo_t *info) {
	ON
	NEED(info);
	memset(info, 0, sizeof *info);
	info->bus = 7 + d.handle->gpu;
	info->pciDeviceId = 0x20b210de;  // an A100 80GB
	bus_id(info->busId, sizeof info->busId, d.handle->gpu, 8);
	bus_id(info->busIdLegacy, sizeof info->busIdLegacy, d.handle->gpu, 4);
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetUUID, nvmlDevice_t d, char *to, unsigned room) {
	ON
	char text[96];
	device_uuid(d.handle, text, sizeof text);
	return put(to, room, text);
}
CALL(nvmlDeviceGetName, nvmlDevice_t d, char *to, unsigned room) {
	ON
	char text[160];
	const struct profile *p = &OF(d)->mig[d.handle->instance < 0 ? 0 : d.handle->instance];
	if (d.handle->instance < 0) return put(to, room, c.name);
	snprintf(text, sizeof text, "%s MIG %dg.%dgb", c.name, p->slices, p->gigabytes);
	return put(to, room, text);
}
CALL(nvmlDeviceGetIndex, nvmlDevice_t d, unsigned *index) {
	ON
	NEED(index);
	for (*index = 0; visible_device(&c, *index) != d.handle->gpu; ++*index) NEED(visible_device(&c, *index) >= 0);
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetMinorNumber, nvmlDevice_t d, unsigned *minor) { WHOLE NEED(minor); *minor = d.handle->gpu; return NVML_SUCCESS; }
CALL(nvmlDeviceGetComputeMode, nvmlDevice_t d, nvmlComputeMode_t *mode) { ON NEED(mode); *mode = c.mode; return NVML_SUCCESS; }
CALL(nvmlDeviceGetPersistenceMode, nvmlDevice_t d, nvmlEnableState_t *on) { WHOLE NEED(on); *on = NVML_FEATURE_ENABLED; return NVML_SUCCESS; }
CALL(nvmlDeviceGetBrand, nvmlDevice_t d, nvmlBrandType_t *brand) { ON NEED(brand); *brand = NVML_BRAND_NVIDIA; return NVML_SUCCESS; }
CALL(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t d, int *major, int *minor) {
	ON
	NEED(major && minor);
	*major = c.cc_major, *minor = c.cc_minor;
	return NVML_SUCCESS;
}
// The architecture follows from the compute capability.
static nvmlDeviceArchitecture_t architecture(int major, int minor) {
	switch (major) {
	case 7: return minor < 5 ? NVML_DEVICE_ARCH_VOLTA : NVML_DEVICE_ARCH_TURING;
	case 8: return minor < 9 ? NVML_DEVICE_ARCH_AMPERE : NVML_DEVICE_ARCH_ADA;
	case 9: return NVML_DEVICE_ARCH_HOPPER;
	case 10: case 11: case 12: return NVML_DEVICE_ARCH_BLACKWELL;
	}
	return NVML_DEVICE_ARCH_UNKNOWN;
}
CALL(nvmlDeviceGetArchitecture, nvmlDevice_t d, nvmlDeviceArchitecture_t *arch) {
	ON
	NEED(arch);
	*arch = architecture(c.cc_major, c.cc_minor);
	return NVML_SUCCESS;
}

// memory is the total: base is what the driver keeps for itself.
static void memory(const struct config *c, struct nvmlDevice_st *d, nvmlMemory_v2_t *m) {
	const struct fault *f = &c->of[d->gpu];
	m->total = device_memory(c, d);
	m->reserved = f->base < m->total ? f->base : m->total;
	m->used = held(c, d) + (d->instance < 0 ? f->others : 0);
	if (m->used > m->total - m->reserved) m->used = m->total - m->reserved;
	m->free = m->total - m->reserved - m->used;
}
CALL(nvmlDeviceGetMemoryInfo, nvmlDevice_t d, nvmlMemory_t *to) {
	ON
	NEED(to);
	nvmlMemory_v2_t m;
	memory(&c, d.handle, &m);
	*to = (nvmlMemory_t){.total = m.total, .free = m.free, .used = m.used + m.reserved};
	return NVML_SUCCESS;
}
CALL(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t d, nvmlMemory_v2_t *to) {
	ON
	NEED(to);
	if (to->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memory(&c, d.handle, to);
	return NVML_SUCCESS;
}

// A device plugin that allocates several devices at once cannot do without it.
CALL(nvmlDeviceGetTopologyCommonAncestor, nvmlDevice_t d, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level) {
	ON
	NEED(other.handle && level);
	*level = d.handle == other.handle ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_SYSTEM;
	return NVML_SUCCESS;
}

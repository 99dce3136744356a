// device.c: the system and its devices.
#include "fake.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct nvmlDevice_st whole[MAX_DEVICES], instances[MAX_DEVICES][MAX_MIG];

nvmlDevice_t device_whole(int gpu) {
	whole[gpu] = (struct nvmlDevice_st){gpu, -1};
	return &whole[gpu];
}

nvmlDevice_t device_instance(int gpu, int mig) {
	instances[gpu][mig] = (struct nvmlDevice_st){gpu, mig};
	return &instances[gpu][mig];
}

unsigned long long device_bytes(const struct switches *s, nvmlDevice_t d) {
	return (d->mig < 0 ? (unsigned long long)s->mem_mib : 9728) << 20;
}

static nvmlReturn_t memory(struct switches *s, nvmlDevice_t d, unsigned long long *all, unsigned long long *used) {
	while (s->hang == 2) {
		sleep(1);
		switches_read(s);
	}
	if (s->lost) return s->lost;
	if (s->memory) return s->memory;
	processes_on(s, d, NULL, 0, used);
	*used += (unsigned long long)s->others_mib << 20;
	*all = device_bytes(s, d);
	if (*used > *all) *used = *all;
	return NVML_SUCCESS;
}

static void uuid(nvmlDevice_t d, char *text, unsigned room) {
	if (d->mig < 0) snprintf(text, room, "GPU-00000000-0000-4000-8000-0000000000%02x", d->gpu);
	else snprintf(text, room, "MIG-00000000-0000-5000-8000-00000000%02x%02x", d->gpu, d->mig);
}

CALL(nvmlInit_v2, void) return s.init; }
CALL(nvmlInitWithFlags, unsigned flags) (void)flags; return s.init; }
CALL(nvmlShutdown, void) DONE
EXPORT const char *nvmlErrorString(nvmlReturn_t r) {
	switch (r) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_TIMEOUT: return "Timeout";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	default: return "Unknown Error";
	}
}
CALL(nvmlSystemGetDriverVersion, char *v, unsigned n) snprintf(v, n, "%s", s.driver); DONE
CALL(nvmlSystemGetNVMLVersion, char *v, unsigned n) snprintf(v, n, "13.%s", s.driver); DONE
CALL(nvmlSystemGetCudaDriverVersion, int *v) *v = s.cuda; DONE
CALL(nvmlSystemGetCudaDriverVersion_v2, int *v) *v = s.cuda; DONE
CALL(nvmlDeviceGetCount_v2, unsigned *n) *n = s.devices; DONE
CALL(nvmlDeviceGetHandleByIndex_v2, unsigned i, nvmlDevice_t *d)
	if ((int)i >= s.devices) return NVML_ERROR_INVALID_ARGUMENT;
	*d = device_whole(i);
	DONE
CALL(nvmlDeviceGetUUID, nvmlDevice_t d, char *text, unsigned n) uuid(d, text, n); DONE
CALL(nvmlDeviceGetHandleByUUID, const char *want, nvmlDevice_t *d)
	char have[96];
	for (int i = 0; i < s.devices; i++) {
		uuid(*d = device_whole(i), have, sizeof have);
		if (!strcmp(have, want)) return NVML_SUCCESS;
		for (int j = 0; j < s.mig; j++) {
			uuid(*d = device_instance(i, j), have, sizeof have);
			if (!strcmp(have, want)) return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND; }
CALL(nvmlDeviceGetName, nvmlDevice_t d, char *text, unsigned n)
	snprintf(text, n, d->mig < 0 ? "%s" : "%s MIG 1g.10gb", s.name);
	DONE
CALL(nvmlDeviceGetIndex, nvmlDevice_t d, unsigned *i) *i = d->gpu; DONE
CALL(nvmlDeviceGetMinorNumber, nvmlDevice_t d, unsigned *i)
	if (d->mig >= 0) return NVML_ERROR_INVALID_ARGUMENT;
	*i = d->gpu;
	DONE
CALL(nvmlDeviceGetPciInfo_v3, nvmlDevice_t d, nvmlPciInfo_t *p)
	memset(p, 0, sizeof *p);
	p->bus = 7 + d->gpu;
	p->pciDeviceId = 0x20b210de;
	snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", p->bus);
	snprintf(p->busIdLegacy, sizeof p->busIdLegacy, "0000:%02X:00.0", p->bus);
	DONE
CALL(nvmlDeviceGetMemoryInfo, nvmlDevice_t d, nvmlMemory_t *m)
	nvmlReturn_t r = memory(&s, d, &m->total, &m->used);
	if (!r) m->free = m->total - m->used;
	return r; }
CALL(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t d, nvmlMemory_v2_t *m)
	nvmlReturn_t r = memory(&s, d, &m->total, &m->used);
	m->reserved = 0;
	if (!r) m->free = m->total - m->used;
	return r; }
CALL(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t d, int *major, int *minor)
	(void)d; *major = s.cc_major; *minor = s.cc_minor;
	DONE
CALL(nvmlDeviceGetComputeMode, nvmlDevice_t d, nvmlComputeMode_t *mode) ON_DEVICE (void)d; *mode = s.compute_mode; DONE
CALL(nvmlDeviceGetTopologyCommonAncestor, nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level)
	*level = a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_SYSTEM;
	DONE
CALL(nvmlDeviceGetNvLinkState, nvmlDevice_t d, unsigned link, nvmlEnableState_t *state)
	(void)d; (void)link; (void)state;
	return NVML_ERROR_NOT_SUPPORTED; }
CALL(nvmlDeviceGetGpuFabricInfo, nvmlDevice_t d, nvmlGpuFabricInfo_t *info)
	(void)d; (void)info;
	return NVML_ERROR_NOT_SUPPORTED; }

// cuda.c: the calls of CUDA's driver API by which programs hold memory. It is in libcuda.so.1 alone. What the process
// holds it writes in the place of the last argument, where NVML's imitation reads it.
#define _GNU_SOURCE // memfd_create
#include "fake.h"
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, DEVICE_UNAVAILABLE = 46, NO_DEVICE = 100, INVALID_CONTEXT = 201 };
enum { MAX_ALLOCATIONS = 65536, CONTEXT = 64 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { bytes size; bool managed, passable; } allocations[MAX_ALLOCATIONS];
static bytes listed, managed;
static bool initialized, client;
static int current = -1; // the device of the context
static int instance = -1; // its instance, where it has some

static char *room, *digits;

// glibc passes the program's own arguments to libraries, too.
__attribute__((constructor)) static void start(int argc, char **argv) {
	if (argc > 2) room = argv[argc - 1];
}

// show writes the word: its digits in one store, so that a reader sees the old amount or the new one.
static void show(const struct config *c) {
	char before[200], number[9];
	if (!digits) {
		int n = snprintf(before, sizeof before, instance < 0 ? "%s%sgpu%d=" : "%s%sgpu%d.%d=", c->node, *c->node ? "/" : "", current, instance);
		size_t space = room ? strlen(room) : 0, at = n;
		while ((size_t)(room + at) % 8) at++;
		if (at + 17 > space) {
			fprintf(stderr, "fake CUDA: the last argument has no room for \"%s\"\n", before);
			abort();
		}
		memset(room, 0, space);
		digits = room + at;
		strcpy(digits, client ? "00000000MiB/M+C" : "00000000MiB/C");
		memcpy(digits - n, before, n);
	}
	snprintf(number, sizeof number, "%08llu", (listed >> 20) % 100000000);
	__atomic_store_n((bytes *)digits, *(bytes *)number, __ATOMIC_SEQ_CST);
}

// is_client tells whether the process reaches an MPS daemon: whoever does not runs without one.
static bool is_client(void) {
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
	return folder && *folder && !access(folder, F_OK);
}

// limit_of is what the driver lets the caller hold, or 0. An entry about a device that is not there drops all of MPS's.
static bytes limit_of(const struct config *c, const char *call) {
	const struct fault *f = &c->of[current];
	const char *pinned = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	if (f->cuda_limit_of == LIMIT_OF_CLIENT && (!client || (pinned && *pinned))) return 0;
	char leaks[256], *rest;
	snprintf(leaks, sizeof leaks, "%s", f->cuda_leaks);
	for (char *p = strtok_r(leaks, ",", &rest); p; p = strtok_r(NULL, ",", &rest))
		if (!fnmatch(p, call, 0)) return 0;
	return f->cuda_limit;
}

static bytes held_in_pod(const struct config *c) {
	static struct entry found[MAX_ENTRIES];
	bytes sum = managed;
	int n = processes(c, &(struct nvmlDevice_st){current, -1}, false, found);
	for (int i = 0; i < n; i++) sum += found[i].held;
	return sum;
}

static int allocate(const char *call, bytes size, bool is_managed, bytes *to) {
	static struct config c;
	if (!size || !to) return INVALID_VALUE;
	if (current < 0) return INVALID_CONTEXT;
	config_read(&c);
	delay(&c, call, NULL);
	struct nvmlDevice_st d = {current, instance};
	bytes limit = limit_of(&c, call), own = c.of[current].cuda_limit_of == LIMIT_OF_POD ? held_in_pod(&c) : listed + managed;
	if (limit && own + size > limit) return OUT_OF_MEMORY;
	bytes taken = held(&c, &d) + managed + c.of[current].base + (d.instance < 0 ? c.of[current].others : 0);
	if (!is_managed && taken + size > device_memory(&c, &d)) return OUT_OF_MEMORY; // managed memory goes on in the host's
	for (int i = 0; i < MAX_ALLOCATIONS; i++) {
		if (allocations[i].size) continue;
		allocations[i].size = size, allocations[i].managed = is_managed, allocations[i].passable = false;
		*(is_managed ? &managed : &listed) += size;
		*to = i + 1;
		show(&c);
		return SUCCESS;
	}
	return OUT_OF_MEMORY;
}

static bool taken_at(bytes at) { return at && at <= MAX_ALLOCATIONS && allocations[at - 1].size; }

static int release(bytes at) {
	static struct config c;
	if (!taken_at(at)) return INVALID_VALUE;
	*(allocations[at - 1].managed ? &managed : &listed) -= allocations[at - 1].size;
	allocations[at - 1].size = 0;
	config_read(&c);
	show(&c);
	return SUCCESS;
}

#define CUDA(name, ...) EXPORT int name(__VA_ARGS__)
#define LOCKED(answer) { pthread_mutex_lock(&lock); int r = answer; pthread_mutex_unlock(&lock); return r; }
#define ANSWER(condition) return (condition) ? SUCCESS : INVALID_VALUE

// means tells whether a word of CUDA_VISIBLE_DEVICES is the device, by its number or UUID, or one of its instances.
static bool means(const struct config *c, const char *word, int number, int gpu, int *of) {
	char have[96];
	*of = c->of[gpu].instances ? visible_instance(c, gpu, 0) : -1;
	snprintf(have, sizeof have, "%d", number);
	if (!strcmp(word, have)) return true;
	for (int i = -1; i < c->of[gpu].instances; i++) {
		device_uuid(&(struct nvmlDevice_st){gpu, i}, have, sizeof have);
		if (strcmp(word, have) || !visible(c, gpu, i)) continue;
		if (i >= 0) *of = i;
		return true;
	}
	return false;
}

// numbered is the device that CUDA gives a number, or -1, and its instance.
static int numbered(const struct config *c, int ordinal, int *of) {
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	char copy[4096], number[16], *rest;
	snprintf(number, sizeof number, "%d", ordinal);
	snprintf(copy, sizeof copy, "%s", list ? list : number);
	if (!list) ordinal = 0;
	for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest), ordinal--) {
		int n = 0, gpu;
		while ((gpu = visible_device(c, n)) >= 0 && !means(c, word, n, gpu, of)) n++;
		if (gpu < 0 || !ordinal) return gpu; // a word that means nothing hides all that come after it
	}
	return -1;
}

CUDA(cuInit, unsigned flags) {
	struct config c;
	config_read(&c);
	initialized = !flags && numbered(&c, 0, &instance) >= 0;
	return initialized ? SUCCESS : NO_DEVICE;
}
CUDA(cuDeviceGet, int *device, int ordinal) {
	struct config c;
	config_read(&c);
	if (!initialized) return NOT_INITIALIZED;
	*device = numbered(&c, ordinal, &instance);
	return *device < 0 ? 101 : SUCCESS;
}
CUDA(cuDevicePrimaryCtxRetain, void **context, int device) {
	struct config c;
	config_read(&c);
	client = is_client();
	if (c.mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS && !client) return DEVICE_UNAVAILABLE;
	if (c.mode == NVML_COMPUTEMODE_PROHIBITED) return DEVICE_UNAVAILABLE;
	*context = &current;
	current = device;
	listed = c.of[device].context ? c.of[device].context : CONTEXT;
	show(&c);
	return SUCCESS;
}
CUDA(cuDevicePrimaryCtxRelease_v2, int device) { ANSWER(device == current); }
CUDA(cuCtxSetCurrent, void *context) { ANSWER(context == &current); }
CUDA(cuCtxSynchronize, void) { return current < 0 ? INVALID_CONTEXT : SUCCESS; }

CUDA(cuMemAlloc_v2, bytes *at, size_t size) LOCKED(allocate("cuMemAlloc", size, false, at))
CUDA(cuMemAllocManaged, bytes *at, size_t size, unsigned flags) LOCKED(flags == 1 ? allocate("cuMemAllocManaged", size, true, at) : INVALID_VALUE)
CUDA(cuMemFree_v2, bytes at) LOCKED(release(at))
CUDA(cuMemsetD8_v2, bytes at, unsigned char value, size_t size) {
	(void)value;
	ANSWER(size && taken_at(at) && allocations[at - 1].size == size);
}
CUDA(cuMemAllocAsync, bytes *at, size_t size, void *stream) LOCKED(stream ? INVALID_VALUE : allocate("cuMemAllocAsync", size, false, at))

// The device to a process is what its limit leaves.
static int memory(size_t *left, size_t *total) {
	static struct config c;
	if (current < 0) return INVALID_CONTEXT;
	config_read(&c);
	struct nvmlDevice_st d = {current, instance};
	bytes limit = limit_of(&c, "cuMemAlloc"), used = held(&c, &d) + managed;
	*total = device_memory(&c, &d);
	if (limit && limit < *total) *total = limit, used = listed + managed;
	*left = used < *total ? *total - used : 0;
	return SUCCESS;
}
CUDA(cuMemGetInfo_v2, size_t *left, size_t *total) LOCKED(memory(left, total))

enum { MULTIPROCESSOR_COUNT = 16, MULTIPROCESSORS = 108 };
CUDA(cuDeviceGetAttribute, int *value, int attribute, int device) {
	const char *percent = client ? getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") : NULL;
	*value = MULTIPROCESSORS * (percent ? atoi(percent) : 100) / 100;
	ANSWER(attribute == MULTIPROCESSOR_COUNT && device >= 0);
}

// Memory by a handle is its owner's; memory by a descriptor is counted for each process that has it.
union ipc { char room[64]; struct { pid_t owner; bytes size; }; };
enum { LAZY_PEER_ACCESS = 1, DESCRIPTOR = 1, OPENED = MAX_ALLOCATIONS + 1 };
CUDA(cuIpcGetMemHandle, union ipc *to, bytes at) {
	if (!taken_at(at)) return INVALID_VALUE;
	*to = (union ipc){.owner = getpid(), .size = allocations[at - 1].size};
	return SUCCESS;
}
CUDA(cuIpcOpenMemHandle_v2, bytes *at, union ipc from, unsigned flags) {
	if (from.owner == getpid()) return INVALID_CONTEXT;
	*at = OPENED;
	ANSWER(flags == LAZY_PEER_ACCESS && from.size && from.owner > 0 && !kill(from.owner, 0));
}
CUDA(cuMemExportToShareableHandle, int *to, bytes at, int type, bytes flags) {
	if (type != DESCRIPTOR || flags || !taken_at(at) || !allocations[at - 1].passable) return INVALID_VALUE;
	*to = memfd_create("fake CUDA", MFD_CLOEXEC);
	ANSWER(*to >= 0 && !ftruncate(*to, allocations[at - 1].size));
}
CUDA(cuMemImportFromShareableHandle, bytes *at, void *from, int type) {
	struct stat s;
	if (type != DESCRIPTOR || fstat((intptr_t)from, &s)) return INVALID_VALUE;
	LOCKED(allocate("cuMemImportFromShareableHandle", s.st_size, false, at))
}

// As the driver's header has it.
struct properties { int type, handles; struct { int type, id; } location; void *metadata; unsigned char flags[8]; };
enum { PINNED = 1, ON_DEVICE = 1, GRANULARITY = 2 << 20 };

static bool valid(const struct properties *p) {
	static const unsigned char none[8];
	return p && p->type == PINNED && (!p->handles || p->handles == DESCRIPTOR) && p->location.type == ON_DEVICE && p->location.id == current && !p->metadata && !memcmp(p->flags, none, sizeof none);
}
CUDA(cuMemGetAllocationGranularity, size_t *size, const struct properties *p, int option) {
	*size = GRANULARITY;
	ANSWER(valid(p) && !option);
}
static int create(bytes *at, size_t size, const struct properties *p) {
	int r = allocate("cuMemCreate", size, false, at);
	if (!r) allocations[*at - 1].passable = p->handles == DESCRIPTOR;
	return r;
}
CUDA(cuMemCreate, bytes *at, size_t size, const struct properties *p, bytes flags)
	LOCKED(valid(p) && !flags && size % GRANULARITY == 0 ? create(at, size, p) : INVALID_VALUE)
CUDA(cuMemRelease, bytes at) LOCKED(release(at))

CUDA(cuGetErrorName, int error, const char **name) {
	switch (error) {
	case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
	case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
	case NOT_INITIALIZED: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
	case DEVICE_UNAVAILABLE: *name = "CUDA_ERROR_DEVICE_UNAVAILABLE"; break;
	case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
	case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
	default: return INVALID_VALUE;
	}
	return SUCCESS;
}

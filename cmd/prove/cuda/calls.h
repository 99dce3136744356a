// calls.h: the functions of the driver's library, called through pointers. Its declarations are our own: no header of CUDA's is needed.
#ifndef GPUSLICE_CUDA_CALLS_H
#define GPUSLICE_CUDA_CALLS_H
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

typedef unsigned long long handle;

struct properties {
	int type, handles;
	struct { int type, id; } location;
	void *metadata;
	unsigned char flags[8];
};

struct ipc { char bytes[64]; };

struct functions {
	int (*init)(unsigned);
	int (*device)(int *, int);
	int (*retain)(void **, int);
	int (*set_current)(void *);
	int (*synchronize)(void);
	int (*allocate)(handle *, size_t);
	int (*allocate_managed)(handle *, size_t, unsigned);
	int (*fill)(handle, unsigned char, size_t);
	int (*granularity)(size_t *, const struct properties *, int);
	int (*create)(handle *, size_t, const struct properties *, handle);
	int (*error_name)(int, const char **);
	// Older drivers may lack these.
	int (*memory)(size_t *, size_t *);
	int (*attribute)(int *, int, int);
	int (*allocate_async)(handle *, size_t, void *);
	int (*ipc_get)(struct ipc *, handle);
	int (*ipc_open)(handle *, struct ipc, unsigned);
	int (*give)(void *, handle, int, handle);
	int (*take)(handle *, void *, int);
};

static int call_init(struct functions *f) { return f->init(0); }
static int call_device(struct functions *f, int *d, int ordinal) { return f->device(d, ordinal); }
static int call_retain(struct functions *f, int d) {
	void *context;
	int r = f->retain(&context, d);
	return r ? r : f->set_current(context);
}
static int call_synchronize(struct functions *f) { return f->synchronize(); }
static int call_allocate(struct functions *f, handle *at, size_t n) { return f->allocate(at, n); }

enum { ATTACH_GLOBAL = 1, PINNED = 1, ON_DEVICE = 1, MINIMUM = 0, FILLER = 0x5a, LAZY_PEER_ACCESS = 1, DESCRIPTOR = 1 };

// Managed memory is on the device once the device has written to it.
static int call_allocate_managed(struct functions *f, handle *at, size_t n) {
	int r = f->allocate_managed(at, n, ATTACH_GLOBAL);
	if (!r) r = f->fill(*at, FILLER, n);
	return r ? r : f->synchronize();
}
static int call_granularity(struct functions *f, size_t *n, int d, int handles) {
	struct properties p = {.type = PINNED, .handles = handles, .location = {ON_DEVICE, d}};
	return f->granularity(n, &p, MINIMUM);
}
static int call_create(struct functions *f, handle *at, size_t n, int d, int handles) {
	struct properties p = {.type = PINNED, .handles = handles, .location = {ON_DEVICE, d}};
	return f->create(at, n, &p, 0);
}
static const char *call_error_name(struct functions *f, int error) {
	const char *name = NULL;
	return f->error_name(error, &name) ? NULL : name;
}

static int call_fill(struct functions *f, handle at, size_t n) {
	int r = f->fill(at, FILLER, n);
	return r ? r : f->synchronize();
}
static int call_memory(struct functions *f, size_t *free, size_t *total) { return f->memory(free, total); }
static int call_attribute(struct functions *f, int *value, int attribute, int d) { return f->attribute(value, attribute, d); }
static int call_allocate_async(struct functions *f, handle *at, size_t n) {
	int r = f->allocate_async(at, n, NULL);
	return r ? r : f->synchronize();
}
static int call_ipc_get(struct functions *f, struct ipc *to, handle at) { return f->ipc_get(to, at); }
static int call_ipc_open(struct functions *f, handle *at, struct ipc from) { return f->ipc_open(at, from, LAZY_PEER_ACCESS); }
static int call_export(struct functions *f, int *fd, handle of) { return f->give(fd, of, DESCRIPTOR, 0); }
static int call_import(struct functions *f, handle *to, int fd) { return f->take(to, (void *)(size_t)fd, DESCRIPTOR); }
#endif

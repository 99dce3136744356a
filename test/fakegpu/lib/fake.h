// fake.h: what the parts of the imitation share.
#ifndef GPUSLICE_FAKE_H
#define GPUSLICE_FAKE_H
#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include "nvml.h"
#include <stdbool.h>
#include <stddef.h>

#define MAX_DEVICES 16
#define MAX_INSTANCES 7
#define MAX_RULES 64
#define MAX_PIDS 64
#define MAX_ENTRIES 4096
#define MAX_TEXT 16384
#define EXPORT __attribute__((visibility("default")))

typedef unsigned long long bytes;

// A device, or with instance >= 0 one of its MIG instances.
struct nvmlDevice_st { int gpu, instance; };

enum pids { PIDS_OWN, PIDS_NODE };
enum figures { FIGURES_TRUE, FIGURES_ALL_ONES, FIGURES_ZERO };
enum clients { CLIENTS_BOTH, CLIENTS_MPS, CLIENTS_COMPUTE };
enum cuda_limit_of { LIMIT_OF_PROCESS, LIMIT_OF_CLIENT, LIMIT_OF_POD };
enum usage { USAGE_OFF, USAGE_OWN, USAGE_NODE, USAGE_NONE, USAGE_TRACE, USAGE_UNNAMED };

struct profile { int slices, gigabytes; };
struct listed { unsigned pid; bytes held; };

// What config says of one device; Fault in config.go has the meanings.
struct fault {
	bytes memory, base, others, charged;
	struct profile mig[MAX_INSTANCES];
	int instances;
	enum pids pids;
	unsigned offset;  // added to each PID of the lists
	enum figures figures;
	bool duplicates, stale, limits, monitor;
	struct listed listed[MAX_PIDS];
	int listed_count;
	unsigned hidden[MAX_PIDS];
	int hidden_count;
	enum clients clients;
	int linger_ms;
	enum usage usage;
	bytes context; // 0: CONTEXT
	bytes cuda_limit;
	enum cuda_limit_of cuda_limit_of;
	char cuda_leaks[256];  // patterns of calls
	int xids[MAX_RULES];
	int xid_count;
};

enum act { FAIL, HANG, SLOW };

// A rule is a line about calls; gpu < 0: of every device and of none.
struct rule { enum act act; int gpu; char *call; int code, times, ms; };

struct config {
	char text[MAX_TEXT];
	const char *node, *name, *driver;
	int devices, cuda_major, cuda_minor, cc_major, cc_minor;
	nvmlComputeMode_t mode;
	struct fault of[MAX_DEVICES];
	struct rule rules[MAX_RULES];
	int rule_count;
};

// config_read reads the config anew. A line that is not understood is told once on
// standard error, so that a misspelt switch does not pass for a healthy device.
void config_read(struct config *c);

// config_amount reads "9216MiB" and returns where it ends, or NULL.
const char *config_amount(const char *text, bytes *amount);

// enter is how each function begins: it reads the config, checks the device (NULL: the
// function has none), and does what the rules say of the call. Not SUCCESS is the answer.
nvmlReturn_t enter(struct config *c, const char *function, struct nvmlDevice_st *d);

// delay lets a call hang or take its time, as the rules say. The config is read anew meanwhile.
void delay(struct config *c, const char *function, struct nvmlDevice_st *d);

// What a process holds and shows there.
enum kind { COMPUTE = 1, GRAPHICS = 2, CLIENT = 4 };
struct entry { unsigned pid; int instance; enum kind kind; bytes held; bool gone; };

// processes fills in who holds what on the device, of the instance that d is or of all, in the caller's
// PID namespace or the node's. It returns how many, at most MAX_ENTRIES. Memory that
// lingers has entries that are gone.
int processes(const struct config *c, struct nvmlDevice_st *d, bool of_node, struct entry *found);

// of_node_known tells whether the node's processes can be seen.
bool of_node_known(void);

// held adds up all that processes hold, as a driver's total does.
bytes held(const struct config *c, struct nvmlDevice_st *d);

// device_of returns the handle; instance < 0 is the whole device.
nvmlDevice_t device_of(int gpu, int instance);
void device_uuid(struct nvmlDevice_st *d, char *text, size_t room);
bytes device_memory(const struct config *c, struct nvmlDevice_st *d);

// visible tells whether the container's environment shows the device or instance.
bool visible(const struct config *c, int gpu, int instance);

// visible_device returns the minor number of the index-th visible device, or -1;
// visible_instance the place of its index-th visible instance.
int visible_device(const struct config *c, unsigned index);
int visible_instance(const struct config *c, int gpu, unsigned index);

// mig_ids are the ids of a MIG instance and of its compute instance.
void mig_ids(const struct fault *f, int instance, unsigned *gi, unsigned *ci);

#define CALL(name, ...) EXPORT nvmlReturn_t name(__VA_ARGS__)
#define BEGIN(device) \
	struct config c; \
	nvmlReturn_t entered = enter(&c, __func__, device); \
	if (entered != NVML_SUCCESS) return entered;
#define NEED(condition) if (!(condition)) return NVML_ERROR_INVALID_ARGUMENT
#define OF(d) (&c.of[(d).handle->gpu])
#endif

// enter.c: how calls begin, fail, hang and take their time.
#include "fake.h"
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int opened;

// A count of how often a rule has made calls fail in this process.
static struct { char rule[160]; int times; } counts[MAX_RULES];

static bool fits(const struct rule *r, const char *function, struct nvmlDevice_st *d) {
	return (r->gpu < 0 || (d && d->gpu == r->gpu)) && !fnmatch(r->call, function, 0);
}

// spent counts one more failure of the rule, and tells whether it has had all.
static bool spent(const struct rule *r) {
	if (!r->times) return false;
	char text[160];
	snprintf(text, sizeof text, "%d %d %d %.120s", r->gpu, r->code, r->times, r->call);
	bool over = false;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_RULES; i++) {
		if (counts[i].rule[0] && strcmp(counts[i].rule, text)) continue;
		strcpy(counts[i].rule, text);
		over = counts[i].times == r->times;
		counts[i].times += !over;
		break;
	}
	pthread_mutex_unlock(&lock);
	return over;
}

// forget drops the counts of rules that the config no longer has, so that a test
// may say the same twice.
static void forget(const struct config *c) {
	pthread_mutex_lock(&lock);
	bool any = false;
	for (int i = 0; i < c->rule_count; i++) any = any || c->rules[i].times;
	if (!any) memset(counts, 0, sizeof counts);
	pthread_mutex_unlock(&lock);
}

static const struct rule *find(const struct config *c, enum act act, const char *function, struct nvmlDevice_st *d) {
	for (int i = 0; i < c->rule_count; i++)
		if (c->rules[i].act == act && fits(&c->rules[i], function, d)) return &c->rules[i];
	return NULL;
}

static void trace(const char *function) {
	const char *path = getenv("GPUSLICE_FAKE_GPU_TRACE");
	FILE *f = path ? fopen(path, "ae") : NULL;
	if (!f) return;
	fprintf(f, "%s\n", function);
	fclose(f);
}

static bool starts(const char *function) { return !strncmp(function, "nvmlInit", 8); }

static bool known(const struct config *c, struct nvmlDevice_st *d) {
	return d->gpu < c->devices && (d->instance < 0 || d->instance < c->of[d->gpu].instances);
}

// shut tells whether the call needs the right to monitor MIG and the caller has none.
static bool shut(const struct config *c, const char *function, struct nvmlDevice_st *d) {
	return d && d->instance < 0 && c->of[d->gpu].instances && !c->of[d->gpu].monitor &&
		(strstr(function, "Process") || strstr(function, "MemoryInfo") || strstr(function, "UtilizationRates"));
}

void delay(struct config *c, const char *function, struct nvmlDevice_st *d) {
	const struct rule *r = find(c, SLOW, function, d);
	if (r) usleep(r->ms * 1000);
	while (find(c, HANG, function, d)) {
		usleep(5000);
		config_read(c);
	}
}

nvmlReturn_t enter(struct config *c, const char *function, struct nvmlDevice_st *d) {
	trace(function);
	config_read(c);
	forget(c);
	const struct rule *r;
	delay(c, function, d);
	for (int i = 0; i < c->rule_count; i++) {
		r = &c->rules[i];
		if (r->act == FAIL && fits(r, function, d) && !spent(r)) return r->code;
	}
	if (!starts(function) && !__atomic_load_n(&opened, __ATOMIC_SEQ_CST)) return NVML_ERROR_UNINITIALIZED;
	if (d && !known(c, d)) return NVML_ERROR_INVALID_ARGUMENT;
	return shut(c, function, d) ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
}

// init opens the library where the container has a device.
static nvmlReturn_t init(const struct config *c) {
	if (visible_device(c, 0) < 0 && c->devices) return NVML_ERROR_DRIVER_NOT_LOADED;
	__atomic_add_fetch(&opened, 1, __ATOMIC_SEQ_CST);
	return NVML_SUCCESS;
}

CALL(nvmlInit, void) { BEGIN(NULL) return init(&c); }
CALL(nvmlInit_v2, void) { BEGIN(NULL) return init(&c); }
CALL(nvmlInitWithFlags, unsigned flags) { (void)flags; BEGIN(NULL) return init(&c); }
CALL(nvmlShutdown, void) {
	BEGIN(NULL)
	__atomic_sub_fetch(&opened, 1, __ATOMIC_SEQ_CST);
	return NVML_SUCCESS;
}

// A function of the header that is not imitated ends here.
int fake_stub(const char *function) {
	struct config c;
	nvmlReturn_t r = enter(&c, function, NULL);
	return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t r) {
	switch (r) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_TIMEOUT: return "Timeout";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	default: return "Unknown Error";
	}
}

// config.c: how the imitation is told what to be.
#include "fake.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *config_amount(const char *text, bytes *amount) {
	char *end;
	if (*text < '0' || *text > '9') return NULL;
	errno = 0;
	bytes n = strtoull(text, &end, 10), unit;
	if (!strncmp(end, "KiB", 3)) unit = 1ULL << 10, end += 3;
	else if (!strncmp(end, "MiB", 3)) unit = 1ULL << 20, end += 3;
	else if (!strncmp(end, "GiB", 3)) unit = 1ULL << 30, end += 3;
	else if (*end == 'B') unit = 1, end += 1;
	else return NULL;
	if (errno || __builtin_mul_overflow(n, unit, amount)) return NULL;
	return end;
}

static bool amount(const char *text, bytes *to) {
	const char *end = config_amount(text, to);
	return end && !*end;
}

static bool number(const char *text, int *to) {
	char *end;
	*to = strtol(text, &end, 10);
	return end != text && !*end;
}

static bool milliseconds(const char *text, int *to) {
	char unit[3] = "", rest;
	return sscanf(text, "%d%2[ms]%c", to, unit, &rest) == 2 && (!strcmp(unit, "ms") || (!strcmp(unit, "s") && (*to *= 1000, true)));
}

static bool yes(const char *text, bool *to) {
	*to = !strcmp(text, "yes");
	return *to || !strcmp(text, "no");
}

// one_of finds the text among words and gives its place.
static bool one_of(const char *text, const char *const *words, int count, void *to) {
	for (int i = 0; i < count; i++)
		if (!strcmp(text, words[i])) return *(int *)to = i, true;
	return false;
}
#define ONE_OF(text, to, ...) one_of(text, (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), to)

static bool profiles(char *text, struct fault *f) {
	f->instances = 0;
	for (char *rest, *p = strtok_r(text, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
		struct profile *to = &f->mig[f->instances];
		if (f->instances == MAX_INSTANCES || sscanf(p, "%dg.%dgb", &to->slices, &to->gigabytes) != 2) return false;
		f->instances++;
	}
	return true;
}

static bool entries(const char *text, struct fault *f) {
	struct listed *to = &f->listed[f->listed_count];
	const char *colon = strchr(text, ':');
	if (f->listed_count == MAX_PIDS || !colon || sscanf(text, "%u:", &to->pid) != 1 || !amount(colon + 1, &to->held)) return false;
	f->listed_count++;
	return true;
}

static bool pids(const char *text, struct fault *f) {
	f->offset = 0, f->pids = PIDS_OWN;
	if (*text == '+') return sscanf(text, "+%u", &f->offset) == 1;
	return ONE_OF(text, &f->pids, "own", "node");
}

// of_device reads what can be said of one device.
static bool of_device(struct fault *f, const char *key, char *value) {
	if (!strcmp(key, "memory")) return amount(value, &f->memory);
	if (!strcmp(key, "base")) return amount(value, &f->base);
	if (!strcmp(key, "others")) return amount(value, &f->others);
	if (!strcmp(key, "charged")) return amount(value, &f->charged);
	if (!strcmp(key, "context")) return amount(value, &f->context);
	if (!strcmp(key, "cuda-limit")) return amount(value, &f->cuda_limit);
	if (!strcmp(key, "cuda-limit-of")) return ONE_OF(value, &f->cuda_limit_of, "process", "client", "pod");
	if (!strcmp(key, "cuda-leaks")) return snprintf(f->cuda_leaks, sizeof f->cuda_leaks, "%s", value) < (int)sizeof f->cuda_leaks;
	if (!strcmp(key, "mig")) return profiles(value, f);
	if (!strcmp(key, "pids")) return pids(value, f);
	if (!strcmp(key, "figures")) return ONE_OF(value, &f->figures, "true", "all-ones", "zero");
	if (!strcmp(key, "duplicates")) return yes(value, &f->duplicates);
	if (!strcmp(key, "stale")) return yes(value, &f->stale);
	if (!strcmp(key, "limits")) return yes(value, &f->limits);
	if (!strcmp(key, "monitor")) return yes(value, &f->monitor);
	if (!strcmp(key, "listed")) return entries(value, f);
	if (!strcmp(key, "hidden")) return f->hidden_count < MAX_PIDS && number(value, (int *)&f->hidden[f->hidden_count++]);
	if (!strcmp(key, "mps-clients")) return ONE_OF(value, &f->clients, "both", "mps", "compute");
	if (!strcmp(key, "linger")) return milliseconds(value, &f->linger_ms);
	if (!strcmp(key, "usage")) return ONE_OF(value, &f->usage, "off", "own", "node", "none", "trace", "unnamed");
	if (!strcmp(key, "xid")) return f->xid_count < MAX_RULES && number(value, &f->xids[f->xid_count++]);
	return false;
}

// of_node reads what is said of the node.
static bool of_node(struct config *c, const char *key, const char *value) {
	if (!strcmp(key, "node")) return c->node = value, true;
	if (!strcmp(key, "name")) return c->name = value, true;
	if (!strcmp(key, "driver")) return c->driver = value, true;
	if (!strcmp(key, "devices")) return number(value, &c->devices) && c->devices >= 0 && c->devices <= MAX_DEVICES;
	if (!strcmp(key, "cuda")) return sscanf(value, "%d.%d", &c->cuda_major, &c->cuda_minor) == 2;
	if (!strcmp(key, "compute-capability")) return sscanf(value, "%d.%d", &c->cc_major, &c->cc_minor) == 2;
	if (!strcmp(key, "compute-mode")) return ONE_OF(value, &c->mode, "default", "exclusive-thread", "prohibited", "exclusive-process");
	return false;
}

static int code_of(const char *name) {
	static const struct { const char *name; int code; } codes[] = {
		{"UNINITIALIZED", 1}, {"INVALID_ARGUMENT", 2}, {"NOT_SUPPORTED", 3}, {"NO_PERMISSION", 4}, {"NOT_FOUND", 6},
		{"INSUFFICIENT_SIZE", 7}, {"DRIVER_NOT_LOADED", 9}, {"TIMEOUT", 10}, {"LIBRARY_NOT_FOUND", 12}, {"FUNCTION_NOT_FOUND", 13},
		{"GPU_IS_LOST", 15}, {"RESET_REQUIRED", 16}, {"OPERATING_SYSTEM", 17}, {"LIB_RM_VERSION_MISMATCH", 18}, {"IN_USE", 19},
		{"MEMORY", 20}, {"NO_DATA", 21}, {"ARGUMENT_VERSION_MISMATCH", 25}, {"NOT_READY", 27}, {"GPU_NOT_FOUND", 28}, {"UNKNOWN", 999},
	};
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (!strcasecmp(name, codes[i].name)) return codes[i].code;
	return 0;
}

static bool of_calls(struct config *c, int gpu, const char *key, char *value) {
	struct rule *r = &c->rules[c->rule_count];
	*r = (struct rule){.gpu = gpu, .call = value};
	if (c->rule_count == MAX_RULES || !ONE_OF(key, &r->act, "fail", "hang", "slow")) return false;
	char *second = r->act == HANG ? NULL : strchr(value, ':'), *third = NULL;
	if (second) *second++ = 0, third = strchr(second, ':');
	if (third) *third++ = 0;
	if (r->act == FAIL && (!second || !(r->code = code_of(second)) || (third && !number(third, &r->times)))) return false;
	if (r->act == SLOW && (!second || !milliseconds(second, &r->ms))) return false;
	c->rule_count++;
	return true;
}

// read_line reads KEY=VALUE or KEY@DEVICE=VALUE. only < 0 takes the lines of all
// devices, which are read first: a device's own win wherever they stand.
static bool read_line(struct config *c, const char *line, int only) {
	static __thread char copy[MAX_TEXT];
	snprintf(copy, sizeof copy, "%s", line);
	char *equals = strchr(copy, '='), *value = equals ? (char *)line + (equals - copy) + 1 : NULL, *at;
	int gpu = -1;
	if (!equals) return false;
	*equals = 0;
	if ((at = strchr(copy, '@')) && (*at = 0, !number(at + 1, &gpu) || gpu < 0 || gpu >= MAX_DEVICES)) return false;
	if ((gpu < 0) != (only < 0)) return true;
	if (!strcmp(copy, "fail") || !strcmp(copy, "hang") || !strcmp(copy, "slow")) return of_calls(c, gpu, copy, value);
	if (gpu >= 0) return of_device(&c->of[gpu], copy, equals + 1);
	if (of_node(c, copy, value)) return true;
	for (int i = 0; i < MAX_DEVICES; i++) {
		char again[1024];
		snprintf(again, sizeof again, "%s", equals + 1);
		if (!of_device(&c->of[i], copy, again)) return false;
	}
	return true;
}

static void load(char *text, size_t room) {
	const char *said = getenv("GPUSLICE_FAKE_GPU_CONFIG");
	*text = 0;
	if (said && strchr(said, '=')) {
		snprintf(text, room, "%s", said);
		return;
	}
	const char *path = said && *said ? said : "/etc/gpuslice-fake-gpu";
	char inside[4096];
	snprintf(inside, sizeof inside, "%s/config", path);
	int file = open(inside, O_RDONLY | O_CLOEXEC);
	if (file < 0) file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0) {
		if (said && *said) fprintf(stderr, "fake NVML: open %s: %s\n", said, strerror(errno));
		return;
	}
	size_t n = 0;
	for (ssize_t got; n < room - 1 && (got = read(file, text + n, room - 1 - n)) > 0;) n += got;
	close(file);
	text[n] = 0;
}

static void complain(const char *line) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char told[256];
	pthread_mutex_lock(&lock);
	if (strncmp(told, line, sizeof told - 1)) fprintf(stderr, "fake NVML: no meaning in \"%s\"\n", line);
	snprintf(told, sizeof told, "%s", line);
	pthread_mutex_unlock(&lock);
}

void config_read(struct config *c) {
	memset(c, 0, sizeof *c);
	c->node = "", c->name = "NVIDIA A100-SXM4-80GB", c->driver = "580.95.05";
	c->devices = 1, c->cuda_major = 13, c->cc_major = 8;
	for (int i = 0; i < MAX_DEVICES; i++) c->of[i].memory = 80ULL << 30, c->of[i].monitor = true;
	load(c->text, sizeof c->text);
	char *lines[256];
	int n = 0;
	for (char *rest, *line = strtok_r(c->text, ";\n", &rest); line && n < 256; line = strtok_r(NULL, ";\n", &rest)) {
		line += strspn(line, " \t");
		if (*line && *line != '#') lines[n++] = line;
	}
	for (int own = 0; own < 2; own++)
		for (int i = 0; i < n; i++)
			if (!read_line(c, lines[i], own - 1)) complain(lines[i]);
}

// processes.c: who holds what, read off the command lines of real processes.
#include "fake.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_THREAD 0x00200000

static const char *node_proc(void) {
	const char *path = getenv("GPUSLICE_FAKE_GPU");
	return path && *path ? path : "/run/gpuslice-fake-gpu/proc";
}

bool of_node_known(void) {
	char path[512];
	snprintf(path, sizeof path, "%s/1/stat", node_proc());
	return !access(path, F_OK);
}

static ssize_t slurp(const char *proc, const char *pid, const char *file, char *text, size_t room) {
	char path[512];
	snprintf(path, sizeof path, "%s/%s/%s", proc, pid, file);
	int f = open(path, O_RDONLY | O_CLOEXEC);
	if (f < 0) return -1;
	size_t n = 0;
	for (ssize_t got; n < room - 1 && (got = read(f, text + n, room - 1 - n)) > 0;) n += got;
	close(f);
	text[n] = 0;
	return n;
}

static long long now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

// How long a process without a command line is looked at, at most. By the clock: on a
// starved node a sleep takes many times as long as it was asked for.
enum { ZOMBIE_MS = 10, NEW_IMAGE_MS = 500 };

// between_images tells of a process without a command line whether it is about to
// have one: no thread of the kernel, and not dead. The first thread of several looks dead
// while another one runs execve, for a moment; one that looks so longer has exited.
static bool between_images(const char *proc, const char *pid, long long ms) {
	char stat[512], state;
	unsigned long flags;
	long threads;
	if (slurp(proc, pid, "stat", stat, sizeof stat) <= 0) return false;
	char *end = strrchr(stat, ')');
	if (!end || sscanf(end, ") %c %*d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state, &flags, &threads) != 3) return false;
	return !(flags & KERNEL_THREAD) && (!strchr("ZXx", state) || (threads > 1 && ms < ZOMBIE_MS));
}

static ssize_t command_line(const char *proc, const char *pid, char *text, size_t room) {
	ssize_t n = slurp(proc, pid, "cmdline", text, room);
	if (n) return n;
	for (long long began = now_ms(), ms = 0; n == 0 && ms < NEW_IMAGE_MS && between_images(proc, pid, ms); ms = now_ms() - began) {
		usleep(200);
		n = slurp(proc, pid, "cmdline", text, room);
	}
	return n;
}

// device_word reads "gpu0", "gpu0.2" or a UUID up to the "=".
static bool device_word(const struct config *c, const char *word, size_t n, int gpu, int *instance) {
	char have[96], want[96];
	if (n >= sizeof want) return false;
	snprintf(want, sizeof want, "%.*s", (int)n, word);
	for (*instance = -1; *instance < c->of[gpu].instances; ++*instance) {
		device_uuid(&(struct nvmlDevice_st){gpu, *instance}, have, sizeof have);
		if (!strcmp(want, have)) return true;
		snprintf(have, sizeof have, *instance < 0 ? "gpu%d" : "gpu%d.%d", gpu, *instance);
		if (!strcmp(want, have)) return true;
	}
	return false;
}

// read_word reads one word of a command line into e.
static bool read_word(const struct config *c, const char *word, int gpu, struct entry *e) {
	size_t node = strlen(c->node);
	if (node && (strncmp(word, c->node, node) || word[node++] != '/')) return false;
	word += node;
	if (strncmp(word, "gpu", 3) && strncmp(word, "GPU-", 4) && strncmp(word, "MIG-", 4)) return false;
	const char *equals = strchr(word, '=');
	if (!equals || !device_word(c, word, equals - word, gpu, &e->instance)) return false;
	const char *end = config_amount(equals + 1, &e->held);
	if (!end || !e->held) return false;
	e->kind = !strcmp(end, "/G") ? GRAPHICS : !strcmp(end, "/M+C") ? CLIENT : COMPUTE;
	return !*end || e->kind != COMPUTE || !strcmp(end, "/C");
}

static bool same(const struct entry *a, const struct entry *b) {
	return a->pid == b->pid && a->instance == b->instance && a->kind == b->kind;
}

// of_process adds what one process holds.
static int of_process(const struct config *c, const char *proc, const char *pid, int gpu, struct entry *found, int n) {
	static __thread char text[32768];
	ssize_t size = command_line(proc, pid, text, sizeof text);
	int first = n;
	for (char *word = text; size > 0 && word < text + size; word += strlen(word) + 1) {
		struct entry e = {.pid = atoi(pid)};
		if (!read_word(c, word, gpu, &e)) continue;
		int i = first;
		while (i < n && !same(&found[i], &e)) i++;
		if (i < n) found[i].held += e.held;
		else if (n < MAX_ENTRIES) found[n++] = e;
	}
	return n;
}

// What was seen on a device, and when it was first missed.
struct memory { struct entry *seen; long long *gone; int count; };

// linger remembers what is there and adds what has gone not long ago.
static int linger(struct memory *m, int for_ms, struct entry *found, int n) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	if (!m->seen) {
		m->seen = calloc(MAX_ENTRIES, sizeof *m->seen);
		m->gone = calloc(MAX_ENTRIES, sizeof *m->gone);
	}
	int alive = n, kept = alive < MAX_ENTRIES ? alive : MAX_ENTRIES;
	for (int i = 0; i < m->count; i++) {
		int j = 0;
		while (j < alive && !same(&found[j], &m->seen[i])) j++;
		if (j < alive || n == MAX_ENTRIES) continue;
		if (!m->gone[i]) m->gone[i] = now_ms();
		if (now_ms() - m->gone[i] >= for_ms) continue;
		found[n] = m->seen[i];
		found[n].gone = true;
		m->gone[n - alive] = m->gone[i];
		n++;
	}
	memmove(m->gone + alive, m->gone, (n - alive) * sizeof *m->gone);
	memset(m->gone, 0, kept * sizeof *m->gone);
	memcpy(m->seen, found, n * sizeof *found);
	m->count = n;
	pthread_mutex_unlock(&lock);
	return n;
}

int processes(const struct config *c, struct nvmlDevice_st *d, bool of_node, struct entry *found) {
	static struct memory memories[MAX_DEVICES][2];
	const char *path = of_node ? node_proc() : "/proc";
	int n = 0;
	DIR *proc = opendir(path);
	for (struct dirent *e; proc && (e = readdir(proc));)
		if (isdigit((unsigned char)e->d_name[0])) n = of_process(c, path, e->d_name, d->gpu, found, n);
	if (proc) closedir(proc);
	if (c->of[d->gpu].linger_ms) n = linger(&memories[d->gpu][of_node], c->of[d->gpu].linger_ms, found, n);
	if (d->instance < 0) return n;
	int kept = 0;
	for (int i = 0; i < n; i++)
		if (found[i].instance == d->instance) found[kept++] = found[i];
	return kept;
}

bytes held(const struct config *c, struct nvmlDevice_st *d) {
	static __thread struct entry found[MAX_ENTRIES];
	int n = processes(c, d, of_node_known(), found);
	bytes sum = 0;
	for (int i = 0; i < n; i++) sum += found[i].held;
	return sum;
}

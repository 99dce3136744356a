// switches.c: how the imitation is told what to do.
#include "fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_line(struct switches *s, const char *line) {
	struct { const char *key; int *value; } numbers[] = {
		{"devices %d", &s->devices}, {"cuda %d", &s->cuda}, {"mem_mib %d", &s->mem_mib}, {"mig %d", &s->mig},
		{"others_mib %d", &s->others_mib}, {"compute_mode %d", &s->compute_mode}, {"init %d", &s->init},
		{"memory %d", &s->memory}, {"list %d", &s->list}, {"lost %d", &s->lost}, {"hang %d", &s->hang},
		{"duplicates %d", &s->duplicates}, {"all_ones %d", &s->all_ones}, {"zero %d", &s->zero},
		{"host_pids %d", &s->host_pids}, {"graphics %d", &s->graphics}, {"mps %d", &s->mps},
		{"short_lists %d", &s->short_lists}, {"charges %d", &s->charges}, {"charge_mib %d", &s->charge_mib},
		{"utilization %d", &s->utilization},
	};
	int a, b, c;
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (sscanf(line, numbers[i].key, &a) == 1) *numbers[i].value = a;
	if (sscanf(line, "cc %d %d", &a, &b) == 2) s->cc_major = a, s->cc_minor = b;
	sscanf(line, "name %95[^\n;]", s->name);
	sscanf(line, "driver %79[^\n;]", s->driver);
	if (s->events < MAX_EVENTS && sscanf(line, "xid %d %d", &a, &b) == 2)
		s->event_device[s->events] = a, s->event_code[s->events++] = b;
	if (s->listed < MAX_LISTED && sscanf(line, "proc %d %d %d", &a, &b, &c) == 3)
		s->listed_device[s->listed] = a, s->listed_pid[s->listed] = b, s->listed_mib[s->listed++] = c;
}

void switches_read(struct switches *s) {
	memset(s, 0, sizeof *s);
	s->devices = 1, s->cuda = 13000, s->mem_mib = 81920, s->cc_major = 8;
	strcpy(s->name, "NVIDIA A100-SXM4-80GB");
	strcpy(s->driver, "580.95.05");
	char line[256];
	const char *path = getenv("GPUSLICE_FAKE_GPU");
	FILE *f = path ? fopen(path, "r") : NULL;
	while (f && fgets(line, sizeof line, f)) read_line(s, line);
	if (f) fclose(f);
	const char *at = getenv("GPUSLICE_FAKE_GPU_SWITCHES");
	while (at && *at) {
		size_t n = strcspn(at, ";");
		snprintf(line, sizeof line, "%.*s", (int)n, at);
		read_line(s, line + strspn(line, " "));
		at += n + (at[n] == ';');
	}
	if (s->devices > MAX_DEVICES) s->devices = MAX_DEVICES;
	if (s->mig > MAX_MIG) s->mig = MAX_MIG;
}

void switches_trace(const char *function) {
	const char *path = getenv("GPUSLICE_FAKE_GPU_TRACE");
	FILE *f = path ? fopen(path, "a") : NULL;
	if (!f) return;
	fprintf(f, "%s\n", function);
	fclose(f);
}

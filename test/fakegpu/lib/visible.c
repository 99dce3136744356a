// visible.c: which devices a container has, by the variable that runtimes obey.
#include "fake.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// names tells whether one word of the list means the device or instance.
static bool names(const char *word, int gpu, int instance) {
	char have[96];
	struct nvmlDevice_st d = {gpu, -1};
	if (!strcmp(word, "all")) return true;
	snprintf(have, sizeof have, "%d", gpu);
	if (!strcmp(word, have)) return true;
	device_uuid(&d, have, sizeof have);
	if (!strcmp(word, have)) return true;
	if (instance < 0) return false;
	d.instance = instance;
	device_uuid(&d, have, sizeof have);
	if (!strcmp(word, have)) return true;
	snprintf(have, sizeof have, "%d:%d", gpu, instance);
	return !strcmp(word, have);
}

static bool in_folder(const char *path, int gpu, int instance) {
	bool found = false;
	DIR *folder = opendir(path);
	for (struct dirent *e; folder && !found && (e = readdir(folder));) found = names(e->d_name, gpu, instance);
	if (folder) closedir(folder);
	return found;
}

static bool in_list(const char *list, int gpu, int instance) {
	if (*list == '/') return in_folder(list, gpu, instance);
	char copy[4096], *rest;
	snprintf(copy, sizeof copy, "%s", list);
	for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		if (names(word, gpu, instance)) return true;
	return false;
}

bool visible(const struct config *c, int gpu, int instance) {
	const char *list = getenv("GPUSLICE_FAKE_GPU_VISIBLE");
	if (!list) list = getenv("NVIDIA_VISIBLE_DEVICES");
	if (gpu >= c->devices || instance >= c->of[gpu].instances) return false;
	if (!list || in_list(list, gpu, instance)) return true;
	if (instance >= 0) return false;
	for (int i = 0; i < c->of[gpu].instances; i++)
		if (in_list(list, gpu, i)) return true;
	return false;
}

int visible_device(const struct config *c, unsigned index) {
	for (int gpu = 0; gpu < c->devices; gpu++)
		if (visible(c, gpu, -1) && !index--) return gpu;
	return -1;
}

int visible_instance(const struct config *c, int gpu, unsigned index) {
	for (int i = 0; i < c->of[gpu].instances; i++)
		if (visible(c, gpu, i) && !index--) return i;
	return -1;
}

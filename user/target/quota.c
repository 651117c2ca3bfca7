// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/quota.h"

#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
	struct quota quota;
	double cpus;
	bool used_up, found;
};

static bool read_file(const char *directory, const char *name, char *buf, size_t size)
{
	char path[2048];
	size_t length = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (file) {
		length = fread(buf, 1, size - 1, file);
		fclose(file);
	}
	while (length && buf[length - 1] == '\n')
		length--;
	buf[length] = '\0';
	return length > 0;
}

/* Reads the quota of one directory. Times are in us. */
static bool read_quota(const char *directory, bool unified, double *cpus, char *text, size_t size)
{
	char quota[64], period[64];
	double length;

	if (unified) {
		if (!read_file(directory, "cpu.max", quota, sizeof(quota)) || !strncmp(quota, "max", 3))
			return false;
		snprintf(text, size, "cpu.max %s", quota);
		length = strtod(quota + strcspn(quota, " "), NULL);
	} else {
		if (!read_file(directory, "cpu.cfs_quota_us", quota, sizeof(quota)) || *quota == '-' ||
		    !read_file(directory, "cpu.cfs_period_us", period, sizeof(period)))
			return false;
		snprintf(text, size, "cpu.cfs_quota_us %s of cpu.cfs_period_us %s", quota, period);
		length = strtod(period, NULL);
	}
	*cpus = length > 0 ? strtod(quota, NULL) / length : 0;
	return *cpus > 0;
}

static bool was_used_up(const char *directory)
{
	char stat[2048], *at;

	if (!read_file(directory, "cpu.stat", stat, sizeof(stat)))
		return false;
	at = strstr(stat, "nr_throttled ");
	return at && strtoull(at + strlen("nr_throttled "), NULL, 10) > 0;
}

/* Looks at a cgroup and its parents. */
static void look_upwards(const char *root, const char *group, bool unified, struct candidate *best)
{
	char directory[1536], *end;
	size_t root_length = strlen(root);

	snprintf(directory, sizeof(directory), "%s%s", root, strcmp(group, "/") ? group : "");
	while (strlen(directory) > root_length && (end = strrchr(directory, '/'))) {
		struct candidate other = {.found = true};

		if (read_quota(directory, unified, &other.cpus, other.quota.text, sizeof(other.quota.text))) {
			other.used_up = was_used_up(directory);
			snprintf(other.quota.cgroup, sizeof(other.quota.cgroup), "%s", directory + root_length);
			if (!best->found || other.used_up > best->used_up ||
			    (other.used_up == best->used_up && other.cpus < best->cpus))
				*best = other;
		}
		*end = '\0';
	}
}

void quota__read_roots(const char *mounts, struct quota_roots *roots)
{
	struct mntent entry;
	char buf[4096];
	FILE *file = setmntent(mounts, "re");

	*roots = (struct quota_roots){.unified = ""};
	while (file && getmntent_r(file, &entry, buf, sizeof(buf))) {
		if (!roots->unified[0] && !strcmp(entry.mnt_type, "cgroup2"))
			snprintf(roots->unified, sizeof(roots->unified), "%s", entry.mnt_dir);
		if (!roots->cpu[0] && !strcmp(entry.mnt_type, "cgroup") && hasmntopt(&entry, "cpu"))
			snprintf(roots->cpu, sizeof(roots->cpu), "%s", entry.mnt_dir);
		if (!roots->memory[0] && !strcmp(entry.mnt_type, "cgroup") && hasmntopt(&entry, "memory"))
			snprintf(roots->memory, sizeof(roots->memory), "%s", entry.mnt_dir);
		if (!roots->freezer[0] && !strcmp(entry.mnt_type, "cgroup") && hasmntopt(&entry, "freezer"))
			snprintf(roots->freezer, sizeof(roots->freezer), "%s", entry.mnt_dir);
	}
	if (file)
		endmntent(file);
}

/* The group of a line of membership about a controller, "3:cpu,cpuacct:/path" or "0::/path"; NULL: it is about others.
 */
static char *group_of(char *line, const char *controller, bool *unified)
{
	char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL, *rest, *name;

	if (!group)
		return NULL;
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	*unified = !strcmp(line, "0:");
	if (*unified)
		return group;
	for (name = strtok_r(controllers + 1, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		if (!strcmp(name, controller))
			return group;
	}
	return NULL;
}

bool quota__find(const struct quota_roots *roots, const char *membership, struct quota *quota)
{
	struct candidate best = {.found = false};
	FILE *file = fopen(membership, "re");
	char line[1024];

	while (file && fgets(line, sizeof(line), file)) {
		bool unified = false;
		char *group = group_of(line, "cpu", &unified);
		const char *root = unified ? roots->unified : roots->cpu;

		if (group && *group == '/' && *root)
			look_upwards(root, group, unified, &best);
	}
	if (file)
		fclose(file);
	*quota = best.quota;
	return best.found;
}

static void limit(const char *directory, const char *name, uint64_t *least)
{
	unsigned long long bytes;
	char text[64], *end;

	if (!read_file(directory, name, text, sizeof(text)))
		return;
	bytes = strtoull(text, &end, 10); /* not a number: "max" */
	if (end != text && bytes < *least)
		*least = bytes;
}

uint64_t quota__memory(const struct quota_roots *roots, const char *membership)
{
	FILE *file = fopen(membership, "re");
	uint64_t least = UINT64_MAX;
	char line[1024];

	while (file && fgets(line, sizeof(line), file)) {
		bool unified = false;
		char *group = group_of(line, "memory", &unified), directory[1536], *end;
		const char *root = unified ? roots->unified : roots->memory;

		if (!group || *group != '/' || !*root)
			continue;
		snprintf(directory, sizeof(directory), "%s%s", root, strcmp(group, "/") ? group : "");
		/* the root has a limit, too, where it is that of a container */
		for (;;) {
			limit(directory, unified ? "memory.max" : "memory.limit_in_bytes", &least);
			if (unified)
				limit(directory, "memory.high", &least);
			end = strrchr(directory, '/');
			if (strlen(directory) <= strlen(root) || !end)
				break;
			*end = '\0';
		}
	}
	if (file)
		fclose(file);
	return least;
}

bool quota__frozen(const struct quota_roots *roots, const char *membership)
{
	FILE *file = fopen(membership, "re");
	bool frozen = false;
	char line[1024];

	while (file && !frozen && fgets(line, sizeof(line), file)) {
		bool unified = false;
		char *group = group_of(line, "freezer", &unified), directory[1536], text[256];
		const char *root = unified ? roots->unified : roots->freezer;

		if (!group || *group != '/' || !*root)
			continue;
		snprintf(directory, sizeof(directory), "%s%s", root, strcmp(group, "/") ? group : "");
		/* both files have what holds for the cgroup, also where one around it is frozen */
		frozen = unified ? read_file(directory, "cgroup.events", text, sizeof(text)) && strstr(text, "frozen 1")
				 : read_file(directory, "freezer.state", text, sizeof(text)) && !strcmp(text, "FROZEN");
	}
	if (file)
		fclose(file);
	return frozen;
}

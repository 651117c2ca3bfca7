// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/pmu/pmu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "/sys/bus/event_source/devices"

bool pmu__read_line(const char *root, const char *path, char *line, size_t size)
{
	char full[PATH_MAX];
	FILE *file;
	bool some;

	snprintf(full, sizeof(full), "%s%s", root, path);
	file = fopen(full, "re");
	some = file && fgets(line, (int)size, file);
	if (file)
		fclose(file);
	if (some)
		line[strcspn(line, "\n")] = '\0';
	return some;
}

bool pmu__parse_cpu_list(const char *text, struct cpu_list *list)
{
	memset(list, 0, sizeof(*list));
	while (isdigit((unsigned char)*text)) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (last < first || last >= KERNEL_CPUS)
			return false;
		for (; first <= last; first++) {
			list->count += !pmu__has_cpu(list, (unsigned)first);
			list->bits[first / 64] |= 1ULL << (first % 64);
		}
		if (*end != ',')
			return !*end && list->count;
		text = end + 1;
	}
	return false;
}

bool pmu__read_cpu_list(const char *path, struct cpu_list *list)
{
	char text[16384];

	return pmu__read_line("", path, text, sizeof(text)) && pmu__parse_cpu_list(text, list);
}

static bool read_list(const char *root, const char *path, struct cpu_list *list)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return pmu__read_cpu_list(full, list);
}

/* x86 without hybrid cores has "cpu"; other PMUs of a CPU list their CPUs. */
static bool look(const char *root, const char *name, struct pmu *pmu)
{
	char path[PATH_MAX], line[64];
	bool listed;

	memset(pmu, 0, sizeof(*pmu));
	snprintf(pmu->name, sizeof(pmu->name), "%s", name);
	snprintf(path, sizeof(path), DEVICES "/%s/cpus", name);
	listed = read_list(root, path, &pmu->cpus);
	if (!listed && strcmp(name, "cpu"))
		return false;
	if (!listed && !read_list(root, "/sys/devices/system/cpu/online", &pmu->cpus))
		return false;
	snprintf(path, sizeof(path), DEVICES "/%s/type", name);
	if (!pmu__read_line(root, path, line, sizeof(line)))
		return false;
	pmu->type = (uint32_t)strtoul(line, NULL, 10);
	snprintf(path, sizeof(path), DEVICES "/%s/caps/slots", name);
	if (pmu__read_line(root, path, line, sizeof(line)))
		pmu->slots = (unsigned)strtoul(line, NULL, 16);
	return true;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct pmu *)a)->name, ((const struct pmu *)b)->name);
}

size_t pmu__find(const char *root, struct pmu *pmus, size_t max)
{
	char path[PATH_MAX];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s" DEVICES, root);
	dir = opendir(path);
	while (dir && count < max && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && look(root, entry->d_name, &pmus[count]))
			count++;
	if (dir)
		closedir(dir);
	if (count)
		qsort(pmus, count, sizeof(*pmus), compare_names);
	for (size_t i = 0; i < count; i++)
		pmus[i].hybrid = count > 1;
	return count;
}

/* Puts value into the bits that a format line names: "config:0-7,32-35". */
static bool place(const char *format, uint64_t value, struct pmu_event *event)
{
	uint64_t *word;
	const char *at = strchr(format, ':');

	if (!strncmp(format, "config:", 7))
		word = &event->config;
	else if (!strncmp(format, "config1:", 8))
		word = &event->config1;
	else if (!strncmp(format, "config2:", 8))
		word = &event->config2;
	else
		return false;
	while (at && *at) {
		char *end;
		unsigned long first = strtoul(at + 1, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (end == at + 1 || last < first || last > 63)
			return false;
		for (; first <= last; first++, value >>= 1)
			*word |= (value & 1) << first;
		at = *end == ',' ? end : NULL;
	}
	return value == 0; /* remaining bits do not fit */
}

static bool safe_name(const char *name)
{
	return *name && name[0] != '.' && !strchr(name, '/');
}

static int encode_terms(const char *root, const char *pmu, char *terms, bool named, struct pmu_event *event, char *err,
			size_t err_size)
{
	char path[PATH_MAX], line[512], *rest, *term;

	for (term = strtok_r(terms, ",", &rest); term; term = strtok_r(NULL, ",", &rest)) {
		char *equals = strchr(term, '='), *end;
		uint64_t value = 1;

		if (equals) {
			*equals = '\0';
			errno = 0;
			value = strtoull(equals + 1, &end, 0);
			if (end == equals + 1 || *end || errno) {
				snprintf(err, err_size, "invalid number '%s'", equals + 1);
				return -EINVAL;
			}
		}
		if (!safe_name(term)) {
			snprintf(err, err_size, "invalid event term '%s'", term);
			return -EINVAL;
		}
		if (equals && !strcmp(term, "config")) {
			event->config |= value;
			continue;
		}
		snprintf(path, sizeof(path), DEVICES "/%s/format/%s", pmu, term);
		if (pmu__read_line(root, path, line, sizeof(line))) {
			if (place(line, value, event))
				continue;
			snprintf(err, err_size, "%s=0x%llx does not fit %s's format %s", term,
				 (unsigned long long)value, pmu, line);
			return -EINVAL;
		}
		snprintf(path, sizeof(path), DEVICES "/%s/events/%s", pmu, term);
		if (!equals && !named && pmu__read_line(root, path, line, sizeof(line))) {
			int status = encode_terms(root, pmu, line, true, event, err, err_size);

			if (status)
				return status;
			continue;
		}
		snprintf(err, err_size, "%s has neither a format nor an event '%s'", pmu, term);
		return -ENOENT;
	}
	return 0;
}

int pmu__encode(const char *root, const char *spec, struct pmu_event *event, char *err, size_t err_size)
{
	const char *slash = strchr(spec, '/'), *end = strrchr(spec, '/');
	char pmu[64], terms[512], path[PATH_MAX], line[64];

	memset(event, 0, sizeof(*event));
	if (!slash || end == slash || end[1] || slash == spec || slash - spec >= (long)sizeof(pmu) ||
	    end - slash > (long)sizeof(terms)) {
		snprintf(err, err_size, "invalid event '%s'; expected such as cpu/event=0xc0,umask=0/", spec);
		return -EINVAL;
	}
	snprintf(pmu, sizeof(pmu), "%.*s", (int)(slash - spec), spec);
	snprintf(terms, sizeof(terms), "%.*s", (int)(end - slash - 1), slash + 1);
	snprintf(path, sizeof(path), DEVICES "/%s/type", pmu);
	if (!safe_name(pmu) || !pmu__read_line(root, path, line, sizeof(line))) {
		snprintf(err, err_size, "there is no PMU '%s' here", pmu);
		return -ENODEV;
	}
	event->type = (uint32_t)strtoul(line, NULL, 10);
	return encode_terms(root, pmu, terms, false, event, err, err_size);
}

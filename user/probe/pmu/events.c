// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/pmu/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "probe/pmu/events_private.h"

const struct event_cpu *const event_cpus[] = {
    &event_cpu_skx,  &event_cpu_clx,	  &event_cpu_icx,  &event_cpu_spr,  &event_cpu_emr, &event_cpu_gnr,
    &event_cpu_zen2, &event_cpu_zen3,	  &event_cpu_zen4, &event_cpu_zen5, &event_cpu_n1,  &event_cpu_v1,
    &event_cpu_n2,   &event_cpu_n2_early, &event_cpu_v2,   &event_cpu_n3,   &event_cpu_v3,  &event_cpu_a64fx,
};

const size_t event_cpu_count = sizeof(event_cpus) / sizeof(event_cpus[0]);

/* Models as in the kernel's mapfile: the first row that fits wins. */
static const struct {
	const char *vendor;
	unsigned family, model_from, model_to, stepping_from, stepping_to;
	const struct event_cpu *cpu;
} x86[] = {
    {"GenuineIntel", 6, 0x55, 0x55, 0, 4, &event_cpu_skx},
    {"GenuineIntel", 6, 0x55, 0x55, 5, 15, &event_cpu_clx},
    {"GenuineIntel", 6, 0x6a, 0x6a, 0, 15, &event_cpu_icx},
    {"GenuineIntel", 6, 0x6c, 0x6c, 0, 15, &event_cpu_icx},
    {"GenuineIntel", 6, 0x8f, 0x8f, 0, 15, &event_cpu_spr},
    {"GenuineIntel", 6, 0xcf, 0xcf, 0, 15, &event_cpu_emr},
    {"GenuineIntel", 6, 0xad, 0xad, 0, 15, &event_cpu_gnr},
    {"AuthenticAMD", 0x17, 0x30, 0xff, 0, 15, &event_cpu_zen2},
    {"AuthenticAMD", 0x19, 0x00, 0x0f, 0, 15, &event_cpu_zen3},
    {"AuthenticAMD", 0x19, 0x20, 0x2f, 0, 15, &event_cpu_zen3},
    {"AuthenticAMD", 0x19, 0x40, 0x5f, 0, 15, &event_cpu_zen3},
    {"AuthenticAMD", 0x19, 0x10, 0xff, 0, 15, &event_cpu_zen4},
    {"AuthenticAMD", 0x1a, 0x00, 0xff, 0, 15, &event_cpu_zen5},
};

/* Revisions as variant << 4 | revision: r0p2 is 0x02. */
static const struct {
	uint32_t implementer, part, revision_from, revision_to;
	const struct event_cpu *cpu;
} arm[] = {
    {0x41, 0xd0c, 0, 0xff, &event_cpu_n1},    {0x41, 0xd40, 0, 0xff, &event_cpu_v1},
    {0x41, 0xd49, 0, 2, &event_cpu_n2_early}, {0x41, 0xd49, 3, 0xff, &event_cpu_n2},
    {0x41, 0xd4f, 0, 0xff, &event_cpu_v2},    {0x41, 0xd8e, 0, 0xff, &event_cpu_n3},
    {0x41, 0xd84, 0, 0xff, &event_cpu_v3},    {0x46, 0x001, 0, 0xff, &event_cpu_a64fx},
};

const struct event_cpu *events__match(const struct cpu_id *id)
{
	uint32_t midr = (uint32_t)id->midr, revision = (midr >> 20 & 0xf) << 4 | (midr & 0xf);

	for (size_t i = 0; midr && i < sizeof(arm) / sizeof(arm[0]); i++) {
		if (arm[i].implementer == midr >> 24 && arm[i].part == (midr >> 4 & 0xfff) &&
		    revision >= arm[i].revision_from && revision <= arm[i].revision_to)
			return arm[i].cpu;
	}
	for (size_t i = 0; i < sizeof(x86) / sizeof(x86[0]); i++) {
		if (!strcmp(x86[i].vendor, id->vendor) && x86[i].family == id->family &&
		    id->model >= x86[i].model_from && id->model <= x86[i].model_to &&
		    id->stepping >= x86[i].stepping_from && id->stepping <= x86[i].stepping_to)
			return x86[i].cpu;
	}
	return NULL;
}

/* The value of a line "key : value" where it is that key's, else NULL. */
static const char *value_of(const char *line, const char *key)
{
	size_t length = strlen(key);
	const char *colon;

	if (strncmp(line, key, length) || !strchr(" \t:", line[length]))
		return NULL;
	colon = strchr(line, ':');
	return colon && strspn(line + length, " \t") == (size_t)(colon - line) - length ? colon + 1 + (colon[1] == ' ')
											: NULL;
}

void events__read_cpu(const char *cpuinfo, struct cpu_id *id)
{
	FILE *file = fopen(cpuinfo, "re");
	uint64_t implementer = 0, variant = 0, part = 0, revision = 0;
	char line[4096];

	memset(id, 0, sizeof(*id));
	while (file && fgets(line, sizeof(line), file) && line[0] != '\n') {
		const char *value;

		line[strcspn(line, "\n")] = '\0';
		if ((value = value_of(line, "vendor_id")))
			snprintf(id->vendor, sizeof(id->vendor), "%s", value);
		else if ((value = value_of(line, "cpu family")))
			id->family = (unsigned)strtoul(value, NULL, 0);
		else if ((value = value_of(line, "model")))
			id->model = (unsigned)strtoul(value, NULL, 0);
		else if ((value = value_of(line, "stepping")))
			id->stepping = (unsigned)strtoul(value, NULL, 0);
		else if ((value = value_of(line, "CPU implementer")))
			implementer = strtoul(value, NULL, 0);
		else if ((value = value_of(line, "CPU variant")))
			variant = strtoul(value, NULL, 0);
		else if ((value = value_of(line, "CPU part")))
			part = strtoul(value, NULL, 0);
		else if ((value = value_of(line, "CPU revision")))
			revision = strtoul(value, NULL, 0);
	}
	if (file)
		fclose(file);
	if (implementer)
		id->midr = implementer << 24 | variant << 20 | 0xf << 16 | part << 4 | revision;
}

void events__format_cpu(const struct cpu_id *id, char *text, size_t size)
{
	if (id->midr)
		snprintf(text, size, "MIDR 0x%llx", (unsigned long long)id->midr);
	else
		snprintf(text, size, "%s %u-%02x-%x", id->vendor[0] ? id->vendor : "unknown vendor", id->family,
			 id->model, id->stepping);
}

size_t events__group_size(const struct event_group *group)
{
	size_t count = 0;

	while (count < EVENTS_IN_GROUP && group->events[count].name)
		count++;
	return count;
}

const struct event *events__find(const struct event_cpu *cpu, const char *name)
{
	if (!strcasecmp(name, cpu->instructions.name))
		return &cpu->instructions;
	for (size_t i = 0; cpu->named_as && cpu->named_as[i]; i++)
		if (!strcasecmp(name, cpu->named_as[i]) || !strcasecmp(name, cpu->named[i].name))
			return &cpu->named[i];
	for (const struct event_group *const *group = cpu->groups; *group; group++)
		for (size_t i = 0; i < events__group_size(*group); i++)
			if (!strcasecmp(name, (*group)->events[i].name) && !(*group)->events[i].cmask)
				return &(*group)->events[i];
	return NULL;
}

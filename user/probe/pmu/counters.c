// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/pmu/counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "config/rules.h"
#include "probe/pmu/counters_private.h"
#include "vapro.skel.h"

/*
 * Reading a counter may take this long unless --counters hardware insists on counters: four are read at every
 * probe, and beyond this they alone use the whole budget of a program with 1,200 calls/s. An expensive counter also
 * takes longer than all the rest of a reading: an emulated CPU is slow in everything.
 */
#define EXPENSIVE_NS 1000

#define ONLINE "/sys/devices/system/cpu/online"

static struct counter_line *add_line(struct counters *counters, const char *name, bool available, const char *reason)
{
	struct counter_line *line = &counters->lines[counters->line_count];

	for (size_t i = 0; i < counters->line_count; i++)
		if (!strcmp(counters->lines[i].name, name))
			line = &counters->lines[i];
	if (line == &counters->lines[COUNTER_LINES])
		return NULL;
	counters->line_count += line == &counters->lines[counters->line_count];
	snprintf(line->name, sizeof(line->name), "%s", name);
	line->provider = available ? counters->provider : "none";
	line->available = available;
	snprintf(line->reason, sizeof(line->reason), "%s", reason);
	return line;
}

/* Opens the first `count` events, dropping optional ones from the back until they fit. */
static int open_shrinking(struct counters *counters, struct counted *events, size_t *count, char *err, size_t err_size)
{
	int status = event_set__open(events, *count, &counters->cpus, counters->pmus, counters->pmu_count,
				     &counters->set, err, err_size);

	for (size_t i = *count; status && i-- > counters->fixed;) {
		if (!events[i].row || !(events[i].row->flags & EVENT_OPTIONAL))
			continue;
		add_line(counters, events[i].name, false, err);
		memmove(&events[i], &events[i + 1], (*count - i - 1) * sizeof(*events));
		(*count)--;
		status = event_set__open(events, *count, &counters->cpus, counters->pmus, counters->pmu_count,
					 &counters->set, err, err_size);
	}
	return status;
}

/* Collects a group's events that work by themselves; -errno where a required one does not. */
static int gather(struct counters *counters, const struct event_group *group, struct counted *events, size_t *count,
		  char *err, size_t err_size)
{
	for (size_t i = 0; i < events__group_size(group); i++) {
		struct counted counted;
		int status = counters__choose_row(counters, &group->events[i], &counted, err, err_size);

		if (!status)
			status = counters__try(&counted, err, err_size);
		if (!status && *count == KERNEL_EVENTS) {
			snprintf(err, err_size, "no more than %d events are read at once", KERNEL_EVENTS);
			status = -E2BIG;
		}
		if (!status)
			events[(*count)++] = counted;
		else if (group->events[i].flags & EVENT_OPTIONAL)
			add_line(counters, counted.name, false, err);
		else
			return status;
	}
	return 0;
}

/* Opens the events that are always counted, and the group. */
static int open_with(struct counters *counters, const struct event_group *group, char *err, size_t err_size)
{
	struct counted events[KERNEL_EVENTS];
	size_t count = counters->fixed;
	int status;

	memcpy(events, counters->events, count * sizeof(*events));
	status = group ? gather(counters, group, events, &count, err, err_size) : 0;
	if (!status)
		status = open_shrinking(counters, events, &count, err, err_size);
	if (status)
		return status;
	memcpy(counters->events, events, count * sizeof(*events));
	counters->count = count;
	counters->group = group;
	for (size_t i = 0; i < count; i++)
		add_line(counters, events[i].name, true,
			 i >= counters->fixed && group->approx ? group->approx
			 : i				       ? ""
							       : counters->note);
	return 0;
}

/* Opens with the group if it fits, else without; the group's events get the reason. */
static int open_all(struct counters *counters, const struct event_group *group, char *err, size_t err_size)
{
	char why[256];
	int status = group ? open_with(counters, group, err, err_size) : -ENOENT;

	if (!status)
		return 0;
	for (size_t i = 0; group && i < events__group_size(group); i++)
		add_line(counters, group->events[i].name, false, err);
	/* events that the user named must not cost the instructions */
	while (open_with(counters, NULL, why, sizeof(why))) {
		if (counters->fixed == 1) {
			snprintf(counters->reason, sizeof(counters->reason), "%s", why);
			add_line(counters, "instructions", false, why);
			return -ENOENT;
		}
		counters->fixed--;
		add_line(counters, counters->events[counters->fixed].name, false, why);
	}
	return group ? status : 0;
}

static void none(struct counters *counters, const char *reason)
{
	snprintf(counters->reason, sizeof(counters->reason), "%s", reason);
	add_line(counters, "instructions", false, reason);
}

/* Adds events that the user named beside instructions, for the workload or for bands. */
static void name_events(struct counters *counters, const struct vapro_config *config)
{
	struct rules rules;
	char err[256];

	if (rules__parse(&rules, config->workload, config->bands, err, sizeof(err))) {
		add_line(counters, "bands", false, err);
		return;
	}
	for (unsigned i = 0; i < rules.event_count; i++) {
		const char *name = rules.events[i].name;
		struct counted counted;

		if (counters->fixed == KERNEL_MAGNITUDES)
			snprintf(err, sizeof(err), "a workload has no more than %d events beside instructions",
				 KERNEL_MAGNITUDES - 1);
		else if (!counters__choose_named(counters, name, &counted, err, sizeof(err)) &&
			 !counters__try(&counted, err, sizeof(err))) {
			counters->events[counters->fixed++] = counted;
			continue;
		}
		add_line(counters, name, false, err);
	}
}

static const struct event_group *first_group(const struct counters *counters)
{
	return !counters->table				      ? NULL
	       : counters->smt && counters->table->stage1_smt ? counters->table->stage1_smt
							      : counters->table->groups[0];
}

/*
 * Where reading counters is expensive, programs are better watched whole without them than in part with them. The
 * first counter is tested: where it is expensive, opening takes a third of a second as well.
 */
static bool are_expensive(const struct counters *counters, char *why, size_t size)
{
	double bare = 0, ns;

	if (counters->config->counters != VAPRO_COUNTERS_AUTO)
		return false;
	ns = event_set__read_ns(&counters->events[0], &bare);
	if (ns <= EXPENSIVE_NS || ns <= bare)
		return false;
	snprintf(why, size,
		 "reading a counter takes %.1f us here, at each probe, as where a hypervisor catches it; "
		 "--counters hardware uses them all the same",
		 ns / 1e3);
	return true;
}

struct counters *counters__new(const struct vapro_config *config)
{
	struct counters *counters = calloc(1, sizeof(*counters));
	char err[256];

	if (!counters)
		return NULL;
	counters->config = config;
	counters->provider = "none";
	if (config->counters == VAPRO_COUNTERS_NONE) {
		none(counters, "not wanted: --counters none");
		return counters;
	}
	if (counters__find_table(counters, err, sizeof(err)) ||
	    counters__choose_instructions(counters, &counters->events[0], err, sizeof(err)) ||
	    counters__try(&counters->events[0], err, sizeof(err)) || are_expensive(counters, err, sizeof(err))) {
		none(counters, err);
		return counters;
	}
	counters->fixed = 1;
	counters->usual = counters__new_usual();
	name_events(counters, config);
	open_all(counters, first_group(counters), err, sizeof(err));
	return counters;
}

void counters__free(struct counters *counters)
{
	if (!counters)
		return;
	event_set__close(counters->set);
	free(counters->usual);
	free(counters);
}

const char *counters__named(const struct counters *counters, size_t number)
{
	return number + 1 < counters->fixed ? counters->events[number + 1].name : NULL;
}

void counters__give_up(struct counters *counters, const char *reason)
{
	event_set__close(counters->set);
	counters->set = NULL;
	counters->group = NULL;
	for (size_t i = 0; i < counters->line_count; i++) {
		struct counter_line *line = &counters->lines[i];

		if (!line->available)
			continue;
		line->available = false;
		line->provider = "none";
		snprintf(line->reason, sizeof(line->reason), "%s", reason);
	}
	none(counters, reason);
}

bool counters__count(const struct counters *counters)
{
	return counters->set != NULL;
}

const char *counters__reason(const struct counters *counters)
{
	return counters->reason;
}

const struct counter_line *counters__lines(const struct counters *counters, size_t *count)
{
	*count = counters->line_count;
	return counters->lines;
}

const struct event_group *const *counters__groups(const struct counters *counters)
{
	return counters->table ? counters->table->groups : NULL;
}

const struct event_group *counters__find(const struct counters *counters, int stage, const char *parent)
{
	if (!parent)
		return first_group(counters);
	for (const struct event_group *const *group = counters__groups(counters); group && *group; group++)
		if ((*group)->stage == stage && (*group)->parent && !strcmp((*group)->parent, parent))
			return *group;
	return NULL;
}

void counters__names(const struct counters *counters, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < counters->count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "," : "", counters->events[i].name);
}

int counters__prepare(const struct counters *counters, struct vapro_bpf *bpf)
{
	if (!counters || !counters->set)
		return 0;
	bpf->rodata->counting = 1;
	return bpf_map__set_max_entries(bpf->maps.perf_events, (uint32_t)libbpf_num_possible_cpus() * KERNEL_EVENTS);
}

static void disarm(struct vapro_bpf *bpf)
{
	bpf->bss->event_epoch++;
	__atomic_store_n(&bpf->bss->event_count, 0, __ATOMIC_SEQ_CST);
}

int counters__arm(struct counters *counters, struct vapro_bpf *bpf)
{
	int map = bpf_map__fd(bpf->maps.perf_events), status = 0;
	uint32_t entries = bpf_map__max_entries(bpf->maps.perf_events);

	if (!counters->set)
		return 0;
	disarm(bpf);
	counters->layout = counters->layout == COUNTER_LAYOUTS - 1 ? 1 : counters->layout + 1;
	counters__lay_out(counters, &counters->layouts[counters->layout]);
	for (uint32_t key = 0; key < entries; key++) {
		int fd = event_set__fd(counters->set, key / KERNEL_EVENTS, key % KERNEL_EVENTS);

		if (fd < 0)
			bpf_map_delete_elem(map, &key);
		else if (bpf_map_update_elem(map, &key, &fd, BPF_ANY))
			status = -errno;
	}
	bpf->bss->magnitude_count = (uint32_t)counters->fixed;
	bpf->bss->event_group = counters->layout;
	bpf->bss->event_epoch++;
	__atomic_store_n(&bpf->bss->event_count, (uint32_t)counters->count, __ATOMIC_SEQ_CST);
	return status;
}

int counters__switch(struct counters *counters, struct vapro_bpf *bpf, const struct event_group *group, char *err,
		     size_t err_size)
{
	int status, armed;

	if (!bpf->rodata->counting)
		return -ENODEV;
	/* two pinned groups would not fit beside each other */
	disarm(bpf);
	event_set__close(counters->set);
	counters->set = NULL;
	status = open_all(counters, group, err, err_size);
	if (!counters->set)
		return status;
	armed = counters__arm(counters, bpf);
	return status ? status : armed;
}

int counters__refresh(struct counters *counters, struct vapro_bpf *bpf, char *text, size_t size)
{
	struct cpu_list online;
	char err[256];
	int status;

	if (!bpf->rodata->counting || !pmu__read_cpu_list(ONLINE, &online) ||
	    !memcmp(&online, &counters->online, sizeof(online)))
		return 0;
	counters->online = online;
	status = counters__find_table(counters, err, sizeof(err));
	if (!status)
		status = counters__switch(counters, bpf, counters->group, err, sizeof(err));
	if (status)
		snprintf(text, size, "CPUs went or came, and their counters could not be opened again: %s", err);
	else
		snprintf(text, size, "CPUs went or came: counters were opened again on the %u that are online",
			 counters->cpus.count);
	return status ? status : 1;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro check --counters`: opens every group for a moment and counts a known loop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/pmu/counters_private.h"

#define ROUNDS 20000000ULL
#define REPEATS 20
#define REPEATED_ROUNDS 100000ULL

/* Collects a group's events; optional ones that do not work are left out. 0 or -errno. */
static int gather(const struct counters *counters, const struct event_group *group, struct counted *events,
		  size_t *count, char *err, size_t err_size)
{
	*count = 1;
	for (size_t i = 0; i < events__group_size(group); i++) {
		struct counted counted;
		int status = counters__choose_row(counters, &group->events[i], &counted, err, err_size);

		if (!status)
			status = counters__try(&counted, err, err_size);
		if (!status)
			events[(*count)++] = counted;
		else if (!(group->events[i].flags & EVENT_OPTIONAL))
			return status;
	}
	return 0;
}

static void report_shares(struct counters *counters, const struct event_group *group, size_t count, FILE *out)
{
	struct counter_layout layout;
	uint64_t counts[KERNEL_EVENTS] = {0};
	double share[TOPDOWN_PARTS];
	char err[256];

	counters->group = group;
	counters->fixed = 1;
	counters->count = count;
	counters__lay_out(counters, &layout);
	if (event_set__measure(counters->events, count, ROUNDS, counts, err, sizeof(err)) ||
	    !counters__shares(counters, &layout, counts, 0, share, NULL)) {
		fprintf(out, "      no shares of a known loop\n");
		return;
	}
	fprintf(out, "      a known loop:");
	for (int i = 0; i < TOPDOWN_PARTS && group->parts[i]; i++)
		fprintf(out, " %s %.1f %%", group->parts[i], 100 * share[i]);
	fprintf(out, "%s%s\n", group->approx ? "; approximate: " : "", group->approx ? group->approx : "");
}

static void report_group(struct counters *counters, const struct event_group *group, FILE *out)
{
	struct event_set *set = NULL;
	size_t count = 1;
	char err[256];
	int status = gather(counters, group, counters->events, &count, err, sizeof(err));

	/* on all CPUs, as when in use; the effect of missing optional events is not checked here */
	while (!status) {
		status = event_set__open(counters->events, count, &counters->cpus, counters->pmus, counters->pmu_count,
					 &set, err, sizeof(err));
		if (!status || count < 2 || !(counters->events[count - 1].row->flags & EVENT_OPTIONAL))
			break;
		count--;
		status = 0;
	}
	event_set__close(set);
	if (status) {
		fprintf(out, "  stage %d  %-16s no   %s\n", group->stage, group->name, err);
		return;
	}
	fprintf(out, "  stage %d  %-16s fits %zu events with instructions, of %zu; on %u CPUs\n", group->stage,
		group->name, count, events__group_size(group) + 1, counters->cpus.count);
	report_shares(counters, group, count, out);
}

/* Reports whether equal work counts the same: clustering rests on that. */
static void report_instructions(const struct counters *counters, FILE *out)
{
	uint64_t least = UINT64_MAX, most = 0, count;
	char err[256];

	for (int i = 0; i < REPEATS; i++) {
		if (event_set__measure(counters->events, 1, REPEATED_ROUNDS, &count, err, sizeof(err))) {
			fprintf(out, "  instructions cannot be repeated: %s\n", err);
			return;
		}
		least = count < least ? count : least;
		most = count > most ? count : most;
	}
	fprintf(out, "  a loop of %llu instructions, %d times: counted %llu to %llu\n",
		(unsigned long long)(REPEATED_ROUNDS * LOOP_INSTRUCTIONS), REPEATS, (unsigned long long)least,
		(unsigned long long)most);
	if ((double)(most - least) > 0.001 * (double)most)
		fprintf(out, "  more than 0.1 %% apart: equal work may look different here\n");
}

/* Looks for what the configuration says; true where instructions open. */
static bool look(struct counters *counters, FILE *out)
{
	char err[256], id[64];

	if (counters__find_table(counters, err, sizeof(err))) {
		fprintf(out, "  %s\n", err);
		return false;
	}
	events__format_cpu(&counters->id, id, sizeof(id));
	if (counters->config->counters != VAPRO_COUNTERS_TEST)
		fprintf(out, "  CPU: %s (%s)\n", counters->table ? counters->table->title : "in no table", id);
	for (size_t i = 0; i < counters->pmu_count; i++)
		fprintf(out, "  PMU %s: %u CPUs\n", counters->pmus[i].name, counters->pmus[i].cpus.count);
	if (counters->note[0])
		fprintf(out, "  %s\n", counters->note);
	if (counters__choose_instructions(counters, &counters->events[0], err, sizeof(err)) ||
	    counters__try(&counters->events[0], err, sizeof(err))) {
		fprintf(out, "  instructions: no   %s\n", err);
		return false;
	}
	return true;
}

static int report(const struct vapro_config *config, FILE *out)
{
	struct counters *counters = calloc(1, sizeof(*counters));
	struct event_set *set = NULL;
	bool counts = false;
	char err[256];

	if (!counters)
		return -ENOMEM;
	counters->config = config;
	if (!look(counters, out))
		goto cleanup;
	if (event_set__open(counters->events, 1, &counters->cpus, counters->pmus, counters->pmu_count, &set, err,
			    sizeof(err))) {
		fprintf(out, "  instructions: no   %s\n", err);
		goto cleanup;
	}
	counts = true;
	fprintf(out, "  instructions: yes, on %u CPUs\n", counters->cpus.count);
	event_set__close(set);
	if (config->counters != VAPRO_COUNTERS_TEST)
		report_instructions(counters, out);
	for (const struct event_group *const *group = counters->table ? counters->table->groups : NULL; group && *group;
	     group++)
		report_group(counters,
			     group == counters->table->groups && counters->smt && counters->table->stage1_smt
				 ? counters->table->stage1_smt
				 : *group,
			     out);
cleanup:
	free(counters);
	return counts ? 0 : -ENODEV;
}

bool counters__report(const struct vapro_config *config, FILE *out)
{
	struct vapro_config test = *config;
	struct cpu_id id;
	const struct event_cpu *table;
	bool counts;
	char text[64];

	fprintf(out, "Hardware counters\n");
	counts = !report(config, out);
	if (!counts) {
		events__read_cpu("/proc/cpuinfo", &id);
		events__format_cpu(&id, text, sizeof(text));
		table = events__match(&id);
		fprintf(out, "  this CPU is %s%s%s\n", text, table ? ", with counters it would be measured as " : "",
			table ? table->title : ", which is in no table");
		fprintf(out, "  workload is assumed from call arguments (workload_source: arguments)\n");
	}
	fprintf(out, "Clocks in place of counters (--counters test)\n");
	test.counters = VAPRO_COUNTERS_TEST;
	report(&test, out);
	return counts;
}

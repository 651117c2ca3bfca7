// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/node_check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "config/tunables.h"
#include "model/judgement.h"
#include "pipeline/pipeline.h"
#include "report/record.h"

#define BUSY 0.05 /* share of an instance's time in which others had its CPU, from which caches are theirs, too */

const char *const node_verdict_name[NODE_VERDICTS] = {
    [NODE_GOOD] = "good", [NODE_UNDECIDED] = "undecided", [NODE_SLOWER] = "slower",
    [NODE_SLOW] = "slow", [NODE_WRONG] = "wrong",
};

struct node_finding *node_check__add(struct node_check *check, enum node_kernel kernel, const char *core_type)
{
	struct node_finding *finding;

	if (grow(&check->items, &check->capacity, check->count + 1, sizeof(*check->items)))
		return NULL;
	finding = &check->items[check->count++];
	*finding = (struct node_finding){.kernel = kernel, .mean_ns = NAN, .scatter = NAN, .difference = NAN};
	snprintf(finding->core_type, sizeof(finding->core_type), "%s", core_type);
	return finding;
}

int node_check__add_instance(struct node_finding *finding, uint32_t instance)
{
	uint32_t *more = reallocarray(finding->instances, finding->count + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	finding->instances = more;
	more[finding->count++] = instance;
	return 0;
}

const struct node_finding *node_check__find(const struct node_check *check, enum node_kernel kernel,
					    const char *core_type)
{
	for (size_t i = 0; i < check->count; i++) {
		if (check->items[i].kernel == kernel && !strcmp(check->items[i].core_type, core_type))
			return &check->items[i];
	}
	return NULL;
}

void node_check__clear(struct node_check *check)
{
	for (size_t i = 0; i < check->count; i++)
		free(check->items[i].instances);
	free(check->items);
	cJSON_Delete(check->records);
	*check = (struct node_check){.count = 0};
}

/* The records that the analysis makes of a run. */
struct records {
	cJSON *list;
	bool failed; /* out of memory */
};

static void add_record(void *arg, const char *line)
{
	struct records *records = arg;
	cJSON *record;

	if (record_table__type_of(line) != RECORD_OBJECT_variability)
		return;
	record = cJSON_Parse(line);
	if (!record || !cJSON_AddItemToArray(records->list, record)) {
		cJSON_Delete(record);
		records->failed = true;
	}
}

/* Has a run analysed as a job. Returns 0 or a negative errno. */
static int analyse(const struct node_run *run, cJSON **list)
{
	struct records records = {.list = cJSON_CreateArray()};
	struct vapro_config config;
	struct pipeline *pipeline;
	int error = records.list ? 0 : -ENOMEM;

	*list = records.list;
	config__init(&config);
	pipeline = pipeline__new(&config, VAPRO_BY_INSTRUCTIONS, node_run__machine(run)->host, NULL, NULL);
	if (!pipeline)
		return -ENOMEM;
	pipeline__tap(pipeline, add_record, &records);
	if (!error)
		error = node_run__feed(run, config.window_s, pipeline__sink(pipeline));
	if (pipeline__close(pipeline) && !error)
		error = -ENOMEM;
	return error ? error : records.failed ? -ENOMEM : 0;
}

bool node_check__busy(const struct node_run *run, char *text, size_t size)
{
	const struct machine_cpus *machine = node_run__machine(run);
	double most = 0;
	uint32_t worst = 0;

	for (uint32_t i = 0; i < machine->count; i++) {
		double waited = node_run__waited(run, i);

		if (waited > most) {
			most = waited;
			worst = i;
		}
	}
	*text = '\0';
	if (most < BUSY)
		return false;
	snprintf(text, size, "other tasks, or a hypervisor, had CPU %d for %.0f %% of the time",
		 machine->cpus[worst].cpu, 100 * most);
	return true;
}

/* Copies the core type of a state's labels; "" without one. */
static void core_of(const char *labels, char *core, size_t size)
{
	const char *at = labels ? strstr(labels, "core=") : NULL;

	snprintf(core, size, "%.*s", at ? (int)strcspn(at + 5, " ") : 0, at ? at + 5 : "");
}

/* Adds the slow instances of a record. Returns 0 or -ENOMEM. */
static int add_slow(struct node_finding *finding, const cJSON *spatial, size_t instances)
{
	int32_t *ranks = NULL;
	uint32_t count = 0;
	int error = record__ranks(record__text(spatial, KEY(spatial, slow_ranks)), &ranks, &count);

	for (uint32_t i = 0; !error && i < count; i++) {
		if (ranks[i] >= 0 && (size_t)ranks[i] < instances)
			error = node_check__add_instance(finding, (uint32_t)ranks[i]);
	}
	free(ranks);
	return error;
}

/* Decides about a kernel whose instances are known to differ, or not to. */
static void decide(struct node_finding *finding, const cJSON *record, const char *busy)
{
	const char *kind = record__text(record, KEY(variability, kind));
	const char *origin = record__text(record, KEY(variability, origin));
	bool spatial = kind && (!strcmp(kind, "spatial") || !strcmp(kind, "both")) && finding->count;

	finding->verdict = NODE_UNDECIDED;
	if (*busy)
		snprintf(finding->why, sizeof(finding->why), "%s", busy);
	else if (spatial && origin && !strcmp(origin, "software"))
		snprintf(finding->why, sizeof(finding->why), "the CPUs differ by the time that other tasks had");
	else if (spatial && finding->difference > finding->scatter)
		finding->verdict = NODE_SLOW;
	else if (finding->scatter > RATIO_ALIKE - 1)
		snprintf(finding->why, sizeof(finding->why),
			 "the times of a CPU scatter by %.1f %%: less than that cannot be seen",
			 100 * finding->scatter);
	else if (spatial)
		snprintf(finding->why, sizeof(finding->why),
			 "the CPUs differ by no more than the times of one scatter");
	else
		finding->verdict = NODE_GOOD;
}

/* Makes the finding of a record. Returns 0 or -ENOMEM. */
static int add_finding(struct node_check *check, const struct node_run *run, const cJSON *record, const char *busy)
{
	const char *labels = record__text(record, KEY(state, labels));
	const cJSON *temporal = record__item(record, KEY(variability, temporal));
	const cJSON *spatial = record__item(record, KEY(variability, spatial));
	enum node_kernel kernel = node_run__kernel_of(labels);
	struct node_finding *finding;
	char core[24];
	int error;

	if (kernel == NODE_KERNELS)
		return 0;
	core_of(labels, core, sizeof(core));
	finding = node_check__add(check, kernel, core);
	if (!finding)
		return -ENOMEM;
	finding->mean_ns = node_run__mean_ns(run, kernel);
	finding->scatter = record__number(temporal, KEY(temporal, worst_pct), NAN) / 100;
	finding->difference = record__number(spatial, KEY(spatial, spread_pct), NAN) / 100;
	finding->difference =
	    isnan(finding->difference)
		? record__number(spatial, KEY(spatial, slowest_over_fastest_pct), NAN) / 100
		: fmax(finding->difference, record__number(spatial, KEY(spatial, slowest_pct), 0) / 100);
	error = add_slow(finding, spatial, node_run__machine(run)->count);
	if (error)
		return error;
	if (node_run__unpinned(run)) {
		finding->verdict = NODE_UNDECIDED;
		snprintf(finding->why, sizeof(finding->why), "no CPU is pinned: the times are of no CPU in particular");
	} else if (isnan(finding->difference)) {
		finding->verdict = NODE_UNDECIDED;
		snprintf(finding->why, sizeof(finding->why), "there is no other CPU to compare it with");
	} else {
		decide(finding, record, busy);
	}
	return 0;
}

/* Adds a finding on each kernel that too little is known of, and marks those with wrong results. */
static int complete(struct node_check *check, const struct node_run *run, const char *busy)
{
	const struct machine_cpus *machine = node_run__machine(run);

	for (int kernel = 0; kernel < NODE_KERNELS; kernel++) {
		struct node_finding *finding = NULL;

		for (size_t i = 0; !finding && i < check->count; i++)
			finding = check->items[i].kernel == (enum node_kernel)kernel ? &check->items[i] : NULL;
		if (!finding && (kernel != NODE_FALSE_SHARING || machine->count > 1)) {
			finding = node_check__add(check, (enum node_kernel)kernel, "");
			if (!finding)
				return -ENOMEM;
			finding->verdict = NODE_UNDECIDED;
			finding->mean_ns = node_run__mean_ns(run, (enum node_kernel)kernel);
			snprintf(finding->why, sizeof(finding->why), "%s",
				 *busy ? busy : "too few iterations: a longer check (--seconds) has more");
		}
		for (uint32_t i = 0; finding && i < machine->count; i++) {
			if (!node_run__wrong(run, i, (enum node_kernel)kernel))
				continue;
			if (finding->verdict != NODE_WRONG)
				finding->count = 0;
			finding->verdict = NODE_WRONG;
			*finding->why = '\0';
			if (node_check__add_instance(finding, i))
				return -ENOMEM;
		}
	}
	return 0;
}

static int compare_findings(const void *a, const void *b)
{
	const struct node_finding *left = a, *right = b;

	if (left->kernel != right->kernel)
		return left->kernel < right->kernel ? -1 : 1;
	return strcmp(left->core_type, right->core_type);
}

int node_check__judge(struct node_check *check, const struct node_run *run, char *err, size_t err_size)
{
	char busy[128];
	const cJSON *record;
	int error;

	*check = (struct node_check){.count = 0};
	node_check__busy(run, busy, sizeof(busy));
	error = analyse(run, &check->records);
	if (error == -ENODATA) /* nothing ended: the findings say so */
		error = 0;
	cJSON_ArrayForEach(record, check->records)
	{
		if (!error)
			error = add_finding(check, run, record, busy);
	}
	if (!error)
		error = complete(check, run, busy);
	if (error) {
		snprintf(err, err_size, "the iterations cannot be analysed: %s", strerror(-error));
		return error;
	}
	if (check->count)
		qsort(check->items, check->count, sizeof(*check->items), compare_findings);
	for (size_t i = 0; i < check->count; i++)
		check->verdict = check->items[i].verdict > check->verdict ? check->items[i].verdict : check->verdict;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* A run beside a profile: what the comparison of two runs of a job says. */
#include "node/node_check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/compare.h"
#include "model/judgement.h"

/* Returns the greater scatter of a kernel in both runs; NAN where one of them is not known. */
static double scatter_of(const struct node_check *known, const struct node_check *now,
			 const struct node_finding *finding)
{
	const struct node_finding *of[] = {node_check__find(known, finding->kernel, finding->core_type),
					   node_check__find(now, finding->kernel, finding->core_type)};

	if (!of[0] || !of[1] || isnan(of[0]->scatter) || isnan(of[1]->scatter))
		return NAN;
	return fmax(of[0]->scatter, of[1]->scatter);
}

static enum node_kernel kernel_of(const struct comparison *found, uint32_t kind)
{
	const struct profile *profile = found->profile[1];

	return node_run__kernel_of(stg__state(profile->stg, profile->kinds[kind].state)->about.labels);
}

static bool is_of(const struct comparison *found, const struct compare_row *row, const struct node_finding *finding)
{
	const struct profile *profile = found->profile[1];
	const char *labels;

	if (row->what != COMPARE_STATE || kernel_of(found, row->kind) != finding->kernel)
		return false;
	labels = stg__state(profile->stg, profile->kinds[row->kind].state)->about.labels;
	return !*finding->core_type == !strstr(labels, "core=") &&
	       (!*finding->core_type || strstr(labels, finding->core_type));
}

/*
 * Reads the rows of a kernel: the instances that became slower, and by how much at most, whether that is named or not.
 * Returns the number of rows, or -ENOMEM.
 */
static int read_rows(struct node_finding *finding, const struct comparison *found, bool *all)
{
	int count = 0;

	*all = false;
	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		if (!is_of(found, row, finding))
			continue;
		count++;
		if (isnan(finding->difference) || row->ratio - 1 > finding->difference)
			finding->difference = row->ratio - 1;
		if (!row->named || row->ratio <= 1)
			continue;
		if (row->unit == COMPARE_ALL)
			*all = true;
		else if (node_check__add_instance(finding, (uint32_t)row->unit))
			return -ENOMEM;
	}
	return count;
}

/* Decides about one kernel. Returns 0 or -ENOMEM. */
static int decide(struct node_finding *finding, const struct comparison *found, const char *busy)
{
	bool all;
	int rows = read_rows(finding, found, &all);

	if (rows < 0)
		return rows;
	finding->verdict = NODE_UNDECIDED;
	if (all)
		finding->count = 0; /* all of them */
	if (*busy)
		snprintf(finding->why, sizeof(finding->why), "%s", busy);
	else if (!rows || isnan(finding->scatter))
		snprintf(finding->why, sizeof(finding->why), "too few iterations: a longer check (--seconds) has more");
	else if ((all || finding->count) && finding->difference > finding->scatter)
		finding->verdict = NODE_SLOWER;
	else if (finding->scatter > RATIO_ALIKE - 1)
		snprintf(finding->why, sizeof(finding->why),
			 "the times of a CPU scatter by %.1f %%: less than that cannot be seen",
			 100 * finding->scatter);
	else if (all || finding->count)
		snprintf(finding->why, sizeof(finding->why),
			 "the runs differ by no more than the times of one scatter");
	else
		finding->verdict = NODE_GOOD;
	return 0;
}

static int judge(struct node_check *check, const struct node_check *known, const struct node_check *now,
		 const struct node_run *run, const struct comparison *found, const char *busy)
{
	for (size_t i = 0; i < now->count; i++) {
		struct node_finding *finding = node_check__add(check, now->items[i].kernel, now->items[i].core_type);

		if (!finding)
			return -ENOMEM;
		finding->mean_ns = node_run__mean_ns(run, finding->kernel);
		finding->scatter = scatter_of(known, now, finding);
		if (decide(finding, found, busy))
			return -ENOMEM;
		check->verdict = finding->verdict > check->verdict ? finding->verdict : check->verdict;
	}
	return 0;
}

int node_check__compare(struct node_check *check, const struct node_run *profile, const struct node_check *known,
			const struct node_run *run, const struct node_check *now, char *err, size_t err_size)
{
	const struct compare_options options = {.threshold = RATIO_ALIKE - 1};
	struct profile *profiles[2] = {NULL, NULL};
	struct comparison found = {.row_count = 0};
	char busy[128];
	int error;

	*check = (struct node_check){.count = 0};
	if (!node_check__busy(run, busy, sizeof(busy)))
		node_check__busy(profile, busy, sizeof(busy));
	error = node_run__profile(profile, &profiles[0]);
	if (!error)
		error = node_run__profile(run, &profiles[1]);
	if (error)
		snprintf(err, err_size, "the runs cannot be compared: %s", strerror(-error));
	else
		error = compare__runs(&found, profiles[0], profiles[1], &options, err, err_size);
	if (!error && judge(check, known, now, run, &found, busy)) {
		snprintf(err, err_size, "out of memory");
		error = -ENOMEM;
	}
	compare__clear(&found);
	profile__free(profiles[0]);
	profile__free(profiles[1]);
	return error;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Cases in checkpoints: see diagnoses.h. */
#include "diagnose/diagnoses.h"

#include <stdlib.h>

static const struct archive_column case_columns[] = {
    ARCHIVE_ONE(struct diagnosis_of, id),
    ARCHIVE_ONE(struct diagnosis_of, stale),
    ARCHIVE_ONE(struct diagnosis_of, wished),
    ARCHIVE_ONE(struct diagnosis_of, tried),
    ARCHIVE_ONE(struct diagnosis_of, emitted.stage),
    ARCHIVE_ONE(struct diagnosis_of, emitted.final),
    ARCHIVE_ONE(struct diagnosis_of, emitted.confirmed),
    ARCHIVE_ONE(struct diagnosis_of, emitted.alarm),
    ARCHIVE_ONE(struct diagnosis_of, emitted.effect_of),
    ARCHIVE_ONE(struct diagnosis_of, emitted.major),
    ARCHIVE_ONE(struct diagnosis_of, emitted.rows),
    ARCHIVE_ONE(struct diagnosis_of, emitted.words),
    ARCHIVE_ONE(struct diagnosis_of, emitted.confidence),
    ARCHIVE_ONE(struct diagnosis_of, emitted.slow_path),
    ARCHIVE_ONE(struct diagnosis_of, emitted.lost_seconds),
    ARCHIVE_MANY(struct diagnosis_of, emitted.share),
    ARCHIVE_MANY(struct diagnosis_of, breakdown.outcome),
    ARCHIVE_MANY(struct diagnosis_of, breakdown.rows),
    ARCHIVE_ANY_MANY(struct diagnosis_of, breakdown.r2),
};
static const struct archive_table case_table = ARCHIVE_TABLE("cases", struct diagnosis_of, case_columns);

static const struct archive_column node_columns[] = {
    ARCHIVE_ONE(struct breakdown_node, impact_ns), ARCHIVE_ONE(struct breakdown_node, share),
    ARCHIVE_ANY(struct breakdown_node, p),	   ARCHIVE_ONE(struct breakdown_node, present),
    ARCHIVE_ONE(struct breakdown_node, major),	   ARCHIVE_ONE(struct breakdown_node, regression),
    ARCHIVE_ONE(struct breakdown_node, implied),   ARCHIVE_ONE(struct breakdown_node, shared),
};
static const struct archive_table node_table = ARCHIVE_TABLE("breakdown", struct breakdown_node, node_columns);

static const struct archive_column contribution_columns[] = {
    ARCHIVE_MANY(struct contribution, impact),	ARCHIVE_MANY(struct contribution, duration),
    ARCHIVE_MANY(struct contribution, counted), ARCHIVE_ONE(struct contribution, abnormal),
    ARCHIVE_ONE(struct contribution, normal),	ARCHIVE_ONE(struct contribution, dur),
    ARCHIVE_ONE(struct contribution, ref),	ARCHIVE_ONE(struct contribution, approx),
    ARCHIVE_ONE(struct contribution, kernel),
};
static const struct archive_table contribution_table =
    ARCHIVE_TABLE("contributions", struct contribution, contribution_columns);

static const struct archive_column moment_columns[] = {
    ARCHIVE_ONE(struct regression_moments, factors), ARCHIVE_ONE(struct regression_moments, rows),
    ARCHIVE_ONE(struct regression_moments, weight),  ARCHIVE_MANY(struct regression_moments, mean),
    ARCHIVE_GRID(struct regression_moments, co),
};
static const struct archive_table moment_table = ARCHIVE_TABLE("moments", struct regression_moments, moment_columns);

static const struct archive_column task_columns[] = {
    ARCHIVE_MANY(struct interferer, task.comm),	   ARCHIVE_ONE(struct interferer, task.pid),
    ARCHIVE_ONE(struct interferer, task.relation), ARCHIVE_ONE(struct interferer, task.seconds),
    ARCHIVE_ONE(struct interferer, task.rank),	   ARCHIVE_MANY(struct interferer, job),
    ARCHIVE_ONE(struct interferer, begin),	   ARCHIVE_ONE(struct interferer, end),
    ARCHIVE_ONE(struct interferer, row_count),	   ARCHIVE_MANY(struct interferer, rows),
    ARCHIVE_MANY(struct interferer, row_seconds),
};
static const struct archive_table task_table = ARCHIVE_TABLE("interferers", struct interferer, task_columns);

static const struct archive_column forgotten_columns[] = {ARCHIVE_ONE(struct interferers, forgotten)};
static const struct archive_table forgotten_table = ARCHIVE_TABLE("forgotten", struct interferers, forgotten_columns);

static void archive_contribution(struct archive *archive, struct contribution *part)
{
	archive__record(archive, &contribution_table, part);
	for (int set = 0; set < PRICED_SETS; set++) {
		archive__record(archive, &moment_table, &part->rows[set]);
		if (!archive__check(archive, part->rows[set].factors <= REGRESSION_FACTORS,
				    "a regression has too many factors"))
			part->rows[set].factors = 0;
	}
}

static void archive_interferers(struct archive *archive, struct interferers *tasks)
{
	archive__record(archive, &forgotten_table, tasks);
	archive__rows(archive, &task_table, &tasks->items, &tasks->count, &tasks->capacity);
	for (size_t i = 0; archive__reads(archive) && i < tasks->count; i++)
		archive__check(archive,
			       tasks->items[i].task.relation < VAPRO_RELATIONS &&
				   tasks->items[i].row_count <= INTERFERER_ROWS + 1,
			       "an interferer is of no kind");
}

static void archive_case(struct archive *archive, struct diagnosis_of *item)
{
	uint64_t parts = 0;

	archive__record(archive, &case_table, item);
	archive__array(archive, &node_table, item->breakdown.node, FACTOR_NODES);
	for (int part = 0; part < CASE_PARTS; part++)
		parts |= (uint64_t)(item->parts[part] != NULL) << part;
	archive__number(archive, &parts);
	for (int part = 0; part < CASE_PARTS; part++) {
		archive_interferers(archive, &item->interferers[part]);
		if (archive__reads(archive) && parts & 1U << part)
			item->parts[part] = archive__take(archive, 1, sizeof(*item->parts[part]));
		if (item->parts[part])
			archive_contribution(archive, item->parts[part]);
	}
}

static bool possible(const struct diagnoses *diagnoses, size_t at)
{
	const struct diagnosis_of *item = diagnoses->items[at];
	bool possible = (!at || diagnoses->items[at - 1]->id < item->id) && item->emitted.stage >= 0;

	for (int set = 0; set < PRICED_SETS; set++)
		possible &= item->breakdown.outcome[set] <= REGRESSION_NO_FACTOR;
	return possible;
}

void diagnoses__archive(struct archive *archive, struct diagnoses *diagnoses)
{
	uint64_t count = diagnoses->count, capacity = diagnoses->capacity;

	archive__number(archive, &count);
	archive__number(archive, &capacity);
	if (archive__reads(archive)) {
		diagnoses->items =
		    archive__check(archive, count <= capacity, "there are more cases than room") && capacity
			? archive__take(archive, capacity, sizeof(struct diagnosis_of *))
			: NULL;
		diagnoses->capacity = diagnoses->items ? capacity : 0;
	}
	for (uint64_t i = 0; i < count && !archive__error(archive); i++) {
		if (archive__reads(archive)) {
			diagnoses->items[i] = archive__take(archive, 1, sizeof(struct diagnosis_of));
			if (!diagnoses->items[i])
				return;
			diagnoses->count++;
		}
		archive_case(archive, diagnoses->items[i]);
		if (archive__reads(archive))
			archive__check(archive, possible(diagnoses, i), "a case contradicts others");
	}
}

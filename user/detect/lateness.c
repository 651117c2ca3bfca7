// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/lateness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LATE_LEAST 0.02 /* share of a bin: below this, all peers count alike */

static void drop_groups(struct lateness *lateness)
{
	for (unsigned i = 0; i < lateness->group_count; i++)
		free(lateness->groups[i].sums);
	lateness->group_count = 0;
}

void lateness__clear(struct lateness *lateness)
{
	drop_groups(lateness);
	free(lateness->cells);
	*lateness = (struct lateness){0};
}

size_t lateness__bytes(const struct lateness *lateness)
{
	return lateness->capacity * sizeof(*lateness->cells);
}

int lateness__begin(struct lateness *lateness, size_t rows, uint64_t begin, uint64_t end)
{
	size_t need = rows * (end > begin ? end - begin : 0);

	drop_groups(lateness);
	if (need > lateness->capacity) {
		free(lateness->cells);
		lateness->capacity = 0;
		lateness->cells = malloc(need * sizeof(*lateness->cells));
		if (!lateness->cells)
			return -ENOMEM;
		lateness->capacity = need;
	}
	if (need)
		memset(lateness->cells, 0, need * sizeof(*lateness->cells));
	lateness->rows = rows;
	lateness->begin = begin;
	lateness->end = end;
	return 0;
}

/* The time of a row out of calls in a bin, and the known part. */
static double out_of_calls(const struct lateness *lateness, uint32_t row, uint64_t bin, double *known)
{
	const struct lateness_cell *cell = lateness__cell(lateness, row, bin);
	double out = fmax(0, (double)VAPRO_BIN_NS - cell->called);

	*known = fmin(out, cell->known);
	return out;
}

static bool is_member(const struct waiting *waiting, const struct stg_job *job, uint32_t group, uint32_t of,
		      uint32_t row, uint64_t bin)
{
	const struct stg_row *at = &job->rows[row];
	uint64_t from = bin * VAPRO_BIN_NS;

	if (!at->from_ns || at->from_ns >= from + VAPRO_BIN_NS || (at->to_ns && at->to_ns <= from))
		return false;
	if (group == STG_PROCESS)
		return at->leader == job->rows[of].leader;
	return !waiting || waiting__is_member(waiting, job, group, row);
}

static void sum_members(const struct lateness *lateness, const struct waiting *waiting, const struct stg_job *job,
			uint32_t group, uint32_t of, uint64_t bin, struct lateness_sum *sum)
{
	*sum = (struct lateness_sum){.least = INFINITY, .set = true};
	for (uint32_t row = 0; row < lateness->rows; row++) {
		double known, out;

		if (!is_member(waiting, job, group, of, row, bin))
			continue;
		out = out_of_calls(lateness, row, bin, &known);
		sum->rows++;
		sum->out += out;
		sum->out_known += known;
		sum->least = fmin(sum->least, out);
		sum->second = fmax(sum->second, fmin(sum->most, out));
		sum->most = fmax(sum->most, out);
	}
	for (uint32_t row = 0; row < lateness->rows; row++) {
		double known, out, late;

		if (!is_member(waiting, job, group, of, row, bin))
			continue;
		out = out_of_calls(lateness, row, bin, &known);
		late = out - sum->least;
		sum->late += late;
		sum->known += out > 0 ? late * known / out : 0;
	}
}

static struct lateness_group *find_group(struct lateness *lateness, uint32_t id)
{
	size_t bins = lateness->end - lateness->begin, count = id == STG_PROCESS ? bins * lateness->rows : bins;
	struct lateness_group *group = lateness->groups;

	for (unsigned i = 0; i < lateness->group_count; i++) {
		if (group[i].id == id)
			return &group[i];
	}
	if (lateness->group_count == LATENESS_GROUPS)
		return NULL;
	group += lateness->group_count;
	*group = (struct lateness_group){.id = id, .sums = calloc(count, sizeof(*group->sums))};
	if (!group->sums)
		return NULL;
	lateness->group_count++;
	return group;
}

double lateness__explained(struct lateness *lateness, const struct waiting *waiting, const struct stg_job *job,
			   uint32_t id, uint32_t row, uint64_t bin, double *known_share)
{
	struct lateness_group *group = find_group(lateness, id);
	size_t at = bin - lateness->begin;
	double out, known, late, others, share, most, waited;
	struct lateness_sum *sum;

	*known_share = 0;
	if (!group)
		return 0;
	sum = &group->sums[id == STG_PROCESS ? at * lateness->rows + job->rows[row].leader : at];
	if (!sum->set)
		sum_members(lateness, waiting, job, id, row, bin, sum);
	if (sum->rows < 2)
		return 0;
	out = out_of_calls(lateness, row, bin, &known);
	late = out - sum->least;
	others = sum->late - late;
	if (others > LATE_LEAST * (double)VAPRO_BIN_NS)
		share = (sum->known - (out > 0 ? late * known / out : 0)) / others;
	else
		share = sum->out > out ? (sum->out_known - known) / (sum->out - out) : 0;
	most = out >= sum->most ? sum->second : sum->most;
	waited = lateness__cell(lateness, row, bin)->waited;
	*known_share = fmin(1, fmax(0, share));
	return *known_share * (waited > most ? most / waited : 1);
}

static const struct archive_column lateness_columns[] = {ARCHIVE_ONE(struct lateness, capacity)};
static const struct archive_table lateness_table = ARCHIVE_TABLE("lateness", struct lateness, lateness_columns);

void lateness__archive(struct archive *archive, struct lateness *lateness)
{
	archive__record(archive, &lateness_table, lateness);
	if (!archive__reads(archive) || !lateness->capacity)
		return;
	lateness->cells = archive__take(archive, lateness->capacity, sizeof(*lateness->cells));
	if (!lateness->cells)
		lateness->capacity = 0;
}

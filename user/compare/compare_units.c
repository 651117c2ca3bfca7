// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/compare_private.h"

#include <stdio.h>

#include "base/grow.h"

/* Rows of a job that a unit may be: its ranks or processes, or all threads of the only process. */
static uint32_t leaders(const struct stg_job *job)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < job->row_count; i++)
		count += job->rows[i].leader == i;
	return count;
}

static bool ranks_known(const struct stg_job *job)
{
	for (uint32_t i = 0; i < job->row_count; i++)
		if (job->rows[i].rank < 0)
			return false;
	return true;
}

static const struct stg_job *job_of(const struct profile *profile)
{
	return stg__job(profile->stg, profile->job);
}

/* Sets the number by which each row is matched with the other run's. */
static void number_rows(const struct stg_job *job, enum compare_unit_kind kind, int32_t *numbers)
{
	int32_t next = 0;

	for (uint32_t place = 0; place < job->row_count; place++) {
		uint32_t row = job->order[place], leader = job->rows[row].leader;

		if (kind == COMPARE_THREADS)
			numbers[row] = job->rows[row].thread;
		else if (kind == COMPARE_RANKS)
			numbers[row] = job->rows[row].rank;
		else
			numbers[row] = row == leader ? next++ : -1;
	}
	for (uint32_t row = 0; row < job->row_count; row++)
		if (kind == COMPARE_PROCESSES)
			numbers[row] = numbers[job->rows[row].leader];
}

static const char *host_of(const struct stg_job *job, const int32_t *numbers, int32_t number)
{
	for (uint32_t row = 0; row < job->row_count; row++)
		if (numbers[row] == number)
			return job->rows[row].host;
	return NULL;
}

static int by_number(const void *a, const void *b)
{
	const struct compare_unit *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Counts distinct numbers; the units of B that A has, too, become the result's. */
static int make_units(struct comparison *result, const struct stg_job *job[2], int32_t *const numbers[2])
{
	for (int side = 0; side < 2; side++) {
		for (uint32_t row = 0; row < job[side]->row_count; row++) {
			bool first = true;

			for (uint32_t other = 0; first && other < row; other++)
				first = numbers[side][other] != numbers[side][row];
			result->side[side].units += first;
		}
		result->side[side].hosts = job[side]->host_count;
		result->side[side].world_size = job[side]->world_size;
		result->side[side].job = job[side]->name;
	}
	result->units = calloc(result->side[1].units + 1, sizeof(*result->units));
	if (!result->units)
		return -ENOMEM;
	for (uint32_t row = 0; row < job[1]->row_count; row++) {
		int32_t number = numbers[1][row];
		const char *host_a = host_of(job[0], numbers[0], number);
		bool known = !host_a;

		for (uint32_t i = 0; !known && i < result->unit_count; i++)
			known = result->units[i].number == number;
		if (!known)
			result->units[result->unit_count++] =
			    (struct compare_unit){.number = number, .host_a = host_a, .host_b = job[1]->rows[row].host};
	}
	qsort(result->units, result->unit_count, sizeof(*result->units), by_number);
	return 0;
}

static int map_threads(const struct comparison *result, int side, const int32_t *numbers, uint32_t **unit_of)
{
	const struct profile *profile = result->profile[side];
	size_t threads = stg__threads(profile->stg);

	*unit_of = calloc(threads + 1, sizeof(**unit_of));
	if (!*unit_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < threads; i++) {
		const struct stg_thread *thread = stg__thread(profile->stg, i);
		const struct compare_unit wanted = {.number = thread->job == profile->job ? numbers[thread->row] : 0};
		const struct compare_unit *unit =
		    thread->job == profile->job
			? bsearch(&wanted, result->units, result->unit_count, sizeof(*result->units), by_number)
			: NULL;

		(*unit_of)[i] = unit ? (uint32_t)(unit - result->units) : COMPARE_NONE;
	}
	return 0;
}

int compare__units(struct comparison *result, uint32_t *unit_of[2], char *err, size_t err_size)
{
	const struct stg_job *job[2] = {job_of(result->profile[0]), job_of(result->profile[1])};
	int32_t *numbers[2] = {calloc(job[0]->row_count + 1, sizeof(int32_t)),
			       calloc(job[1]->row_count + 1, sizeof(int32_t))};
	int error = numbers[0] && numbers[1] ? 0 : -ENOMEM;

	result->unit_kind = leaders(job[0]) == 1 && leaders(job[1]) == 1 ? COMPARE_THREADS
			    : ranks_known(job[0]) && ranks_known(job[1]) ? COMPARE_RANKS
									 : COMPARE_PROCESSES;
	for (int side = 0; !error && side < 2; side++)
		number_rows(job[side], result->unit_kind, numbers[side]);
	if (!error)
		error = make_units(result, job, numbers);
	for (int side = 0; !error && side < 2; side++)
		error = map_threads(result, side, numbers[side], &unit_of[side]);
	if (!error && !result->unit_count) {
		snprintf(err, err_size, "the runs have no rank in common: A has %u, B has %u", result->side[0].units,
			 result->side[1].units);
		error = -ENODATA;
	}
	for (uint32_t i = 0; !error && i < result->unit_count; i++)
		result->moved |= strcmp(result->units[i].host_a, result->units[i].host_b) != 0;
	free(numbers[0]);
	free(numbers[1]);
	return error;
}

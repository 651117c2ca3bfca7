/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Communicators behind one label. Processes number their communicators, so that all rows of a process grid have the
 * same label. No rank leaves a collective before all of its communicator have entered (struct stg_state, together), and
 * all leave within a moment: ranks whose calls end together time and again are one communicator, whatever the
 * call-sites. What a view shows holds until another one shows something else.
 */
#include "detect/waiting_private.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 128 };			  /* calls by which two ranks are compared */
#define SAME_SHARE (1 - SHARE_NEGLIGIBLE) /* of overlapping calls that end together, of one communicator */

/* A single call. */
struct span {
	uint64_t start_ns, end_ns;
	uint32_t row;
	float cpu_ns;
};

/* The calls of one group in the view. */
struct search {
	struct waiting *waiting;
	const struct stg_job *job;
	struct group *group;
	struct span *calls; /* by row and end */
	size_t count;
	size_t *first;	   /* by row: its first call; the one behind its last one is the next row's */
	uint32_t *of;	   /* by row: its communicator, from 1 */
	uint32_t *leaders; /* a row of each communicator */
	size_t leader_count;
};

static int compare_spans(const void *a, const void *b)
{
	const struct span *left = a, *right = b;

	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->end_ns > right->end_ns) - (left->end_ns < right->end_ns);
}

/* Finds the single calls of a group that leave together. Returns 0 or -ENOMEM. */
static int find_calls(struct search *search)
{
	const struct waiting *waiting = search->waiting;
	uint32_t group = (uint32_t)(search->group - waiting->groups);
	size_t room = 0;

	for (size_t i = 0; i < waiting->site_count; i++) {
		const struct call_site *site = &waiting->sites[i];

		room += site->group == group && site->together ? site->singles : 0;
	}
	search->calls = malloc((room + 1) * sizeof(*search->calls));
	search->first = calloc(waiting->rows + 1, sizeof(*search->first));
	if (!search->calls || !search->first)
		return -ENOMEM;
	for (size_t i = 0; room && i < waiting->item_count; i++) {
		const struct excess *item = &waiting->items[i];
		const struct call_site *site = &waiting->sites[item->site];

		if (item->n != 1 || site->group != group || !site->together)
			continue;
		search->calls[search->count++] = (struct span){item->start_ns, item->end_ns, item->row, item->cpu_ns};
		search->first[item->row + 1]++;
	}
	if (search->count)
		qsort(search->calls, search->count, sizeof(*search->calls), compare_spans);
	for (size_t row = 0; row < waiting->rows; row++)
		search->first[row + 1] += search->first[row];
	return 0;
}

/* The call of a row that overlaps with another one and ends nearest to it; NULL: none. */
static const struct span *beside(const struct search *search, uint32_t row, const struct span *call)
{
	size_t low = search->first[row], end = search->first[row + 1];
	const struct span *nearest = NULL;
	uint64_t least = UINT64_MAX;

	for (size_t high = end; low < high;) {
		size_t middle = (low + high) / 2;

		if (search->calls[middle].end_ns <= call->start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < end && search->calls[low].start_ns < call->end_ns; low++) {
		uint64_t other = search->calls[low].end_ns;
		uint64_t apart = other > call->end_ns ? other - call->end_ns : call->end_ns - other;

		if (apart < least) {
			least = apart;
			nearest = &search->calls[low];
		}
	}
	return nearest;
}

static bool ends_with(const struct span *a, const struct span *b)
{
	struct ends ends = {0};

	waiting__add_end(&ends, a->start_ns, a->end_ns, a->cpu_ns);
	waiting__add_end(&ends, b->start_ns, b->end_ns, b->cpu_ns);
	return waiting__at_once(&ends);
}

/*
 * Whether calls of two rows hardly ever overlap, of which so many samples of `count` of the one, and so many of the
 * other are known. Of one communicator all overlap but those of late ranks, which are short and were merged.
 */
static bool is_disjoint(size_t samples, size_t count, size_t others, size_t both)
{
	double least = (double)samples * (others < count ? (double)others / (double)count : 1);

	return count >= LEAST_FRAGMENTS && others >= LEAST_FRAGMENTS && (double)both < SHARE_MEANINGFUL * least;
}

/* Whether two rows are one communicator: 1, 0, or -1 where the view does not show it. */
static int leave_together(const struct search *search, uint32_t leader, uint32_t row)
{
	size_t count = search->first[leader + 1] - search->first[leader], both = 0, equal = 0;

	for (size_t i = 0; i < SAMPLES && i < count; i++) {
		size_t at = count <= SAMPLES ? i : i * count / SAMPLES;
		const struct span *call = &search->calls[search->first[leader] + at];
		const struct span *other = beside(search, row, call);

		both += other != NULL;
		equal += other && ends_with(call, other);
		/* mostly a few calls show that they are not */
		if (both == LEAST_FRAGMENTS && (double)equal < SHARE_NEARLY_ALL / 2 * (double)both)
			return 0;
	}
	if (is_disjoint(count < SAMPLES ? count : SAMPLES, count, search->first[row + 1] - search->first[row], both))
		return 0;
	if (both < LEAST_FRAGMENTS)
		return -1;
	return (double)equal >= SAME_SHARE * (double)both	 ? 1
	       : (double)equal < SHARE_NEARLY_ALL * (double)both ? 0
								 : -1;
}

/* The same, where a view does not show it by what was seen before. */
static int is_same(const struct search *search, uint32_t leader, uint32_t row)
{
	const uint32_t *before = search->group->of;
	int together = leave_together(search, leader, row);

	return together >= 0 || !before[leader] || !before[row] ? together : before[leader] == before[row];
}

/*
 * The number of the communicator that a row belongs to, from 0; COMMUNICATORS_MOST: the view does not show it, or there
 * are too many. Rows of several communicators may leave at one moment throughout a view: then that one counts which was
 * seen before.
 */
static size_t find_leader(struct search *search, uint32_t row)
{
	const uint32_t *before = search->group->of;
	size_t found = search->leader_count;
	bool sure = false;

	for (size_t at = 0; at < search->leader_count && !sure; at++) {
		int same = is_same(search, search->leaders[at], row);

		if (same < 0)
			return COMMUNICATORS_MOST;
		sure = same && (!before[row] || before[search->leaders[at]] == before[row]);
		if (same && (sure || found == search->leader_count))
			found = at;
	}
	if (found == search->leader_count && found < COMMUNICATORS_MOST)
		search->leaders[search->leader_count++] = row;
	return found;
}

/*
 * Divides the rows of a group. A rank for which the others wait has short calls, which are merged: where it is not
 * known whose it is, or where one leaves alone, the view does not show the communicators.
 */
static void divide(struct search *search)
{
	struct group *group = search->group;
	size_t rows = search->waiting->rows, sizes[COMMUNICATORS_MOST] = {0};
	uint32_t *of = search->of;

	for (uint32_t row = 0; row < rows; row++) {
		uint64_t to_ns = search->job->rows[row].to_ns;
		size_t leader;

		of[row] = 0;
		if (!group->uses[row] || (to_ns && to_ns <= search->waiting->begin * VAPRO_BIN_NS))
			continue;
		leader = find_leader(search, row);
		if (leader == COMMUNICATORS_MOST)
			return;
		of[row] = (uint32_t)leader + 1;
		sizes[leader]++;
	}
	for (size_t i = 0; i < search->leader_count; i++) {
		if (sizes[i] < 2)
			return;
	}
	memcpy(group->of, of, rows * sizeof(*of));
}

/* Finds the communicators of one group again. Returns 0 or -ENOMEM. */
static int find(struct waiting *waiting, const struct stg_job *job, struct group *group)
{
	struct search search = {.waiting = waiting, .job = job, .group = group};
	int error = find_calls(&search);

	if (error || !search.count)
		goto cleanup;
	search.leaders = malloc(COMMUNICATORS_MOST * sizeof(*search.leaders));
	search.of = malloc(waiting->rows * sizeof(*search.of));
	error = search.leaders && search.of ? 0 : -ENOMEM;
	if (!error)
		divide(&search);
cleanup:
	free(search.calls);
	free(search.first);
	free(search.leaders);
	free(search.of);
	return error;
}

/* Whether a group consists of several communicators, and each row that calls in it has its own. Counts their rows. */
static bool count_rows(const struct waiting *waiting, const struct stg_job *job, struct group *group)
{
	uint32_t most = 0;

	memset(group->sizes, 0, (COMMUNICATORS_MOST + 1) * sizeof(*group->sizes));
	for (size_t row = 0; row < waiting->rows; row++) {
		uint64_t to_ns = job->rows[row].to_ns;

		if (!group->uses[row] || (to_ns && to_ns <= waiting->begin * VAPRO_BIN_NS))
			continue;
		if (!group->of[row] || group->of[row] >= waiting->rows)
			return false;
		group->sizes[group->of[row]]++;
		most = group->of[row] > most ? group->of[row] : most;
	}
	return most > 1;
}

int waiting__find_communicators(struct waiting *waiting, const struct stg_job *job)
{
	for (size_t i = 0; i < waiting->group_count; i++) {
		struct group *group = &waiting->groups[i];

		group->divided = false;
		if (group->id == STG_WORLD || group->id == STG_PROCESS)
			continue;
		if (grow(&group->of, &group->of_capacity, waiting->rows, sizeof(*group->of)) ||
		    grow(&group->sizes, &group->size_capacity, COMMUNICATORS_MOST + 1, sizeof(*group->sizes)) ||
		    find(waiting, job, group))
			return -ENOMEM;
		group->divided = count_rows(waiting, job, group);
	}
	return 0;
}

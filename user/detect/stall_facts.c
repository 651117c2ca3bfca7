// SPDX-License-Identifier: GPL-2.0-or-later
/* What the latest stalls of a kind say: in which states, how regularly, at the same moments of which rows. */
#include "detect/stall_facts.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t minute_ns = 60000000000ULL;
static const uint64_t second_ns = 1000000000ULL;
#define OFTEN 0.2    /* part of the fragments of their states, from which stalls are a workload: as populous_share */
#define SELDOM 0.05  /* the same where only one state is hit, whose work may differ */
#define IRREGULAR .5 /* deviation of gaps by their mean: the steps of a program come more regularly */
#define FOLLOWS 1.75 /* times the usual gap of a state: in less there was no other fragment */

struct seen {
	struct stall stall;
	uint32_t row;
};

struct seen_stalls {
	struct seen *items;
	size_t count, capacity;
};

static int compare_starts(const void *a, const void *b)
{
	const struct seen *left = a, *right = b;

	if (left->stall.start_ns != right->stall.start_ns)
		return left->stall.start_ns < right->stall.start_ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

/*
 * The deviation of the gaps between the starts of a row, by their mean: 0 of a timer, 1 of chance, more of spells. NAN
 * of fewer than LEAST_MEMBERS gaps.
 */
static double regularity(const struct seen *seen, size_t count)
{
	double sum = 0, squares = 0, gaps = (double)count - 1, mean;

	if (count <= LEAST_MEMBERS)
		return NAN;
	for (size_t i = 1; i < count; i++) {
		double gap = (double)(seen[i].stall.start_ns - seen[i - 1].stall.start_ns);

		sum += gap;
		squares += gap * gap;
	}
	mean = sum / gaps;
	return mean > 0 ? sqrt(fmax(0, squares / gaps - mean * mean)) / mean : NAN;
}

static uint64_t from_last(const struct seen *seen, size_t at, size_t before)
{
	for (size_t i = at; i-- > before;) {
		if (seen[i].stall.state == seen[at].stall.state)
			return seen[at].stall.start_ns - seen[i].stall.start_ns;
	}
	return 0;
}

/* Times of stalls of one row and state beside those of all fragments of the state. */
struct gaps {
	double pairs, follow; /* pairs of stalls, and those with no usual fragment between them */
	double usual_ns, ns;  /* time that as many fragments usually take, and the stalls' */
};

/* Adds the latest stalls of a row, [before, count). */
static void add_gaps(struct gaps *gaps, const struct seen *seen, size_t before, size_t count)
{
	for (size_t i = before + 1; i < count; i++) {
		double gap = (double)from_last(seen, i, before), usual = (double)seen[i].stall.gap_ns;

		if (gap <= 0 || usual <= 0)
			continue;
		gaps->pairs++;
		gaps->follow += gap < FOLLOWS * usual;
		gaps->usual_ns += usual;
		gaps->ns += gap;
	}
}

static int collect(const struct stalls *stalls, const struct stall_kind *kind, size_t rows, struct seen_stalls *all,
		   struct stall_facts *facts)
{
	struct gaps gaps = {0};
	uint64_t unresolved = 0;
	size_t most = 0, may_wait = 0;

	for (uint32_t row = 0; row < rows; row++) {
		const struct stall_row *at = stalls__row(stalls, row, kind->class);
		size_t before = all->count;
		uint64_t n, ns;

		stall_kinds__of_row(stalls, kind, row, &n, &ns);
		for (uint32_t i = 0; n && i < at->latest_count; i++) {
			const struct stall *stall = stalls__latest(at, i);

			if (!stall_kinds__has(kind, stall))
				continue;
			if (grow(&all->items, &all->capacity, all->count + 1, sizeof(*all->items)))
				return -ENOMEM;
			all->items[all->count++] = (struct seen){*stall, row};
			may_wait += stall->may_wait;
		}
		add_gaps(&gaps, all->items, before, all->count);
		facts->rows += all->count > before;
		unresolved += n ? at->unresolved : 0;
		if (all->count - before > most) {
			most = all->count - before;
			facts->regularity = regularity(&all->items[before], most);
		}
	}
	facts->resolved = unresolved <= kind->n;
	facts->follow = gaps.pairs > 0 ? gaps.follow / gaps.pairs : 0;
	facts->may_wait = all->count ? (double)may_wait / (double)all->count : 0;
	facts->often = gaps.ns > 0 ? gaps.usual_ns / gaps.ns : 0;
	return 0;
}

static int compare_sites(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Counts stalls by state. Returns 0 or -ENOMEM. */
static int count_sites(const struct seen_stalls *all, struct stall_facts *facts)
{
	uint32_t *states = calloc(all->count + 1, sizeof(*states));
	size_t used = 0;

	if (!states)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++)
		states[i] = all->items[i].stall.state;
	qsort(states, all->count, sizeof(*states), compare_sites);
	for (size_t i = 0, to; i < all->count; i = to) {
		size_t at;

		for (to = i; to < all->count && states[to] == states[i]; to++)
			;
		facts->site_count += (double)(to - i) >= SHARE_MEANINGFUL * (double)all->count;
		for (at = used; at > 0 && facts->sites[at - 1].stalls < to - i; at--) {
			if (at < STALL_SITES)
				facts->sites[at] = facts->sites[at - 1];
		}
		if (at == STALL_SITES)
			continue;
		facts->sites[at].state = states[i];
		facts->sites[at].stalls = to - i;
		used += used < STALL_SITES;
	}
	free(states);
	return 0;
}

/* How many rows were stalled in the same moment, of all, and of the host of the first. */
struct moment {
	size_t rows, of_host;
};

/* Finds the end of the stalls from `from` on that overlap all: one moment. Sets *moment. */
static size_t end_of_moment(const struct seen_stalls *all, size_t from, const struct stg_job *job, uint32_t *marks,
			    uint32_t number, struct moment *moment)
{
	uint32_t host = job->rows[all->items[from].row].host_number;
	uint64_t end = all->items[from].stall.end_ns;
	size_t to = from;

	*moment = (struct moment){0};
	while (to < all->count && all->items[to].stall.start_ns < end) {
		const struct seen *at = &all->items[to++];

		end = at->stall.end_ns < end ? at->stall.end_ns : end;
		if (marks[at->row] == number)
			continue;
		marks[at->row] = number;
		moment->rows++;
		moment->of_host += job->rows[at->row].host_number == host;
	}
	return to;
}

/* Sets in which second of the minute all moments lay, give or take one. */
static void note_second(struct stall_facts *facts, const uint64_t *starts, size_t count)
{
	double first, least = 0, most = 0;

	facts->second = -1;
	if (count < LEAST_REPEATED || starts[count - 1] - starts[0] < (count - 1) * minute_ns / 2)
		return;
	first = (double)(starts[0] % minute_ns) / (double)second_ns;
	for (size_t i = 1; i < count; i++) {
		double off = (double)(starts[i] % minute_ns) / (double)second_ns - first;

		off -= 60 * round(off / 60);
		least = fmin(least, off);
		most = fmax(most, off);
	}
	if (most - least <= 1)
		facts->second = (int)first;
}

/* The first rows of each host, and in the last place of all hosts; to be freed, NULL when out of memory. */
static uint32_t *count_rows(const struct stg_job *job)
{
	uint32_t *counts = calloc((size_t)job->host_count + 1, sizeof(*counts));

	for (size_t row = 0; counts && row < job->row_count; row++) {
		if (job->rows[row].thread)
			continue;
		counts[job->rows[row].host_number]++;
		counts[job->host_count]++;
	}
	return counts;
}

static bool is_most(size_t rows, uint32_t of)
{
	return of > 1 && (double)rows >= SHARE_OF_PLACE * (double)of;
}

/* Notes a moment; of too many the oldest goes. */
static void note_moment(struct stall_facts *facts, const struct seen *first, const struct seen *last)
{
	if (facts->latest_count == STALL_MOMENTS)
		memmove(&facts->latest[0], &facts->latest[1], --facts->latest_count * sizeof(facts->latest[0]));
	facts->latest[facts->latest_count].begin_ns = first->stall.start_ns;
	facts->latest[facts->latest_count++].end_ns = last->stall.end_ns;
}

/* Finds moments in which most rows of a host, or of the job, were stalled. */
static void find_moments(const struct seen_stalls *all, const struct stg_job *job, const uint32_t *rows,
			 uint32_t *marks, uint64_t *starts, struct stall_facts *facts)
{
	size_t of_job = 0, of_host = 0;
	uint32_t number = 0;

	for (size_t i = 0, to; i < all->count; i = to) {
		struct moment moment;

		starts[number] = all->items[i].stall.start_ns;
		to = end_of_moment(all, i, job, marks, ++number, &moment);
		note_moment(facts, &all->items[i], &all->items[to - 1]);
		of_job += is_most(moment.rows, rows[job->host_count]) ? to - i : 0;
		of_host += is_most(moment.of_host, rows[job->rows[all->items[i].row].host_number]) ? to - i : 0;
	}
	facts->moments = number;
	if ((double)of_job >= SHARE_STEADY * (double)all->count)
		facts->together = STALL_JOB;
	else if ((double)of_host >= SHARE_STEADY * (double)all->count)
		facts->together = STALL_HOST;
	note_second(facts, starts, number);
}

/* Returns 0 or -ENOMEM. */
static int note_moments(const struct seen_stalls *all, const struct stg_job *job, struct stall_facts *facts)
{
	uint32_t *marks = calloc(job->row_count + 1, sizeof(*marks)), *rows = count_rows(job);
	uint64_t *starts = calloc(all->count + 1, sizeof(*starts));
	int error = marks && rows && starts ? 0 : -ENOMEM;

	if (!error)
		find_moments(all, job, rows, marks, starts, facts);
	free(marks);
	free(rows);
	free(starts);
	return error;
}

static void take_exemplars(const struct seen_stalls *all, struct stall_facts *facts)
{
	for (size_t i = all->count; i-- > 0 && facts->exemplar_count < STALL_EXEMPLARS;) {
		facts->exemplar_rows[facts->exemplar_count] = all->items[i].row;
		facts->exemplars[facts->exemplar_count++] = all->items[i].stall;
	}
}

int stall_facts__find(const struct stalls *stalls, const struct stall_kind *kind, const struct stg_job *job,
		      struct stall_facts *facts)
{
	struct seen_stalls all = {0};
	int error;

	*facts = (struct stall_facts){.regularity = NAN, .second = -1};
	error = collect(stalls, kind, job->row_count, &all, facts);
	facts->stalls = all.count;
	if (!error && all.count) {
		qsort(all.items, all.count, sizeof(*all.items), compare_starts);
		error = count_sites(&all, facts);
		if (!error)
			error = note_moments(&all, job, facts);
		take_exemplars(&all, facts);
	}
	free(all.items);
	return error;
}

bool stall_facts__is_noise(const struct stall_facts *facts, bool fixed)
{
	if (!facts->stalls || facts->follow > SHARE_MOST || facts->often > OFTEN)
		return false;
	/* the waits of a sweep depend on how deep in it a rank is, and come as regularly as its steps */
	if (facts->may_wait > SHARE_STEADY || (facts->may_wait > 0 && facts->regularity < IRREGULAR))
		return false;
	if (fixed || facts->site_count > 1)
		return true;
	/* the step of a program that is longer is longer on all ranks, or always on the same one */
	return facts->resolved && facts->often < SELDOM && facts->rows >= LEAST_COMPARED &&
	       (double)facts->moments > SHARE_MOST * (double)facts->stalls;
}

/* Counts the moments of a that begin close to one of b. */
static size_t near_moments(const struct stall_facts *a, const struct stall_facts *b)
{
	size_t count = 0;

	for (size_t i = 0; i < a->latest_count; i++) {
		uint64_t length = a->latest[i].end_ns - a->latest[i].begin_ns;
		bool near = false;

		for (size_t k = 0; k < b->latest_count && !near; k++)
			near = b->latest[k].begin_ns <= a->latest[i].end_ns + length &&
			       b->latest[k].end_ns + length >= a->latest[i].begin_ns;
		count += near;
	}
	return count;
}

static bool may_coincide(const struct stall_facts *facts)
{
	return facts->stalls && facts->follow <= SHARE_MOST && facts->often < SELDOM &&
	       facts->together != STALL_APART && facts->regularity > IRREGULAR;
}

bool stall_facts__coincide(const struct stall_facts *a, const struct stall_facts *b)
{
	return may_coincide(a) && may_coincide(b) && a->together == b->together &&
	       a->sites[0].state != b->sites[0].state &&
	       (double)near_moments(a, b) >= SHARE_STEADY * (double)a->latest_count;
}

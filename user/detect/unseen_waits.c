// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/unseen_waits.h"

#include "base/exact.h"
#include "base/grow.h"
#include "base/table.h"

#include <math.h>

/* What a thread of a team lost in a bin without fragments. */
struct team_loss {
	uint64_t bin;
	uint32_t leader, row;
	double ns;
};

/* What others lost in a bin, what of it is left for computations of a thread within the bin, and what these lost. */
struct demand {
	double lost, most, ns;
};

struct search {
	const struct series_book *book;
	const struct stg_job *job;
	struct team_loss *losses; /* by bin, leader and row */
	size_t loss_count;
	struct table *index; /* of demands, by row and bin */
	struct demand *demands;
	size_t demand_count, demand_capacity;
};

static int compare(const void *a, const void *b)
{
	const struct team_loss *left = a, *right = b;

	if (left->bin != right->bin)
		return left->bin < right->bin ? -1 : 1;
	if (left->leader != right->leader)
		return left->leader < right->leader ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

/* Collects the losses of threads that are not alone in their process. */
static int find_losses(struct search *search, const struct account *account)
{
	const struct stg_job *job = search->job;
	uint32_t *threads = calloc(job->row_count + 1, sizeof(*threads));

	search->losses = calloc(account->count + 1, sizeof(*search->losses));
	if (!threads || !search->losses) {
		free(threads);
		return -ENOMEM;
	}
	for (size_t row = 0; row < job->row_count; row++)
		threads[job->rows[row].leader]++;
	for (size_t i = 0; i < account->count; i++) {
		const struct account_record *record = &account->records[i];
		double unseen = (double)VAPRO_BIN_NS - (double)record->seen_ns - (double)record->past_seen_ns;
		double time, lost;

		if (record->row == SERIES_NONE || threads[job->rows[record->row].leader] < 2 || unseen <= 0 ||
		    !account__is_loss(record, search->book->config, &time, &lost))
			continue;
		search->losses[search->loss_count++] = (struct team_loss){record->bin, job->rows[record->row].leader,
									  record->row, lost * fmin(1, unseen / time)};
	}
	free(threads);
	if (search->loss_count)
		qsort(search->losses, search->loss_count, sizeof(*search->losses), compare);
	return 0;
}

/* What other threads of a row's process lost in a bin. */
static double lost_by_others(const struct search *search, uint32_t row, uint64_t bin)
{
	const struct team_loss wanted = {.bin = bin, .leader = search->job->rows[row].leader};
	size_t low = 0, high = search->loss_count;
	double sum = 0;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&search->losses[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low;
	     i < search->loss_count && search->losses[i].bin == bin && search->losses[i].leader == wanted.leader; i++)
		sum += search->losses[i].row == row ? 0 : search->losses[i].ns;
	return sum;
}

/* The loss of a judged computation that nothing attributes. Sleep may be a wait for another thread, but not for IO. */
static double unexplained(const struct search *search, const struct bundle_rec *rec)
{
	struct loss loss;

	if (!rec->covered || rec->attributed_only || rec->no_reference ||
	    search->book->series[rec->series].class != VAPRO_COMPUTATION)
		return 0;
	loss = bundle_rec__loss(rec);
	return fmax(0,
		    loss.lost - loss.cpu - loss.frequency - fmin(loss.blocked, (double)rec->factor[VAPRO_BLOCKED_IO]));
}

/* The demand of a row in a bin, which is made where others lost something; NULL where not. */
static int demand_of(struct search *search, uint32_t row, uint64_t bin, struct demand **demand)
{
	uint32_t at;
	double lost;

	*demand = NULL;
	if (!table__get(search->index, row, bin, &at)) {
		lost = lost_by_others(search, row, bin);
		if (lost <= 0)
			return 0;
		at = (uint32_t)search->demand_count;
		if (grow(&search->demands, &search->demand_capacity, search->demand_count + 1,
			 sizeof(*search->demands)) ||
		    table__put(search->index, row, bin, at))
			return -ENOMEM;
		search->demands[search->demand_count++] = (struct demand){.lost = lost, .most = lost};
	}
	*demand = &search->demands[at];
	return 0;
}

/* The part of what others lost in a bin that a fragment of several bins may have waited for, by its time there. */
static double part_of(const struct bundle_rec *rec, uint64_t bin, double lost_by_others)
{
	double length = (double)(rec->end_ns - rec->start_ns);

	return exact__ns(lost_by_others * bundle_rec__share(rec, bin) * length / (double)VAPRO_BIN_NS);
}

/* A fragment of several bins has a part of each for itself; *most: the sum of the parts. */
static int take_parts(struct search *search, const struct bundle_rec *rec, bool take, double *most)
{
	uint32_t row = search->book->series[rec->series].row;
	uint64_t from = search->losses[0].bin, to = search->losses[search->loss_count - 1].bin;
	uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);

	*most = 0;
	for (uint64_t bin = first < from ? from : first; bin <= last && bin <= to; bin++) {
		struct demand *demand;
		double part;

		if (demand_of(search, row, bin, &demand))
			return -ENOMEM;
		part = demand ? part_of(rec, bin, demand->lost) : 0;
		*most += part;
		if (demand && take)
			demand->most -= part;
	}
	return 0;
}

/* Bundles within one bin share what is left there: their order does not matter. */
static int add_demands(struct search *search, const struct bundle_rec *recs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double ns = unexplained(search, &recs[i]);
		uint64_t bin = bundle_rec__bin(&recs[i]);
		struct demand *demand;
		double most;

		if (ns <= 0)
			continue;
		if (bundle_rec__first_bin(&recs[i]) < bin) {
			if (take_parts(search, &recs[i], true, &most))
				return -ENOMEM;
			continue;
		}
		if (demand_of(search, search->book->series[recs[i].series].row, bin, &demand))
			return -ENOMEM;
		if (demand)
			demand->ns += exact__ns(ns);
	}
	return 0;
}

static int enter_waits(struct search *search, struct bundle_rec *recs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct bundle_rec *rec = &recs[i];
		double ns = unexplained(search, rec), waited = 0, most;
		uint64_t bin = bundle_rec__bin(rec);
		uint32_t at;

		if (ns <= 0)
			continue;
		if (bundle_rec__first_bin(rec) < bin) {
			if (take_parts(search, rec, false, &most))
				return -ENOMEM;
			waited = fmin(ns, most);
		} else if (table__get(search->index, search->book->series[rec->series].row, bin, &at)) {
			const struct demand *demand = &search->demands[at];

			waited = ns * fmin(1, fmax(0, demand->most) / fmax(1, demand->ns));
		}
		if (waited <= 0)
			continue;
		rec->waited_ns = (float)waited;
		rec->reference += (float)(waited / rec->n);
		rec->disturbed = 1;
	}
	return 0;
}

int unseen_waits__find(const struct account *account, const struct series_book *book, const struct stg_job *job,
		       struct bundle_rec *recs, size_t count, struct bundle_rec *open, size_t open_count)
{
	struct search search = {.book = book, .job = job};
	int error = 0;

	if (!account->count)
		return 0;
	error = find_losses(&search, account);
	if (error || !search.loss_count)
		goto cleanup;
	error = -ENOMEM;
	search.index = table__new();
	if (search.index && !add_demands(&search, recs, count) && !add_demands(&search, open, open_count) &&
	    !enter_waits(&search, recs, count) && !enter_waits(&search, open, open_count))
		error = 0;
cleanup:
	table__free(search.index);
	free(search.demands);
	free(search.losses);
	return error;
}

int unseen_waits__tally(struct variance_book *book, const struct heatmap *map, const struct series_book *series,
			const struct bundle_rec *recs, size_t count, uint64_t end, uint64_t retire)
{
	for (size_t i = 0; i < count; i++) {
		const struct bundle_rec *rec = &recs[i];
		bool open = rec->flags & VAPRO_BUNDLE_OPEN;
		uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);

		if (rec->waited_ns <= 0 || last < map->begin || (last >= end && !open))
			continue;
		for (uint64_t bin = first < map->begin ? map->begin : first; bin <= last && bin < map->end; bin++) {
			uint32_t owner = heatmap__owner(map, series->series[rec->series].row, bin, VAPRO_COMMUNICATION);
			struct variance *variance = owner ? variance__find(book, owner) : NULL;

			if (variance &&
			    tally__add_wait(!open && last < retire ? &variance->retiring : &variance->staying, rec,
					    bundle_rec__share(rec, bin)))
				return -ENOMEM;
		}
	}
	return 0;
}

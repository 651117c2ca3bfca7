/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splits the excess of calls into transfer and the rest, by operation or by bin, and notes who came last to an
 * operation: what is known of a late rank whose work is not. See waiting.h.
 */
#include "detect/waiting_private.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OWN_BUCKETS = 2048 };	      /* buckets of a histogram of calls, whose last one is hours long */
#define WORTH_NS (VAPRO_BIN_NS / 100) /* between the first and the last member: less is no wait */

static int compare_starts(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/*
 * Notes who came last to an operation, by the single calls of its members in the order of their ends. missing: the row
 * whose call was too short to be single, since it came last, + 1; 0: none. Returns 0 or -ENOMEM.
 */
static int note_members(struct waiting *waiting, const struct single *in, size_t count, uint32_t missing)
{
	struct last_arrival last = {.bin = in->item->bin, .row = in->item->row};
	uint64_t first_ns = UINT64_MAX, last_ns = 0;
	size_t members = count + (missing > 0);

	if (grow_untouched(&waiting->starts, &waiting->start_capacity, members, sizeof(*waiting->starts)) ||
	    grow_untouched(&waiting->last_arrivals, &waiting->last_arrival_capacity, waiting->last_arrival_count + 1,
			   sizeof(*waiting->last_arrivals)))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		uint64_t start_ns = in[i].item->start_ns;

		waiting->starts[i] = start_ns;
		first_ns = start_ns < first_ns ? start_ns : first_ns;
		if (start_ns > last_ns) {
			last_ns = start_ns;
			last.row = in[i].item->row;
		}
	}
	/* its call was short: it came when the others left */
	if (missing) {
		last_ns = waiting->starts[count] = in[count - 1].item->end_ns;
		last.row = missing - 1;
	}
	if (last_ns >= first_ns + WORTH_NS) {
		qsort(waiting->starts, members, sizeof(*waiting->starts), compare_starts);
		last.late_ns = last_ns - waiting->starts[(members - 1) / 2];
	}
	waiting->last_arrivals[waiting->last_arrival_count++] = last;
	return 0;
}

static bool alive(const struct stg_row *row, uint64_t bin)
{
	uint64_t from = bin * VAPRO_BIN_NS, to = from + VAPRO_BIN_NS;

	return row->from_ns && row->from_ns < to && (!row->to_ns || row->to_ns > from);
}

/* Whether a row is a member. Every rank belongs to the world, seen calling or not; its threads do not. */
static bool belongs(const struct group *group, const struct stg_job *job, size_t row)
{
	return group->uses[row] || (group->id == STG_WORLD && !job->rows[row].thread);
}

bool waiting__is_member(const struct waiting *waiting, const struct stg_job *job, uint32_t id, uint32_t row)
{
	for (size_t i = 1; i < waiting->group_count; i++) {
		if (waiting->groups[i].id == id)
			return belongs(&waiting->groups[i], job, row);
	}
	return belongs(&waiting->groups[0], job, row);
}

/* Whether a row is of the communicator of another one, which is a member. */
static bool is_with(const struct group *group, const struct stg_job *job, uint32_t row, uint32_t other)
{
	return belongs(group, job, row) && (!group->divided || group->of[row] == group->of[other]);
}

/*
 * Threads of a process that wait for each other are a group per process, which goes by its leader; others are one, or
 * one per communicator.
 */
static uint32_t leader_of(const struct group *group, const struct stg_job *job, uint32_t row)
{
	if (group->divided)
		return group->of[row];
	return group->id == STG_PROCESS ? job->rows[row].leader : 0;
}

/* Whether rows of one group may wait for different ones. */
static bool is_several(const struct group *group)
{
	return group->divided || group->id == STG_PROCESS;
}

int waiting__link(struct waiting *waiting, const struct stg_job *job)
{
	struct followers *followers = &waiting->followers;

	if (grow(&followers->first, &followers->first_capacity, waiting->rows, sizeof(*followers->first)) ||
	    grow(&followers->next, &followers->next_capacity, waiting->rows, sizeof(*followers->next)))
		return -ENOMEM;
	memset(followers->first, 0, waiting->rows * sizeof(*followers->first));
	for (uint32_t row = (uint32_t)waiting->rows; row-- > 0;) {
		uint32_t leader = job->rows[row].leader;

		followers->next[row] = followers->first[leader];
		followers->first[leader] = row + 1;
	}
	return 0;
}

/* The first row that may be in a row's group, and those after it, + 1; 0 is the end. */
static uint32_t first_member(const struct waiting *waiting, const struct group *group, const struct stg_job *job,
			     uint32_t of)
{
	return group->id == STG_PROCESS ? waiting->followers.first[job->rows[of].leader] : waiting->rows > 0;
}

static uint32_t next_member(const struct waiting *waiting, const struct group *group, uint32_t at)
{
	return group->id == STG_PROCESS ? waiting->followers.next[at - 1] : at < waiting->rows ? at + 1 : 0;
}

/* Members of a row's group that are alive in a bin. */
static size_t members(const struct waiting *waiting, const struct group *group, const struct stg_job *job, uint32_t of,
		      size_t b)
{
	uint32_t count = 0;

	if (group->divided)
		return group->sizes[group->of[of]];
	if (group->id != STG_PROCESS && group->alive[b])
		return group->alive[b] - 1;
	for (uint32_t at = first_member(waiting, group, job, of); at; at = next_member(waiting, group, at))
		count += belongs(group, job, at - 1) && alive(&job->rows[at - 1], waiting->begin + b);
	if (group->id != STG_PROCESS)
		group->alive[b] = count + 1;
	return count;
}

/* What a row lost in a bin, for which others wait: what the kernel attributes, or what is much of its computation. */
static double lost_in(const struct heatmap *map, uint32_t row, uint64_t bin)
{
	struct cell cell = heatmap__cell(map, row, bin, VAPRO_COMPUTATION);
	double cpu = (double)cell.closed.cpu + cell.open.cpu, lost = cell__lost(&cell);

	return lost >= SHARE_MEANINGFUL * cell__dur(&cell) ? fmax(lost, cpu) : cpu;
}

/*
 * Completes the least excess of the members of a row's group in a bin. A member that was in no such call has none: it
 * is 0 then. A member may have waited for what others lost, but for nothing of its own: of those with the least excess,
 * the one that lost most itself waited least. Where members waited for each other in turn, all have an excess that is
 * no transfer: it is one where it is most of the mean excess that no loss explains.
 */
static void finalize(const struct waiting *waiting, const struct group *group, const struct stg_job *job, uint32_t row,
		     size_t b, struct least *least)
{
	uint64_t bin = waiting->begin + b;
	double all = 0, most = 0, sum = 0;

	least->known = true;
	if (members(waiting, group, job, row, b) > least->rows) {
		least->ns = 0;
		return;
	}
	for (uint32_t at = first_member(waiting, group, job, row); at; at = next_member(waiting, group, at)) {
		double own;

		if (!is_with(group, job, at - 1, row) || !alive(&job->rows[at - 1], bin))
			continue;
		own = lost_in(waiting->map, at - 1, bin);
		all += own;
		sum += waiting->sums[at - 1];
		if (waiting->sums[at - 1] <= RATIO_ALIKE * least->ns)
			most = fmax(most, waiting->sums[at - 1] + own);
	}
	least->ns = fmax(0, fmin(least->ns, most - all));
	if (least->ns < SHARE_MOST * (sum / (double)least->rows - all))
		least->ns = 0;
}

static int compare_singles(const void *a, const void *b)
{
	const struct single *left = a, *right = b;

	if (left->leader != right->leader)
		return left->leader < right->leader ? -1 : 1;
	return (left->at > right->at) - (left->at < right->at);
}

/* The single calls of a call-site in the order of their ends; of several processes or communicators one by one. */
static struct single *singles_of(const struct waiting *waiting, const struct stg_job *job, const struct call_site *site,
				 size_t *count)
{
	const struct group *group = &waiting->groups[site->group];
	struct single *singles = calloc(site->singles + 1, sizeof(*singles));

	*count = 0;
	for (size_t i = site->begin; singles && i < site->begin + site->count; i++) {
		struct excess *item = waiting__item(waiting, i);

		if (item->n == 1) {
			singles[*count] = (struct single){item, leader_of(group, job, item->row), (uint32_t)*count};
			++*count;
		}
	}
	if (singles && is_several(group))
		qsort(singles, *count, sizeof(*singles), compare_singles);
	return singles;
}

/*
 * What a single call of an operation took, ns, without time in which others had its CPU: it may have been over before
 * that, but not before the first rank left that it found there, since what is late comes with it. While a rank is
 * stopped or throttled the others wait for it: that is no transfer.
 */
static double duration_of(const struct excess *item, const struct single *in, size_t count)
{
	double ns = item->reference_ns + item->ns;
	size_t low = 0;

	if (!(item->cpu_ns > 0))
		return ns;
	for (size_t high = count; low < high;) {
		size_t middle = (low + high) / 2;

		if (in[middle].item->end_ns <= item->start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	/* it is one of them itself */
	return low < count ? fmax(ns, (double)(in[low].item->end_ns - item->start_ns) - item->absent_ns) : ns;
}

/*
 * What a call of a site takes when no peer is late, ns; 0: not known. One call in each operation is of the last of so
 * many members: the middle one of that share of all, the shortest ones.
 */
static double own_part(const struct series_book *book, const struct call_site *site, size_t members)
{
	struct histogram_bucket all[OWN_BUCKETS] = {0};
	double count = 0, below = 0;

	for (uint32_t i = book->workloads[site->workload].series; i != SERIES_NONE; i = book->series[i].next) {
		const struct histogram *durations = &book->series[i].cpu;

		count += durations->n;
		for (size_t b = 0; b < durations->count && durations->buckets[b].index < OWN_BUCKETS; b++) {
			all[durations->buckets[b].index].n += durations->buckets[b].n;
			all[durations->buckets[b].index].sum_ns += durations->buckets[b].sum_ns;
		}
	}
	if (!members || count < LEAST_MEMBERS * (double)members)
		return 0;
	for (size_t b = 0; b < OWN_BUCKETS; b++) {
		below += all[b].n;
		if (all[b].n > 0 && below >= count / (2 * (double)members))
			return all[b].sum_ns / all[b].n;
	}
	return 0;
}

/* Whether calls are one operation: of a collective that ranks leave together, calls that end apart are several. */
static bool is_one(const struct single *in, size_t count, const struct call_site *site)
{
	struct ends ends = {0};

	for (size_t i = 0; site->together && i < count; i++)
		waiting__add_end(&ends, in[i].item->start_ns, in[i].item->end_ns, in[i].item->cpu_ns);
	return !site->together || waiting__at_once(&ends);
}

/*
 * Sets the transfer of an operation that all members are in. The reference of a call contains the usual wait for
 * others. The last one's call, which did not wait, is compared with what calls take without.
 */
static void finish(const struct single *in, size_t count, double own_ns)
{
	double least = INFINITY;

	for (size_t i = 0; i < count; i++) {
		const struct excess *item = in[i].item;
		/* after a long fault most calls are slow: then the reference is what they take without */
		double own = fmin(own_ns, item->reference_ns);

		least = fmin(least, own > 0 ? duration_of(item, in, count) - own : item->ns);
	}
	for (size_t i = 0; i < count; i++)
		in[i].item->transfer_ns = fmax(0, fmin(least, in[i].item->ns));
}

/*
 * Sets the transfers of calls that are no one operation. All ranks that share a label are in them: they are operations
 * of several communicators, each of which its ranks leave together. A rank that left alone, or whose CPU others had,
 * may be of any of them: then nothing is known.
 */
static void finish_parts(const struct single *in, size_t count, double own_ns)
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t from = 0, to; from < count; from = to) {
			struct ends ends = {0};

			for (to = from; to < count; to++) {
				const struct excess *item = in[to].item;
				struct ends more = ends;

				waiting__add_end(&more, item->start_ns, item->end_ns, 0);
				if (item->cpu_ns > 0 || !waiting__at_once(&more))
					break;
				ends = more;
			}
			if (to - from < 2)
				return;
			if (pass)
				finish(&in[from], to - from, own_ns);
		}
	}
}

/* The member that made no single call in the latest operation, + 1; 0: none. */
static uint32_t missing_member(const struct waiting *waiting, const struct group *group, const struct stg_job *job,
			       const struct excess *item)
{
	for (uint32_t at = first_member(waiting, group, job, item->row); at; at = next_member(waiting, group, at)) {
		if (waiting->last[at - 1] != waiting->operation && is_with(group, job, at - 1, item->row) &&
		    alive(&job->rows[at - 1], waiting->begin + item->bin))
			return at;
	}
	return 0;
}

/* Notes who came last, where at most one member made no single call. Returns 0 or -ENOMEM. */
static int note_last(struct waiting *waiting, const struct stg_job *job, const struct group *group,
		     const struct single *in, size_t count, size_t wanted)
{
	if (group->id == STG_PROCESS || count + 1 < wanted || wanted < 2)
		return 0;
	return note_members(waiting, in, count, count < wanted ? missing_member(waiting, group, job, in->item) : 0);
}

/*
 * Whether the single call at `to` is of the operation of those from `from` on: it began before the first of them had
 * ended. Ranks that exchange with their neighbours leave one after the other: there it began before the end of the one
 * before, or so did the next one, which waited for it.
 */
static bool goes_on(const struct waiting *waiting, const struct single *singles, size_t count, size_t from, size_t to,
		    bool together)
{
	uint64_t end_ns = singles[together ? from : to - 1].item->end_ns;
	const struct single *next = &singles[to + 1];

	if (singles[to].item->start_ns < end_ns)
		return true;
	return !together && to + 1 < count && next->leader == singles[to].leader && next->item->start_ns < end_ns &&
	       next->item->row != singles[to].item->row && waiting->last[next->item->row] != waiting->operation;
}

int waiting__split_singles(struct waiting *waiting, const struct stg_job *job, const struct series_book *book,
			   const struct call_site *site)
{
	const struct group *group = &waiting->groups[site->group];
	double own_ns = -1;
	size_t count, wanted = 0;
	struct single *singles = singles_of(waiting, job, site, &count);
	const struct single *counted = NULL;
	int error = 0;

	if (!singles)
		return -ENOMEM;
	for (size_t from = 0, to; from < count && !error; from = to) {
		const struct single *first = &singles[from];
		bool one, all;

		waiting->last[first->item->row] = ++waiting->operation;
		for (to = from + 1; to < count; to++) {
			const struct excess *item = singles[to].item;

			if (singles[to].leader != first->leader || waiting->last[item->row] == waiting->operation ||
			    !goes_on(waiting, singles, count, from, to, site->together))
				break;
			waiting->last[item->row] = waiting->operation;
		}
		/* Members are counted once per bin. */
		if (!counted || counted->leader != first->leader || counted->item->bin != first->item->bin)
			wanted = members(waiting, group, job, first->item->row, first->item->bin);
		counted = first;
		one = is_one(first, to - from, site);
		all = to - from >= wanted; /* else the last one's call was too short to be single */
		if (own_ns < 0 && all)
			own_ns = own_part(book, site, wanted);
		if (one && all)
			finish(first, to - from, own_ns);
		else if (all && group->id != STG_WORLD && !group->divided)
			finish_parts(first, to - from, own_ns);
		if (one)
			error = note_last(waiting, job, group, first, to - from, wanted);
	}
	free(singles);
	return error;
}

/*
 * Splits merged calls of one call-site that end in one bin, [from, to) of the order: the least excess of any member
 * is the transfer of each.
 */
static void split_merged_in(struct waiting *waiting, const struct stg_job *job, const struct group *group, size_t from,
			    size_t to)
{
	/* Mostly a member has no excess. */
	if (!is_several(group) && to - from < members(waiting, group, job, 0, waiting__item(waiting, from)->bin))
		return;
	waiting->operation++;
	for (size_t i = from; i < to; i++) {
		const struct excess *item = waiting__item(waiting, i);
		uint32_t row = item->row;

		if (waiting->last[row] != waiting->operation) {
			waiting->last[row] = waiting->operation;
			waiting->sums[row] = 0;
			waiting->least[leader_of(group, job, row)] = (struct least){.ns = INFINITY};
		}
		waiting->sums[row] += item->n > 1 ? item->ns : 0;
	}
	waiting->operation++;
	for (size_t i = from; i < to; i++) {
		uint32_t row = waiting__item(waiting, i)->row;
		struct least *least;

		if (waiting->last[row] == waiting->operation)
			continue;
		waiting->last[row] = waiting->operation;
		least = &waiting->least[leader_of(group, job, row)];
		if (!(waiting->sums[row] > 0))
			continue;
		least->rows++;
		least->ns = fmin(least->ns, waiting->sums[row]);
	}
	for (size_t i = from; i < to; i++) {
		struct excess *item = waiting__item(waiting, i);
		struct least *least = &waiting->least[leader_of(group, job, item->row)];

		if (!least->known)
			finalize(waiting, group, job, item->row, item->bin, least);
		if (least->ns <= 0 && !is_several(group))
			return;
		if (item->n > 1 && waiting->sums[item->row] > 0)
			item->transfer_ns = item->ns * fmin(1, least->ns / waiting->sums[item->row]);
	}
}

void waiting__split_merged(struct waiting *waiting, const struct stg_job *job, const struct call_site *site)
{
	size_t end = site->begin + site->count;

	for (size_t from = site->begin, to; from < end; from = to) {
		to = waiting__bin_end(waiting, from, end);
		split_merged_in(waiting, job, &waiting->groups[site->group], from, to);
	}
}

void waiting__split_one_sided(struct waiting *waiting, const struct call_site *site)
{
	for (size_t i = site->begin; i < site->begin + site->count; i++) {
		struct excess *item = waiting__item(waiting, i);

		if (item->n)
			item->transfer_ns = fmax(0, item->ns - item->path_ns);
	}
}

static int compare_last(const void *a, const void *b)
{
	const struct last_arrival *left = a, *right = b;

	if (left->bin != right->bin)
		return left->bin < right->bin ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

void waiting__write_arrivals(struct waiting *waiting)
{
	const struct last_arrival *items = waiting->last_arrivals;
	size_t count = waiting->last_arrival_count;

	if (count)
		qsort(waiting->last_arrivals, count, sizeof(*items), compare_last);
	for (size_t i = 0, end; i < count; i = end) {
		struct heatmap_arrivals most = {0}, row = {0};

		for (end = i; end < count && items[end].bin == items[i].bin; end++) {
			if (items[end].row != row.row || end == i)
				row = (struct heatmap_arrivals){.row = items[end].row};
			row.last += items[end].late_ns > 0;
			row.late_ns += items[end].late_ns;
			if (row.late_ns > most.late_ns)
				most = row;
		}
		most.operations = (uint32_t)(end - i);
		/* the other bins have only the calls that became known now */
		if (items[i].bin >= waiting->before_view)
			heatmap__bin(waiting->map, waiting->begin + items[i].bin)->arrivals = most;
	}
}

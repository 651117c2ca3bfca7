/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/waiting_private.h"

#include "model/grow.h"

#include <math.h>

#define REACH_FRAGMENTS 3
#define REACH_MOST 50 /* bins before an excess, in which a rank may have become late */

struct waiting *waiting__new(void)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));

	if (waiting)
		waiting->group_count = 1; /* the first is the job */
	return waiting;
}

void waiting__free(struct waiting *waiting)
{
	if (!waiting)
		return;
	for (size_t i = 0; i < waiting->group_count; i++) {
		free(waiting->groups[i].uses);
	}
	free(waiting->items);
	free(waiting->last);
	free(waiting->late);
	free(waiting->paths);
	free(waiting->sums);
	free(waiting->least);
	free(waiting);
}

size_t waiting__bytes(const struct waiting *waiting)
{
	size_t bytes = sizeof(*waiting) + waiting->item_capacity * sizeof(*waiting->items);

	for (size_t i = 0; i < waiting->group_count; i++)
		bytes += waiting->groups[i].uses_capacity;
	return bytes;
}

static int prepare(struct waiting *waiting, struct group *group)
{
	return grow(&group->uses, &group->uses_capacity, waiting->rows, sizeof(*group->uses));
}

int waiting__begin(struct waiting *waiting, struct heatmap *map, size_t rows, uint64_t view, uint64_t end)
{
	waiting->rows = rows;
	waiting->view = view < map->begin ? map->begin : view;
	waiting->bins = end > waiting->view ? end - waiting->view : 0;
	waiting->map = map;
	waiting->item_count = 0;
	waiting->reach = 0;
	for (size_t i = 0; i < waiting->group_count; i++) {
		if (prepare(waiting, &waiting->groups[i]))
			return -ENOMEM;
	}
	return 0;
}

static struct group *find_group(struct waiting *waiting, uint32_t id)
{
	size_t taken = 1; /* by groups of ranks */

	if (id == STG_WORLD)
		return &waiting->groups[0];
	for (size_t i = 1; i < waiting->group_count; i++) {
		if (waiting->groups[i].id == id)
			return &waiting->groups[i];
		taken += waiting->groups[i].id != STG_PROCESS;
	}
	/* A place is kept for threads: they must not be mixed with ranks. */
	if (taken == GROUPS_MAX - 1 && id != STG_PROCESS)
		return &waiting->groups[0];
	waiting->groups[waiting->group_count].id = id;
	if (prepare(waiting, &waiting->groups[waiting->group_count]))
		return NULL;
	return &waiting->groups[waiting->group_count++];
}

int waiting__add(struct waiting *waiting, const struct kept *kept, const struct series *series, uint32_t group_id,
		 uint64_t from)
{
	struct group *group = find_group(waiting, group_id);
	uint64_t first = kept__first_bin(kept), last = kept__bin(kept);
	struct loss loss = kept__loss(kept);
	double excess = fmax(0, loss.lost - loss.cpu);
	bool open = kept->flags & VAPRO_BUNDLE_OPEN;

	if (!group)
		return -ENOMEM;
	group->uses[series->row] = 1;
	if (from < waiting->map->begin)
		from = waiting->map->begin;
	for (uint64_t bin = first < from ? from : first; bin <= last && bin < waiting->view; bin++) {
		if (heatmap__add_wait(waiting->map, open ? HEATMAP_OPEN_LATE : HEATMAP_LATE, series->row, bin,
				      (float)(excess * kept__share(kept, bin))))
			return -ENOMEM;
	}
	if (last < waiting->view || last < from)
		return 0;
	if (grow(&waiting->items, &waiting->item_capacity, waiting->item_count + 1, sizeof(*waiting->items)))
		return -ENOMEM;
	waiting->items[waiting->item_count++] = (struct excess){
	    .group = (uint32_t)(group - waiting->groups),
	    .workload = series->workload,
	    .row = series->row,
	    .n = open ? 0 : kept->n,
	    .start_ns = kept->start_ns,
	    .end_ns = kept->end_ns,
	    .ns = excess,
	    .reference_ns = (double)kept->reference * kept->n,
	};
	return 0;
}

void waiting__reach(struct waiting *waiting, double ns)
{
	/* A rank that lost time goes on with its work and is waited for later. */
	size_t bins = 2 + (size_t)(REACH_FRAGMENTS * ns / (double)VAPRO_BIN_NS);

	bins = bins > REACH_MOST ? REACH_MOST : bins;
	waiting->reach = bins > waiting->reach ? bins : waiting->reach;
}

static bool alive(const struct stg_row *row, uint64_t bin)
{
	uint64_t from = bin * VAPRO_BIN_NS, to = from + VAPRO_BIN_NS;

	return row->from_ns && row->from_ns < to && (!row->to_ns || row->to_ns > from);
}

/* Whether a row is a member. Every rank belongs to the world, whether it was seen calling or not; its threads do not.
 */
static bool belongs(const struct group *group, const struct stg_job *job, size_t row)
{
	return group->uses[row] || (group->id == STG_WORLD && !job->rows[row].thread);
}

/* The bins of the view that an excess lies in, relative to it: [*from, *to). */
static void bins_of(const struct waiting *waiting, const struct excess *item, size_t *from, size_t *to)
{
	uint64_t last = (item->end_ns > item->start_ns ? item->end_ns - 1 : item->end_ns) / VAPRO_BIN_NS;
	uint64_t first = item->n > 1 ? last : item->start_ns / VAPRO_BIN_NS;

	*from = first > waiting->view ? first - waiting->view : 0;
	*to = last + 1 < waiting->view + waiting->bins ? last + 1 - waiting->view : waiting->bins;
}

static double share_of(const struct waiting *waiting, const struct excess *item, size_t b)
{
	struct kept kept = {.start_ns = item->start_ns, .end_ns = item->end_ns, .n = item->n > 1 ? item->n : 1};

	return kept__share(&kept, waiting->view + b);
}

size_t waiting__end_bin(const struct waiting *waiting, const struct excess *item)
{
	size_t from, to;

	bins_of(waiting, item, &from, &to);
	return to ? to - 1 : 0;
}

static int compare_ends(const void *a, const void *b)
{
	const struct excess *left = a, *right = b;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	if (left->workload != right->workload)
		return left->workload < right->workload ? -1 : 1;
	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

/* Threads of a process that wait for each other are a group per process, which goes by its leader; others are one. */
static uint32_t leader_of(const struct group *group, const struct stg_job *job, uint32_t row)
{
	return group->id == STG_PROCESS ? job->rows[row].leader : 0;
}

/* Members of a row's group that are alive in a bin, and what the kernel attributes of their computation in it. */
static size_t members(const struct waiting *waiting, const struct group *group, const struct stg_job *job, uint32_t of,
		      uint64_t bin, double *attributed)
{
	uint32_t leader = leader_of(group, job, of);
	size_t count = 0;

	*attributed = 0;
	for (uint32_t row = 0; row < waiting->rows; row++) {
		struct cell cell;

		if (leader_of(group, job, row) != leader || !belongs(group, job, row) || !alive(&job->rows[row], bin))
			continue;
		count++;
		cell = heatmap__cell(waiting->map, row, bin, VAPRO_COMPUTATION);
		*attributed += (double)cell.closed.cpu + cell.open.cpu;
	}
	return count;
}

/* A member that was in no such call has no excess: the least is 0 then. */
static void settle(const struct waiting *waiting, const struct group *group, const struct stg_job *job, uint32_t row,
		   uint64_t bin, struct least *least)
{
	double attributed;

	if (members(waiting, group, job, row, bin, &attributed) > least->rows)
		least->ns = 0;
	least->ns = fmax(0, least->ns - attributed);
	least->known = true;
}

/* One operation: its transfer, where all members are in it; else the last one's call was too short to be single. */
static void finish(struct excess **in, size_t count, size_t wanted)
{
	double least = INFINITY;

	for (size_t i = 0; i < count; i++)
		least = fmin(least, in[i]->ns);
	for (size_t i = 0; count >= wanted && i < count; i++)
		in[i]->transfer_ns = least;
}

/* Single calls of one call-site, [from, to) of the items by their ends: those that overlap are one operation. */
static int split_singles(struct waiting *waiting, const struct stg_job *job, size_t from, size_t to)
{
	const struct group *group = &waiting->groups[waiting->items[from].group];
	struct excess **in = calloc(waiting->rows + 1, sizeof(*in));
	uint64_t first_end = 0;
	double unused;
	size_t count = 0, wanted = 0, wanted_bin = SIZE_MAX;

	if (!in)
		return -ENOMEM;
	for (size_t i = from; i <= to; i++) {
		struct excess *item = i < to ? &waiting->items[i] : NULL;

		if (item && item->n != 1)
			continue;
		if (count && (!item || item->start_ns >= first_end || waiting->last[item->row] == waiting->operation)) {
			size_t b = waiting__end_bin(waiting, in[0]);

			if (b != wanted_bin)
				wanted = members(waiting, group, job, in[0]->row, waiting->view + b, &unused);
			wanted_bin = b;
			finish(in, count, wanted);
			count = 0;
		}
		if (!item)
			break;
		if (!count) {
			first_end = item->end_ns;
			waiting->operation++;
		}
		waiting->last[item->row] = waiting->operation;
		in[count++] = item;
	}
	free(in);
	return 0;
}

/* Merged calls of one call-site that end in one bin, [from, to): the least excess of any member is everybody's. */
static void split_merged_in(struct waiting *waiting, const struct stg_job *job, size_t from, size_t to)
{
	const struct group *group = &waiting->groups[waiting->items[from].group];
	uint64_t bin = waiting->view + waiting__end_bin(waiting, &waiting->items[from]);

	waiting->operation++;
	for (size_t i = from; i < to; i++) {
		uint32_t row = waiting->items[i].row;

		waiting->sums[row] = 0;
		waiting->least[leader_of(group, job, row)] = (struct least){.ns = INFINITY};
	}
	for (size_t i = from; i < to; i++)
		waiting->sums[waiting->items[i].row] += waiting->items[i].n > 1 ? waiting->items[i].ns : 0;
	for (size_t i = from; i < to; i++) {
		uint32_t row = waiting->items[i].row;
		struct least *least = &waiting->least[leader_of(group, job, row)];

		if (waiting->sums[row] > 0)
			least->ns = fmin(least->ns, waiting->sums[row]);
		least->rows += waiting->sums[row] > 0 && waiting->last[row] != waiting->operation;
		waiting->last[row] = waiting->operation;
	}
	for (size_t i = from; i < to; i++) {
		struct least *least = &waiting->least[leader_of(group, job, waiting->items[i].row)];
		struct excess *item = &waiting->items[i];

		if (!least->known)
			settle(waiting, group, job, item->row, bin, least);
		if (item->n > 1 && waiting->sums[item->row] > 0)
			item->transfer_ns = item->ns * fmin(1, least->ns / waiting->sums[item->row]);
	}
}

static void split_merged(struct waiting *waiting, const struct stg_job *job, size_t from, size_t to)
{
	for (size_t next; from < to; from = next) {
		size_t b = waiting__end_bin(waiting, &waiting->items[from]);

		for (next = from + 1; next < to && waiting__end_bin(waiting, &waiting->items[next]) == b; next++)
			;
		split_merged_in(waiting, job, from, next);
	}
}

static int write_cells(struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->item_count; i++) {
		const struct excess *item = &waiting->items[i];
		double late = item->ns - item->transfer_ns - item->path_ns;
		size_t from, to;

		bins_of(waiting, item, &from, &to);
		for (size_t b = from; b < to; b++) {
			double share = share_of(waiting, item, b);
			uint64_t bin = waiting->view + b;

			if ((item->transfer_ns > 0 && heatmap__add_wait(waiting->map, HEATMAP_TRANSFER, item->row, bin,
									(float)(share * item->transfer_ns))) ||
			    (item->path_ns > 0 && heatmap__add_wait(waiting->map, HEATMAP_PATH, item->row, bin,
								    (float)(share * item->path_ns))) ||
			    (late > 0 && heatmap__add_wait(waiting->map, item->n ? HEATMAP_LATE : HEATMAP_OPEN_LATE,
							   item->row, bin, (float)(share * late))))
				return -ENOMEM;
		}
	}
	return 0;
}

int waiting__end(struct waiting *waiting, const struct stg_job *job, const struct series_book *book)
{
	if (!waiting->item_count)
		return 0;
	if (slow_path__begin(waiting))
		return -ENOMEM;
	qsort(waiting->items, waiting->item_count, sizeof(*waiting->items), compare_ends);
	for (size_t from = 0, to; from < waiting->item_count; from = to) {
		const struct excess *first = &waiting->items[from];

		for (to = from + 1; to < waiting->item_count && waiting->items[to].group == first->group &&
				    waiting->items[to].workload == first->workload;)
			to++;
		if (split_singles(waiting, job, from, to))
			return -ENOMEM;
		split_merged(waiting, job, from, to);
		slow_path__find(waiting, book, from, to);
	}
	slow_path__drop(waiting, job);
	return write_cells(waiting);
}

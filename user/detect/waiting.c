/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/waiting.h"

#include "model/grow.h"

#include <math.h>

/* Of a call's excess in a bin: what is worth a look, of the bin and of what the calls should have taken. */
#define LEAST_EXCESS 0.01
#define LEAST_RATIO 0.15
#define FEW 4		/* one member in so many may be on a slow path; more are the rule */
#define LEAST_MEMBERS 3 /* of a call-site, for a few of them to be told from the others */
#define REACH_MOST 50	/* bins before an excess, in which a rank may have become late */
#define PATH_SHARE 0.6	/* of the most in a bin, from there on a slow path is one's own */
#define LATE_SHARE 0.5	/* of an excess, lost by another member: that one was late */

/* Communicators beyond these wait together with the whole job, which calls less of it transfer. */
#define GROUPS_MAX 8

struct group {
	uint32_t id;
	float *excess;	     /* [row][bin of the view] */
	unsigned char *uses; /* row has called it at least once, ever */
	size_t excess_capacity, uses_capacity;
};

/* The excess of a bundle that ended in the view. */
struct excess {
	uint32_t group, workload, row, n;
	uint64_t start_ns, end_ns;
	double ns, reference_ns; /* of all n */
	double transfer_ns, path_ns;
};

struct waiting {
	struct group groups[GROUPS_MAX];
	size_t group_count, rows, bins, reach;
	uint64_t view;
	struct heatmap *map;
	struct excess *items;
	size_t item_count, item_capacity;
	uint32_t *last; /* by row: the operation that it was met in last */
	double *late;	/* by bin: the most that any member lost beside communication */
	double *paths;	/* by row: slow path in the view */
	size_t last_capacity, late_capacity, path_capacity;
};

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
		free(waiting->groups[i].excess);
		free(waiting->groups[i].uses);
	}
	free(waiting->items);
	free(waiting->last);
	free(waiting->late);
	free(waiting->paths);
	free(waiting);
}

size_t waiting__bytes(const struct waiting *waiting)
{
	size_t bytes = sizeof(*waiting) + waiting->item_capacity * sizeof(*waiting->items);

	for (size_t i = 0; i < waiting->group_count; i++)
		bytes += waiting->groups[i].excess_capacity * sizeof(*waiting->groups[i].excess) +
			 waiting->groups[i].uses_capacity;
	return bytes;
}

static int prepare(struct waiting *waiting, struct group *group)
{
	if (grow(&group->excess, &group->excess_capacity, waiting->rows * waiting->bins, sizeof(*group->excess)) ||
	    grow(&group->uses, &group->uses_capacity, waiting->rows, sizeof(*group->uses)))
		return -ENOMEM;
	memset(group->excess, 0, group->excess_capacity * sizeof(*group->excess));
	return 0;
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
	size_t bins = 2 + (size_t)(ns / (double)VAPRO_BIN_NS);

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

static size_t end_bin(const struct waiting *waiting, const struct excess *item)
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

/* Members of a group that are alive in a bin, of those at places [from, to). */
static size_t members(const struct waiting *waiting, const struct group *group, const struct stg_job *job, size_t from,
		      size_t to, size_t b)
{
	size_t count = 0;

	for (size_t place = from; place < to; place++) {
		uint32_t row = job->order[place];

		count += belongs(group, job, row) && alive(&job->rows[row], waiting->view + b);
	}
	return count;
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
	uint32_t operation = 0;
	uint64_t first_end = 0;
	size_t count = 0, wanted = 0, wanted_bin = SIZE_MAX;

	if (!in || grow(&waiting->last, &waiting->last_capacity, waiting->rows, sizeof(*waiting->last))) {
		free(in);
		return -ENOMEM;
	}
	memset(waiting->last, 0, waiting->rows * sizeof(*waiting->last));
	for (size_t i = from; i <= to; i++) {
		struct excess *item = i < to ? &waiting->items[i] : NULL;

		if (item && item->n != 1)
			continue;
		if (count && (!item || item->start_ns >= first_end || waiting->last[item->row] == operation)) {
			size_t b = end_bin(waiting, in[0]);

			if (b != wanted_bin)
				wanted = members(waiting, group, job, 0, waiting->rows, b);
			wanted_bin = b;
			finish(in, count, wanted);
			count = 0;
		}
		if (!item)
			break;
		if (!count) {
			first_end = item->end_ns;
			operation++;
		}
		waiting->last[item->row] = operation;
		in[count++] = item;
	}
	free(in);
	return 0;
}

/* Merged calls have one excess a bin: the least, less what is known to have held members up in it. */
static void split_merged(struct waiting *waiting, const struct group *group, const struct stg_job *job, size_t from,
			 size_t to, size_t b)
{
	uint64_t bin = waiting->view + b;
	double least = INFINITY, attributed = 0;

	for (size_t place = from; place < to; place++) {
		uint32_t row = job->order[place];
		struct cell cell;

		if (!belongs(group, job, row) || !alive(&job->rows[row], bin))
			continue;
		least = fmin(least, group->excess[row * waiting->bins + b]);
		cell = heatmap__cell(waiting->map, row, bin, VAPRO_COMPUTATION);
		attributed += cell__told(&cell, VAPRO_COMPUTATION);
	}
	least = isfinite(least) ? fmax(0, least - attributed) : 0;
	for (size_t place = from; place < to; place++) {
		float *excess = &group->excess[job->order[place] * waiting->bins + b];

		/* from now on the share of it that is transfer */
		*excess = *excess > 0 ? (float)fmin(1, least / *excess) : 0;
	}
}

static void take_merged(struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->item_count; i++) {
		const struct excess *item = &waiting->items[i];

		if (item->n > 1)
			waiting->groups[item->group].excess[item->row * waiting->bins + end_bin(waiting, item)] +=
			    (float)item->ns;
	}
}

static void give_merged(struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->item_count; i++) {
		struct excess *item = &waiting->items[i];

		if (item->n > 1)
			item->transfer_ns = item->ns * (double)waiting->groups[item->group]
							   .excess[item->row * waiting->bins + end_bin(waiting, item)];
	}
}

static double lost_beside(const struct waiting *waiting, uint32_t row, uint64_t bin)
{
	struct cell computation, io;

	if (!heatmap__has(waiting->map, bin))
		return 0;
	computation = heatmap__cell(waiting->map, row, bin, VAPRO_COMPUTATION);
	io = heatmap__cell(waiting->map, row, bin, VAPRO_IO);
	return fmax(0, cell__lost(&computation)) + fmax(0, cell__lost(&io));
}

/* What any row lost in computation and IO in a bin and those before it, the most by bin. */
static int find_late(struct waiting *waiting)
{
	if (grow(&waiting->late, &waiting->late_capacity, waiting->bins + 1, sizeof(*waiting->late)))
		return -ENOMEM;
	memset(waiting->late, 0, (waiting->bins + 1) * sizeof(*waiting->late));
	for (uint32_t row = 0; row < waiting->rows; row++) {
		double sum = 0;

		for (uint64_t bin = waiting->view - waiting->reach; bin < waiting->view; bin++)
			sum += lost_beside(waiting, row, bin);
		for (size_t b = 0; b < waiting->bins; b++) {
			uint64_t bin = waiting->view + b;

			sum += lost_beside(waiting, row, bin);
			waiting->late[b] = fmax(waiting->late[b], sum);
			sum -= lost_beside(waiting, row, bin - waiting->reach);
		}
	}
	return 0;
}

static size_t users_of(const struct series_book *book, uint32_t workload)
{
	uint32_t row = UINT32_MAX;
	size_t count = 0;

	for (uint32_t i = book->workloads[workload].series; i != SERIES_NONE; i = book->series[i].next) {
		count += book->series[i].row != row;
		row = book->series[i].row;
	}
	return count;
}

static double open_excess(const struct excess *item)
{
	return item->ns - item->transfer_ns;
}

static bool counts(const struct excess *item)
{
	double excess = open_excess(item);

	return excess >= LEAST_EXCESS * (double)VAPRO_BIN_NS && excess >= LEAST_RATIO * item->reference_ns;
}

/*
 * Slow paths of ranks that computed less than another one did in the view, by half of them or more: the other one
 * came late, with more work or less speed than is known. Returns 0 or -ENOMEM.
 */
static int drop_early(struct waiting *waiting, const struct stg_job *job)
{
	if (grow(&waiting->paths, &waiting->path_capacity, waiting->rows, sizeof(*waiting->paths)))
		return -ENOMEM;
	memset(waiting->paths, 0, waiting->rows * sizeof(*waiting->paths));
	for (size_t i = 0; i < waiting->item_count; i++)
		waiting->paths[waiting->items[i].row] += waiting->items[i].path_ns;
	for (size_t i = 0; i < waiting->item_count; i++) {
		struct excess *item = &waiting->items[i];
		double less = job->most_computing_ns - job->rows[item->row].computing_ns;

		if (less >= LATE_SHARE * waiting->paths[item->row])
			item->path_ns = 0;
	}
	return 0;
}

/* Items [from, to) are those of one call-site by their ends: bin by bin, whether it is a few rows that are slow. */
static int find_paths(struct waiting *waiting, const struct series_book *book, size_t from, size_t to)
{
	size_t users = users_of(book, waiting->items[from].workload);

	if (users < LEAST_MEMBERS || waiting->groups[waiting->items[from].group].id == STG_PROCESS)
		return 0;
	if (grow(&waiting->last, &waiting->last_capacity, waiting->rows, sizeof(*waiting->last)))
		return -ENOMEM;
	memset(waiting->last, 0, waiting->rows * sizeof(*waiting->last));
	for (size_t i = from, next, operation = 1; i < to; i = next, operation++) {
		size_t b = end_bin(waiting, &waiting->items[i]), slow = 0;
		double late = waiting->late[b], most = 0;

		for (next = i; next < to && end_bin(waiting, &waiting->items[next]) == b; next++) {
			const struct excess *item = &waiting->items[next];

			if (!counts(item) || waiting->last[item->row] == operation)
				continue;
			waiting->last[item->row] = (uint32_t)operation;
			most = fmax(most, open_excess(item));
			slow++;
		}
		if (!slow || (slow > 1 && slow > users / FEW))
			continue;
		for (size_t k = i; k < next; k++) {
			struct excess *item = &waiting->items[k];

			/* The others wait for the slowest of them. */
			if (counts(item) && open_excess(item) >= PATH_SHARE * most &&
			    late <= LATE_SHARE * open_excess(item))
				item->path_ns = open_excess(item);
		}
	}
	return 0;
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

static void split_groups(struct waiting *waiting, const struct stg_job *job)
{
	for (size_t g = 0; g < waiting->group_count; g++) {
		const struct group *group = &waiting->groups[g];

		for (size_t from = 0, to; from < waiting->rows; from = to) {
			const struct stg_row *first = &job->rows[job->order[from]];

			to = group->id == STG_PROCESS ? from + 1 : waiting->rows;
			while (to < waiting->rows && job->rows[job->order[to]].leader == first->leader)
				to++;
			for (size_t b = 0; b < waiting->bins; b++)
				split_merged(waiting, group, job, from, to, b);
		}
	}
}

int waiting__end(struct waiting *waiting, const struct stg_job *job, const struct series_book *book)
{
	if (!waiting->item_count)
		return 0;
	take_merged(waiting);
	split_groups(waiting, job);
	give_merged(waiting);
	if (find_late(waiting))
		return -ENOMEM;
	qsort(waiting->items, waiting->item_count, sizeof(*waiting->items), compare_ends);
	for (size_t from = 0, to; from < waiting->item_count; from = to) {
		const struct excess *first = &waiting->items[from];

		for (to = from + 1; to < waiting->item_count && waiting->items[to].group == first->group &&
				    waiting->items[to].workload == first->workload;)
			to++;
		if (split_singles(waiting, job, from, to) || find_paths(waiting, book, from, to))
			return -ENOMEM;
	}
	return drop_early(waiting, job) ? -ENOMEM : write_cells(waiting);
}

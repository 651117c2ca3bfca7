/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/waiting_private.h"

#include "model/grow.h"

#include <math.h>

#define CALM_SHARE 0.5 /* of the loss from which a cell is slow: less of it is not asked for */
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
		free(waiting->groups[i].alive);
	}
	free(waiting->items);
	free(waiting->sites);
	free(waiting->site_of);
	free(waiting->by_site);
	free(waiting->by_bin);
	free(waiting->order);
	free(waiting->followers.first);
	free(waiting->followers.next);
	free(waiting->busy);
	free(waiting->last);
	free(waiting->late);
	free(waiting->arrivals);
	free(waiting->paths);
	free(waiting->sums);
	free(waiting->least);
	free(waiting);
}

size_t waiting__bytes(const struct waiting *waiting)
{
	size_t bytes =
	    sizeof(*waiting) + waiting->item_capacity * sizeof(*waiting->items) +
	    waiting->by_bin_capacity * sizeof(*waiting->by_bin) + waiting->order_capacity * sizeof(*waiting->order) +
	    waiting->site_capacity * sizeof(*waiting->sites) + waiting->arrival_capacity * sizeof(*waiting->arrivals);

	for (size_t i = 0; i < waiting->group_count; i++)
		bytes += waiting->groups[i].uses_capacity;
	return bytes;
}

static int prepare(struct waiting *waiting, struct group *group)
{
	if (grow(&group->uses, &group->uses_capacity, waiting->rows, sizeof(*group->uses)) ||
	    grow(&group->alive, &group->alive_capacity, waiting->bins + 1, sizeof(*group->alive)))
		return -ENOMEM;
	memset(group->alive, 0, group->alive_capacity * sizeof(*group->alive));
	return 0;
}

int waiting__begin(struct waiting *waiting, struct heatmap *map, size_t rows, uint64_t view, uint64_t end)
{
	waiting->rows = rows;
	waiting->view = view < map->begin ? map->begin : view;
	waiting->bins = end > waiting->view ? end - waiting->view : 0;
	waiting->map = map;
	waiting->reach = 0;
	waiting->longest_ns = -1;
	waiting->late_known = false;
	waiting__empty(waiting);
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

/* The bin of the view that a call is counted to, which ends in bin `last` or, where it is open, after the view. */
static uint32_t end_bin(const struct waiting *waiting, uint64_t last)
{
	uint64_t bin = last - waiting->view;

	return (uint32_t)(bin < waiting->bins ? bin : waiting->bins - (waiting->bins > 0));
}

int waiting__add(struct waiting *waiting, const struct kept *kept, const struct series *series, uint32_t group_id,
		 uint64_t from)
{
	struct group *group = find_group(waiting, group_id);
	uint64_t first = kept__first_bin(kept), last = kept__bin(kept);
	struct loss loss = kept__loss(kept);
	double excess = fmax(0, loss.lost - loss.cpu);
	bool open = kept->flags & VAPRO_BUNDLE_OPEN;
	struct excess item;

	if (!group)
		return -ENOMEM;
	group->uses[series->row] = 1;
	/* single calls without an excess say when a rank arrived */
	if (excess <= 0 && kept->n != 1)
		return 0;
	if (from < waiting->map->begin)
		from = waiting->map->begin;
	for (uint64_t bin = first < from ? from : first; bin <= last && bin < waiting->view; bin++) {
		if (heatmap__add_wait(waiting->map, open ? HEATMAP_OPEN_LATE : HEATMAP_LATE, series->row, bin,
				      (float)(excess * kept__share(kept, bin))))
			return -ENOMEM;
	}
	if (last < waiting->view || last < from)
		return 0;
	item = (struct excess){
	    .row = series->row,
	    .n = open ? 0 : kept->n,
	    .bin = end_bin(waiting, last),
	    .start_ns = kept->start_ns,
	    .end_ns = kept->end_ns,
	    .ns = excess,
	    .reference_ns = (double)kept->reference * kept->n,
	};
	return waiting__keep(waiting, (uint32_t)(group - waiting->groups), series->workload, &item);
}

void waiting__reach(struct waiting *waiting, double ns)
{
	size_t bins;

	if (ns <= waiting->longest_ns)
		return;
	waiting->longest_ns = ns;
	/* A rank that lost time goes on with its work and is waited for later. */
	bins = 2 + (size_t)(REACH_FRAGMENTS * ns / (double)VAPRO_BIN_NS);
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

/* The bins of the view that a single or open call lies in, relative to it: [*from, *to). */
static void bins_of(const struct waiting *waiting, const struct excess *item, size_t *from, size_t *to)
{
	uint64_t last = (item->end_ns > item->start_ns ? item->end_ns - 1 : item->end_ns) / VAPRO_BIN_NS;
	uint64_t first = item->start_ns / VAPRO_BIN_NS;

	*from = first > waiting->view ? first - waiting->view : 0;
	*to = last + 1 < waiting->view + waiting->bins ? last + 1 - waiting->view : waiting->bins;
}

static double share_of(const struct waiting *waiting, const struct excess *item, size_t b)
{
	struct kept kept = {.start_ns = item->start_ns, .end_ns = item->end_ns, .n = 1};

	return kept__share(&kept, waiting->view + b);
}

/* Threads of a process that wait for each other are a group per process, which goes by its leader; others are one. */
static uint32_t leader_of(const struct group *group, const struct stg_job *job, uint32_t row)
{
	return group->id == STG_PROCESS ? job->rows[row].leader : 0;
}

/* The rows of each leader, in lists. */
static int link_followers(struct waiting *waiting, const struct stg_job *job)
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

/* Members of a row's group that are alive in a bin of the view. */
static size_t members(const struct waiting *waiting, const struct group *group, const struct stg_job *job, uint32_t of,
		      size_t b)
{
	uint32_t count = 0;

	if (group->id != STG_PROCESS && group->alive[b])
		return group->alive[b] - 1;
	for (uint32_t at = first_member(waiting, group, job, of); at; at = next_member(waiting, group, at))
		count += belongs(group, job, at - 1) && alive(&job->rows[at - 1], waiting->view + b);
	if (group->id != STG_PROCESS)
		group->alive[b] = count + 1;
	return count;
}

/* What the kernel attributes of their computation in it. */
static double attributed(const struct waiting *waiting, const struct group *group, const struct stg_job *job,
			 uint32_t of, size_t b)
{
	uint64_t bin = waiting->view + b;
	double sum = 0;

	for (uint32_t at = first_member(waiting, group, job, of); at; at = next_member(waiting, group, at)) {
		struct cell cell;

		if (!belongs(group, job, at - 1) || !alive(&job->rows[at - 1], bin))
			continue;
		cell = heatmap__cell(waiting->map, at - 1, bin, VAPRO_COMPUTATION);
		sum += (double)cell.closed.cpu + cell.open.cpu;
	}
	return sum;
}

/* A member that was in no such call has no excess: the least is 0 then. */
static void settle(const struct waiting *waiting, const struct group *group, const struct stg_job *job, uint32_t row,
		   size_t b, struct least *least)
{
	least->known = true;
	if (members(waiting, group, job, row, b) > least->rows)
		least->ns = 0;
	else
		least->ns = fmax(0, least->ns - attributed(waiting, group, job, row, b));
}

/* A call by itself, and the process whose threads it waits for. */
struct single {
	struct excess *item;
	uint32_t leader, at;
};

static int compare_singles(const void *a, const void *b)
{
	const struct single *left = a, *right = b;

	if (left->leader != right->leader)
		return left->leader < right->leader ? -1 : 1;
	return (left->at > right->at) - (left->at < right->at);
}

/* The single calls of a call-site in the order of their ends; where threads of a process wait, process by process. */
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
	if (singles && group->id == STG_PROCESS)
		qsort(singles, *count, sizeof(*singles), compare_singles);
	return singles;
}

/* One operation: its transfer, where all members are in it; else the last one's call was too short to be single. */
static void finish(const struct single *in, size_t count, size_t wanted)
{
	double least = INFINITY;

	for (size_t i = 0; i < count; i++)
		least = fmin(least, in[i].item->ns);
	for (size_t i = 0; count >= wanted && i < count; i++)
		in[i].item->transfer_ns = least;
}

/* Single calls of one call-site: those that overlap are one operation. */
static int split_singles(struct waiting *waiting, const struct stg_job *job, const struct call_site *site)
{
	const struct group *group = &waiting->groups[site->group];
	size_t count, wanted = 0;
	struct single *singles = singles_of(waiting, job, site, &count);
	const struct single *counted = NULL;

	if (!singles)
		return -ENOMEM;
	for (size_t from = 0, to; from < count; from = to) {
		const struct single *first = &singles[from];

		waiting->last[first->item->row] = ++waiting->operation;
		for (to = from + 1; to < count; to++) {
			const struct excess *item = singles[to].item;

			if (singles[to].leader != first->leader || item->start_ns >= first->item->end_ns ||
			    waiting->last[item->row] == waiting->operation)
				break;
			waiting->last[item->row] = waiting->operation;
		}
		/* Those of one bin are counted once. */
		if (!counted || counted->leader != first->leader || counted->item->bin != first->item->bin)
			wanted = members(waiting, group, job, first->item->row, first->item->bin);
		counted = first;
		finish(first, to - from, wanted);
	}
	free(singles);
	return 0;
}

/*
 * Merged calls of one call-site that end in one bin, [from, to) of the order: the least excess of any member is
 * everybody's.
 */
static void split_merged_in(struct waiting *waiting, const struct stg_job *job, const struct group *group, size_t from,
			    size_t to)
{
	/* Mostly some member is without. */
	if (group->id != STG_PROCESS && to - from < members(waiting, group, job, 0, waiting__item(waiting, from)->bin))
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
		if (waiting->sums[row] > 0) {
			least->ns = waiting->sums[row] < least->ns ? waiting->sums[row] : least->ns;
			least->rows++;
		}
	}
	for (size_t i = from; i < to; i++) {
		struct excess *item = waiting__item(waiting, i);
		struct least *least = &waiting->least[leader_of(group, job, item->row)];

		if (!least->known)
			settle(waiting, group, job, item->row, item->bin, least);
		if (least->ns <= 0 && group->id != STG_PROCESS)
			return;
		if (item->n > 1 && waiting->sums[item->row] > 0)
			item->transfer_ns = item->ns * fmin(1, least->ns / waiting->sums[item->row]);
	}
}

static void split_merged(struct waiting *waiting, const struct stg_job *job, const struct call_site *site)
{
	size_t end = site->begin + site->count;

	for (size_t from = site->begin, to; from < end; from = to) {
		to = waiting__bin_end(waiting, from, end);
		split_merged_in(waiting, job, &waiting->groups[site->group], from, to);
	}
}

static int write_item(struct waiting *waiting, const struct excess *item)
{
	double late = item->ns - item->transfer_ns - item->path_ns;
	size_t from = item->bin, to = from + 1;

	if (item->n <= 1)
		bins_of(waiting, item, &from, &to);
	for (size_t b = from; b < to; b++) {
		double share = item->n > 1 ? 1 : share_of(waiting, item, b);
		uint64_t bin = waiting->view + b;

		if ((item->transfer_ns > 0 && heatmap__add_wait(waiting->map, HEATMAP_TRANSFER, item->row, bin,
								(float)(share * item->transfer_ns))) ||
		    (item->path_ns > 0 &&
		     heatmap__add_wait(waiting->map, HEATMAP_PATH, item->row, bin, (float)(share * item->path_ns))) ||
		    (late > 0 && heatmap__add_wait(waiting->map, item->n ? HEATMAP_LATE : HEATMAP_OPEN_LATE, item->row,
						   bin, (float)(share * late))))
			return -ENOMEM;
	}
	return 0;
}

/* Bins of the view in which the calls of some row are slow, or nearly so; counted up to each bin. */
static int count_busy(struct waiting *waiting, const struct vapro_config *config)
{
	double share = CALM_SHARE * (1 - config->threshold);

	if (grow(&waiting->busy, &waiting->busy_capacity, waiting->bins + 1, sizeof(*waiting->busy)))
		return -ENOMEM;
	waiting->busy[0] = 0;
	for (size_t b = 0; b < waiting->bins; b++) {
		bool busy = false;

		for (uint32_t row = 0; row < waiting->rows && !busy; row++) {
			struct cell cell = heatmap__cell(waiting->map, row, waiting->view + b, VAPRO_COMMUNICATION);

			busy = cell__lost(&cell) > share * fmax(cell__dur(&cell), config->valid_bin * VAPRO_BIN_NS);
		}
		waiting->busy[b + 1] = waiting->busy[b] + busy;
	}
	return 0;
}

/* Whether a call, and those of one operation with it that end a bin earlier or later, lie in calm bins. */
static bool is_calm(const struct waiting *waiting, const struct excess *item)
{
	size_t from = item->bin, to = from + 1;

	if (item->n <= 1)
		bins_of(waiting, item, &from, &to);
	from -= from > 0;
	to += to < waiting->bins;
	return from >= to || waiting->busy[to] == waiting->busy[from];
}

/*
 * Mostly nothing is slow, and what is waited for there is not asked for: it passes for a late peer's, as it comes.
 * Leaves the other items.
 */
static int write_calm(struct waiting *waiting, const struct vapro_config *config)
{
	size_t kept = 0;

	if (count_busy(waiting, config))
		return -ENOMEM;
	for (size_t i = 0; i < waiting->site_count; i++)
		waiting->sites[i].count = waiting->sites[i].singles = waiting->sites[i].merged = 0;
	for (size_t i = 0; i < waiting->item_count; i++) {
		const struct excess *item = &waiting->items[i];
		struct call_site *site = &waiting->sites[item->site];

		if (is_calm(waiting, item)) {
			if (write_item(waiting, item))
				return -ENOMEM;
			continue;
		}
		site->count++;
		site->singles += item->n == 1;
		site->merged += item->n > 1;
		waiting->items[kept++] = *item;
	}
	waiting->item_count = kept;
	return 0;
}

int waiting__end(struct waiting *waiting, const struct stg_job *job, const struct series_book *book)
{
	bool paths = false, singles = false;

	/* Merged calls need no order within a bin, and are fewer. */
	for (size_t i = 0; i < waiting->site_count; i++)
		singles |= waiting->sites[i].singles > 0;
	if (singles && write_calm(waiting, book->config))
		return -ENOMEM;
	if (!waiting->item_count)
		return 0;
	if (slow_path__begin(waiting) || link_followers(waiting, job) || waiting__order(waiting))
		return -ENOMEM;
	for (size_t i = 0; i < waiting->site_count; i++) {
		struct call_site *site = &waiting->sites[waiting->by_site[i]];

		if (site->singles && split_singles(waiting, job, site))
			return -ENOMEM;
		if (site->merged)
			split_merged(waiting, job, site);
		paths |= slow_path__find(waiting, book, site);
	}
	if (paths)
		slow_path__drop(waiting, job);
	for (size_t i = 0; i < waiting->item_count; i++) {
		if (write_item(waiting, waiting__item(waiting, i)))
			return -ENOMEM;
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "detect/waiting_private.h"
#include "model/judgement.h"

/* The sort key of single calls of one bin. */
struct end_key {
	uint64_t end_ns;
	uint32_t row, item;
};

/* Forgets the items and call-sites of the last view. */
static void empty(struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->site_count; i++)
		waiting->site_of[waiting->sites[i].workload] = 0;
	waiting->site_count = waiting->item_count = 0;
}

static int find_site(struct waiting *waiting, uint32_t group, uint32_t workload, uint32_t *site)
{
	uint32_t id;

	if (grow(&waiting->site_of, &waiting->site_of_capacity, workload + 1, sizeof(*waiting->site_of)))
		return -ENOMEM;
	for (id = waiting->site_of[workload]; id; id = waiting->sites[id - 1].next) {
		*site = id - 1;
		if (waiting->sites[*site].group == group)
			return 0;
	}
	if (grow(&waiting->sites, &waiting->site_capacity, waiting->site_count + 1, sizeof(*waiting->sites)))
		return -ENOMEM;
	*site = (uint32_t)waiting->site_count++;
	waiting->sites[*site] =
	    (struct call_site){.group = group, .workload = workload, .next = waiting->site_of[workload]};
	waiting->site_of[workload] = *site + 1;
	return 0;
}

/*
 * Adds an item of n calls to the call-site of a workload in a group; the caller fills its other members. NULL when out
 * of memory.
 */
static struct excess *new_item(struct waiting *waiting, uint32_t group, uint32_t workload, uint32_t n)
{
	struct excess *item;
	uint32_t site;

	if (find_site(waiting, group, workload, &site) ||
	    grow_untouched(&waiting->items, &waiting->item_capacity, waiting->item_count + 1, sizeof(*waiting->items)))
		return NULL;
	item = &waiting->items[waiting->item_count++];
	item->site = site;
	item->n = n;
	waiting->sites[site].count++;
	waiting->sites[site].singles += n == 1;
	waiting->sites[site].merged += n > 1;
	return item;
}

static int compare_sites(const void *a, const void *b, void *arg)
{
	const struct call_site *sites = arg, *left = &sites[*(const uint32_t *)a],
			       *right = &sites[*(const uint32_t *)b];

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	return (left->workload > right->workload) - (left->workload < right->workload);
}

static int compare_ends(const void *a, const void *b)
{
	const struct end_key *left = a, *right = b;

	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->item > right->item) - (left->item < right->item);
}

/* Sorts items by bin, else as they came. */
static int count_bins(struct waiting *waiting)
{
	size_t *begins = calloc(waiting->bins + 2, sizeof(*begins));

	if (!begins)
		return -ENOMEM;
	for (size_t i = 0; i < waiting->item_count; i++)
		begins[waiting->items[i].bin + 1]++;
	for (size_t b = 0; b < waiting->bins; b++)
		begins[b + 1] += begins[b];
	for (size_t i = 0; i < waiting->item_count; i++)
		waiting->by_bin[begins[waiting->items[i].bin]++] = (uint32_t)i;
	free(begins);
	return 0;
}

static void count_sites(struct waiting *waiting)
{
	size_t begin = 0;

	for (size_t i = 0; i < waiting->site_count; i++)
		waiting->by_site[i] = (uint32_t)i;
	qsort_r(waiting->by_site, waiting->site_count, sizeof(*waiting->by_site), compare_sites, waiting->sites);
	for (size_t i = 0; i < waiting->site_count; i++) {
		struct call_site *site = &waiting->sites[waiting->by_site[i]];

		site->begin = begin;
		begin += site->count;
		site->count = 0;
	}
	for (size_t i = 0; i < waiting->item_count; i++) {
		struct call_site *site = &waiting->sites[waiting->items[waiting->by_bin[i]].site];

		waiting->order[site->begin + site->count++] = waiting->by_bin[i];
	}
}

/* Sorts items [from, to) by their ends. */
static int sort_ends(struct waiting *waiting, size_t from, size_t to)
{
	struct end_key *keys = malloc((to - from) * sizeof(*keys));
	bool sorted = true;

	if (!keys)
		return -ENOMEM;
	for (size_t i = from; i < to; i++) {
		const struct excess *item = waiting__item(waiting, i);

		keys[i - from] = (struct end_key){item->end_ns, item->row, waiting->order[i]};
		sorted &= i == from || compare_ends(&keys[i - from - 1], &keys[i - from]) < 0;
	}
	if (!sorted) {
		qsort(keys, to - from, sizeof(*keys), compare_ends);
		for (size_t i = from; i < to; i++)
			waiting->order[i] = keys[i - from].item;
	}
	free(keys);
	return 0;
}

/* Brings the items into order, by call-site and bin: counting sorts numbers, and not items. Returns 0 or -ENOMEM. */
static int order(struct waiting *waiting)
{
	if (grow_untouched(&waiting->by_bin, &waiting->by_bin_capacity, waiting->item_count,
			   sizeof(*waiting->by_bin)) ||
	    grow_untouched(&waiting->order, &waiting->order_capacity, waiting->item_count, sizeof(*waiting->order)) ||
	    grow_untouched(&waiting->by_site, &waiting->by_site_capacity, waiting->site_count,
			   sizeof(*waiting->by_site)) ||
	    count_bins(waiting))
		return -ENOMEM;
	count_sites(waiting);
	for (size_t i = 0; i < waiting->site_count; i++) {
		const struct call_site *site = &waiting->sites[i];
		size_t end = site->begin + site->count;

		/* Merged calls are only ordered by bin. */
		for (size_t from = site->begin, to; site->singles && from < end; from = to) {
			to = waiting__bin_end(waiting, from, end);
			if (sort_ends(waiting, from, to))
				return -ENOMEM;
		}
	}
	return 0;
}

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
		free(waiting->groups[i].of);
		free(waiting->groups[i].sizes);
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
	free(waiting->long_calls);
	free(waiting->last_arrivals);
	free(waiting->starts);
	free(waiting->paths);
	free(waiting->sums);
	free(waiting->transfers);
	free(waiting->least);
	free(waiting);
}

size_t waiting__bytes(const struct waiting *waiting)
{
	size_t bytes =
	    sizeof(*waiting) + waiting->item_capacity * sizeof(*waiting->items) +
	    waiting->by_bin_capacity * sizeof(*waiting->by_bin) + waiting->order_capacity * sizeof(*waiting->order) +
	    waiting->site_capacity * sizeof(*waiting->sites) + waiting->arrival_capacity * sizeof(*waiting->arrivals) +
	    waiting->transfer_capacity * sizeof(*waiting->transfers);

	for (size_t i = 0; i < waiting->group_count; i++)
		bytes +=
		    waiting->groups[i].uses_capacity + waiting->groups[i].of_capacity * sizeof(*waiting->groups[i].of);
	return bytes;
}

void waiting__use_groups(const struct waiting *waiting, unsigned char *used)
{
	for (size_t i = 0; i < waiting->group_count; i++) {
		if (waiting->groups[i].id != STG_PROCESS)
			used[waiting->groups[i].id] = 1;
	}
}

static int prepare(struct waiting *waiting, struct group *group)
{
	if (grow(&group->uses, &group->uses_capacity, waiting->rows, sizeof(*group->uses)) ||
	    grow(&group->alive, &group->alive_capacity, waiting->bins + 1, sizeof(*group->alive)))
		return -ENOMEM;
	memset(group->alive, 0, group->alive_capacity * sizeof(*group->alive));
	return 0;
}

int waiting__begin(struct waiting *waiting, struct heatmap *map, size_t rows, uint64_t from, uint64_t view,
		   uint64_t end)
{
	waiting->rows = rows;
	waiting->begin = from < map->begin ? map->begin : from;
	waiting->before_view = view > waiting->begin ? view - waiting->begin : 0;
	waiting->bins = end > waiting->begin ? end - waiting->begin : 0;
	waiting->map = map;
	waiting->reach = 0;
	waiting->longest_ns = -1;
	waiting->late_known = waiting->long_known = false;
	waiting->transfer_count = 0;
	empty(waiting);
	for (size_t i = 0; i < waiting->group_count; i++) {
		if (prepare(waiting, &waiting->groups[i]))
			return -ENOMEM;
	}
	return 0;
}

static struct group *find_group(struct waiting *waiting, uint32_t id)
{
	size_t used = 1; /* slots in use by groups of ranks */

	if (id == STG_WORLD)
		return &waiting->groups[0];
	for (size_t i = 1; i < waiting->group_count; i++) {
		if (waiting->groups[i].id == id)
			return &waiting->groups[i];
		used += waiting->groups[i].id != STG_PROCESS;
	}
	/* One slot is reserved for threads, which must not mix with ranks. */
	if (used == GROUPS_MAX - 1 && id != STG_PROCESS)
		return &waiting->groups[0];
	waiting->groups[waiting->group_count].id = id;
	if (prepare(waiting, &waiting->groups[waiting->group_count]))
		return NULL;
	return &waiting->groups[waiting->group_count++];
}

/* The index of a bin from the first one; of an open call at most the last one. */
static uint32_t from_begin(const struct waiting *waiting, uint64_t at)
{
	uint64_t bin = at - waiting->begin;

	return (uint32_t)(bin < waiting->bins ? bin : waiting->bins - (waiting->bins > 0));
}

int waiting__add(struct waiting *waiting, const struct bundle_rec *rec, uint32_t number, const struct series *series,
		 const struct stg_state *state, uint64_t from)
{
	struct group *group = find_group(waiting, state->group);
	uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);
	struct loss loss = bundle_rec__loss(rec);
	double excess = fmax(0, loss.lost - loss.cpu), cpu = rec->n == 1 ? bundle_rec__cpu_attributed(rec) : 0;
	bool open = rec->flags & VAPRO_BUNDLE_OPEN;
	struct excess *item;

	if (!group)
		return -ENOMEM;
	group->uses[series->row] = 1;
	/* single calls without an excess show when a rank arrived */
	if (excess <= 0 && rec->n != 1)
		return 0;
	if (from < waiting->map->begin)
		from = waiting->map->begin;
	first = first < from ? from : first;
	for (uint64_t bin = first; bin <= last && bin < waiting->begin; bin++) {
		if (heatmap__add_wait(waiting->map, open ? HEATMAP_OPEN_LATE : HEATMAP_LATE, series->row, bin,
				      (float)(excess * bundle_rec__share(rec, bin))))
			return -ENOMEM;
	}
	if (last < waiting->begin || last < from || !waiting->bins)
		return 0;
	item = new_item(waiting, (uint32_t)(group - waiting->groups), series->workload, open ? 0 : rec->n);
	if (!item)
		return -ENOMEM;
	waiting->sites[item->site].together = state->together;
	waiting->sites[item->site].one_sided = state->one_sided;
	item->row = series->row;
	item->number = number;
	item->bin = from_begin(waiting, last);
	item->from = first < waiting->begin ? 0 : from_begin(waiting, first);
	item->start_ns = rec->start_ns;
	item->end_ns = rec->end_ns;
	item->ns = rec->n == 1 ? loss.lost - cpu : excess;
	item->cpu_ns = (float)cpu;
	item->absent_ns = rec->n == 1 ? (float)bundle_rec__absent(rec) : 0;
	item->reference_ns = (double)rec->reference * rec->n;
	item->transfer_ns = item->path_ns = 0;
	item->no_bytes = state->no_bytes;
	item->may_wait = false;
	return 0;
}

void waiting__reach(struct waiting *waiting, double ns)
{
	size_t bins;

	if (ns <= waiting->longest_ns)
		return;
	waiting->longest_ns = ns;
	/* A rank that lost time goes on with its work and is waited for later. */
	bins = 2 + (size_t)(HEATMAP_AROUND_FRAGMENTS * ns / (double)VAPRO_BIN_NS);
	bins = bins > HEATMAP_AROUND_MOST ? HEATMAP_AROUND_MOST : bins;
	waiting->reach = bins > waiting->reach ? bins : waiting->reach;
}

uint32_t waiting__bins_of_reach(const struct waiting *waiting)
{
	return (uint32_t)waiting->reach;
}

static double share_of(const struct waiting *waiting, const struct excess *item, size_t b)
{
	struct bundle_rec rec = {.start_ns = item->start_ns, .end_ns = item->end_ns, .n = 1};

	return bundle_rec__share(&rec, waiting->begin + b);
}

/* Makes the list of transfers as long as `count` bundles; new ones have none. Returns 0 or -ENOMEM. */
static int extend_transfers(struct waiting *waiting, size_t count)
{
	size_t before = waiting->transfer_count;

	if (count <= before)
		return 0;
	if (grow_untouched(&waiting->transfers, &waiting->transfer_capacity, count, sizeof(*waiting->transfers)))
		return -ENOMEM;
	memset(&waiting->transfers[before], 0, (count - before) * sizeof(*waiting->transfers));
	waiting->transfer_count = count;
	return 0;
}

int waiting__transfers(struct waiting *waiting, size_t count, const float **transfers)
{
	*transfers = NULL;
	if (!waiting->transfer_count)
		return 0;
	if (extend_transfers(waiting, count))
		return -ENOMEM;
	*transfers = waiting->transfers;
	return 0;
}

int waiting__visit_own(const struct waiting *waiting, waiting_visit *visit, void *arg)
{
	int error = 0;

	for (size_t i = 0; !error && i < waiting->item_count; i++) {
		const struct excess *item = &waiting->items[i];
		double own = item->transfer_ns + item->path_ns;

		if (item->number != WAITING_OPEN && own > 0 && own >= SHARE_MOST * item->ns)
			error = visit(arg, item->number, fmax(0, item->ns - own), item->may_wait);
	}
	return error;
}

/* Notes the transfer of a bundle. Returns 0 or -ENOMEM. */
static int note_transfer(struct waiting *waiting, const struct excess *item)
{
	if (extend_transfers(waiting, (size_t)item->number + 1))
		return -ENOMEM;
	waiting->transfers[item->number] = (float)item->transfer_ns;
	return 0;
}

static int write_item(struct waiting *waiting, const struct excess *item)
{
	double late = item->ns - item->transfer_ns - item->path_ns;

	if (item->ns <= 0)
		return 0;
	if (item->transfer_ns > 0 && item->number != WAITING_OPEN && note_transfer(waiting, item))
		return -ENOMEM;
	for (uint32_t b = item->from; b <= item->bin; b++) {
		double share = item->n > 1 ? 1 : share_of(waiting, item, b);
		uint64_t bin = waiting->begin + b;

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

/* Counts, up to each bin, bins in which calls of some row are slow, or nearly so. */
static int count_busy(struct waiting *waiting, const struct vapro_config *config)
{
	double share = SHARE_MOST * (1 - config->threshold);

	if (grow(&waiting->busy, &waiting->busy_capacity, waiting->bins + 1, sizeof(*waiting->busy)))
		return -ENOMEM;
	waiting->busy[0] = 0;
	for (size_t b = 0; b < waiting->bins; b++) {
		bool busy = false;

		for (uint32_t row = 0; row < waiting->rows && !busy; row++) {
			struct cell cell = heatmap__cell(waiting->map, row, waiting->begin + b, VAPRO_COMMUNICATION);

			busy = cell__lost(&cell) > share * fmax(cell__dur(&cell), config->valid_bin * VAPRO_BIN_NS);
		}
		waiting->busy[b + 1] = waiting->busy[b] + busy;
	}
	return 0;
}

/* Whether a call, and calls of its operation that end a bin earlier or later, lie in calm bins. */
static bool is_calm(const struct waiting *waiting, const struct excess *item)
{
	size_t from = item->from - (item->from > 0), to = item->bin + 1;

	to += to < waiting->bins;
	return waiting->busy[to] == waiting->busy[from];
}

/*
 * Writes the items of calm bins, which are most, without a split: all of their excess counts as a late peer's.
 * Leaves the other items.
 */
static int write_calm(struct waiting *waiting, const struct vapro_config *config)
{
	size_t live = 0;

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
		waiting->items[live++] = *item;
	}
	waiting->item_count = live;
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
	waiting->last_arrival_count = 0;
	if (waiting__begin_slow_paths(waiting) || waiting__find_communicators(waiting, job) ||
	    waiting__link(waiting, job) || order(waiting))
		return -ENOMEM;
	for (size_t i = 0; i < waiting->site_count; i++) {
		struct call_site *site = &waiting->sites[waiting->by_site[i]];

		if (site->singles && waiting__split_singles(waiting, job, book, site))
			return -ENOMEM;
		if (site->merged)
			waiting__split_merged(waiting, job, site);
		paths |= waiting__find_slow_path(waiting, book, site);
		if (site->one_sided)
			waiting__split_one_sided(waiting, site);
	}
	waiting__write_arrivals(waiting);
	if (paths) {
		waiting__drop_slow_paths(waiting, job, book);
		if (waiting__clear_transfers(waiting))
			return -ENOMEM;
	}
	for (size_t i = 0; i < waiting->item_count; i++) {
		struct excess *item = waiting__item(waiting, i);

		if (item->no_bytes)
			item->transfer_ns = item->path_ns = 0;
		if (write_item(waiting, item))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Waiting in checkpoints: see waiting.h. Only which rows have ever called in a group outlives a window; room for items
 * counts for the memory cap.
 */

static const struct archive_column waiting_columns[] = {
    ARCHIVE_ONE(struct waiting, group_count),	    ARCHIVE_ONE(struct waiting, item_capacity),
    ARCHIVE_ONE(struct waiting, by_bin_capacity),   ARCHIVE_ONE(struct waiting, order_capacity),
    ARCHIVE_ONE(struct waiting, site_capacity),	    ARCHIVE_ONE(struct waiting, arrival_capacity),
    ARCHIVE_ONE(struct waiting, transfer_capacity),
};
static const struct archive_table waiting_table = ARCHIVE_TABLE("waiting", struct waiting, waiting_columns);

static const struct archive_column group_columns[] = {ARCHIVE_ONE(struct group, id)};
static const struct archive_table group_table = ARCHIVE_TABLE("group", struct group, group_columns);

static const struct archive_column use_columns[] = {{"used", ARCHIVE_U8, 1, 0, false}};
static const struct archive_table use_table = {"uses", use_columns, 1, sizeof(unsigned char)};

static const struct archive_column communicator_columns[] = {{"communicator", ARCHIVE_U32, 1, 0, false}};
static const struct archive_table communicator_table = {"communicators", communicator_columns, 1, sizeof(uint32_t)};

static void check_communicators(struct archive *archive, const struct group *group)
{
	for (size_t row = 0; row < group->of_capacity; row++)
		archive__check(archive, group->of[row] <= COMMUNICATORS_MOST, "a communicator has no number");
}

static void *room(struct archive *archive, size_t *capacity, size_t size)
{
	void *items = *capacity ? archive__take(archive, *capacity, size) : NULL;

	if (!items)
		*capacity = 0;
	return items;
}

static void make_room(struct archive *archive, struct waiting *waiting)
{
	waiting->items = room(archive, &waiting->item_capacity, sizeof(*waiting->items));
	waiting->by_bin = room(archive, &waiting->by_bin_capacity, sizeof(*waiting->by_bin));
	waiting->order = room(archive, &waiting->order_capacity, sizeof(*waiting->order));
	waiting->sites = room(archive, &waiting->site_capacity, sizeof(*waiting->sites));
	waiting->arrivals = room(archive, &waiting->arrival_capacity, sizeof(*waiting->arrivals));
	waiting->transfers = room(archive, &waiting->transfer_capacity, sizeof(*waiting->transfers));
}

/* One group is for threads at most, the others are of ranks, and the first is the job. */
static bool possible(const struct waiting *waiting)
{
	size_t threads = 0;

	for (size_t i = 0; i < waiting->group_count; i++)
		threads += waiting->groups[i].id == STG_PROCESS;
	return waiting->groups[0].id == STG_WORLD && threads <= 1 && waiting->group_count - threads < GROUPS_MAX;
}

void waiting__archive(struct archive *archive, struct waiting *waiting)
{
	archive__record(archive, &waiting_table, waiting);
	if (archive__reads(archive)) {
		make_room(archive, waiting);
		if (!archive__check(archive, waiting->group_count && waiting->group_count <= GROUPS_MAX,
				    "waiting has too many groups"))
			waiting->group_count = 1;
	}
	for (size_t i = 0; i < waiting->group_count; i++) {
		struct group *group = &waiting->groups[i];

		archive__record(archive, &group_table, group);
		archive__rows(archive, &use_table, &group->uses, &group->uses_capacity, &group->uses_capacity);
		archive__rows(archive, &communicator_table, &group->of, &group->of_capacity, &group->of_capacity);
		if (archive__reads(archive))
			check_communicators(archive, group);
	}
	archive__check(archive, possible(waiting), "waiting has too many groups");
}

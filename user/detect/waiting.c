/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/waiting.h"

#include "model/grow.h"

#include <math.h>

/* Communicators beyond these wait together with the whole job, which calls less of it transfer. */
#define GROUPS_MAX 8

struct group {
	uint32_t id;
	float *excess;	     /* [row][bin of the view] */
	unsigned char *uses; /* row has called it at least once, ever */
	size_t excess_capacity, uses_capacity;
};

struct waiting {
	struct group groups[GROUPS_MAX];
	size_t group_count, rows, bins;
	uint64_t view;
	struct heatmap *map;
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
	free(waiting);
}

size_t waiting__bytes(const struct waiting *waiting)
{
	size_t bytes = sizeof(*waiting);

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

int waiting__add(struct waiting *waiting, const struct kept *kept, uint32_t row, uint32_t group_id, uint64_t from)
{
	struct group *group = find_group(waiting, group_id);
	uint64_t first = kept__first_bin(kept), last = kept__bin(kept);
	struct loss loss = kept__loss(kept);
	double excess = fmax(0, loss.lost - loss.cpu);

	if (!group)
		return -ENOMEM;
	group->uses[row] = 1;
	if (from < waiting->map->begin)
		from = waiting->map->begin;
	if (first < from)
		first = from;
	for (uint64_t bin = first; bin <= last && bin < waiting->view + waiting->bins; bin++) {
		enum heatmap_part part = kept->flags & VAPRO_BUNDLE_OPEN ? HEATMAP_OPEN_LATE : HEATMAP_LATE;
		float ns = (float)(excess * kept__share(kept, bin));

		if (bin >= waiting->view)
			group->excess[row * waiting->bins + (bin - waiting->view)] += ns;
		else if (heatmap__add_wait(waiting->map, part, row, bin, ns))
			return -ENOMEM;
	}
	return 0;
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

/* Splits the excess of the rows at places [from, to) in one bin. */
static int split(struct waiting *waiting, const struct group *group, const struct stg_job *job, size_t from, size_t to,
		 size_t b)
{
	uint64_t bin = waiting->view + b;
	float least = INFINITY;

	for (size_t place = from; place < to; place++) {
		uint32_t row = job->order[place];

		if (belongs(group, job, row) && alive(&job->rows[row], bin))
			least = fminf(least, group->excess[row * waiting->bins + b]);
	}
	for (size_t place = from; place < to; place++) {
		uint32_t row = job->order[place];
		float excess = group->excess[row * waiting->bins + b];

		if (excess <= 0)
			continue;
		if (heatmap__add_wait(waiting->map, HEATMAP_TRANSFER, row, bin, fminf(least, excess)) ||
		    heatmap__add_wait(waiting->map, HEATMAP_LATE, row, bin, excess - fminf(least, excess)))
			return -ENOMEM;
	}
	return 0;
}

int waiting__end(struct waiting *waiting, const struct stg_job *job)
{
	for (size_t g = 0; g < waiting->group_count; g++) {
		const struct group *group = &waiting->groups[g];

		for (size_t from = 0, to; from < waiting->rows; from = to) {
			const struct stg_row *first = &job->rows[job->order[from]];

			to = from + 1;
			while (to < waiting->rows &&
			       (group->id != STG_PROCESS || job->rows[job->order[to]].leader == first->leader))
				to++;
			for (size_t b = 0; b < waiting->bins; b++) {
				if (split(waiting, group, job, from, to, b))
					return -ENOMEM;
			}
		}
	}
	return 0;
}

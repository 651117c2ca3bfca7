/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/reference.h"

#include "model/judgement.h"

#include <math.h>
#include <stdbool.h>

struct group {
	double n, sum_ns;
	double peak, peak_density; /* fragments of the fullest cell, and per logarithmic width */
};

enum { GROUPS_MAX = 64 }; /* further groups do not matter and are not separated */

/* Groups are found on norm cells: in finer buckets a few dozen fragments have peaks by chance. */
struct cell {
	uint32_t index;
	double n, sum_ns;
};

static double density(const struct cell *cell)
{
	return cell->n / histogram__log_width(cell->index);
}

/* Sums the cell from bucket *at on, and moves *at behind it. */
static struct cell next_cell(const struct histogram *histogram, size_t *at)
{
	struct cell cell = {.index = histogram->buckets[*at].index / HISTOGRAM_PER_CELL};

	for (; *at < histogram->count && histogram->buckets[*at].index / HISTOGRAM_PER_CELL == cell.index; ++*at) {
		cell.n += histogram->buckets[*at].n;
		cell.sum_ns += histogram->buckets[*at].sum_ns;
	}
	return cell;
}

/*
 * A valley separates two groups when it is less than half as dense as the lower of the two peaks and
 * the difference cannot be chance (two standard deviations of counts).
 */
static bool parts(const struct group *left, const struct cell *peak, double valley_n, double valley_density)
{
	bool left_lower = left->peak_density < density(peak);
	double low_density = left_lower ? left->peak_density : density(peak);
	double low_n = left_lower ? left->peak : peak->n;

	return valley_density < SHARE_MOST * low_density && low_n - valley_n > SIGMAS_VALLEY * sqrt(low_n + valley_n);
}

static void take(struct group *group, struct group *tail)
{
	group->n += tail->n;
	group->sum_ns += tail->sum_ns;
	*tail = (struct group){0};
}

static size_t find_groups(const struct histogram *histogram, struct group *groups)
{
	size_t count = 0;
	uint32_t last = 0;
	double valley_density = INFINITY, valley_n = 0;
	struct group tail = {0}; /* cells since the valley, of no group yet */

	for (size_t i = 0; i < histogram->count;) {
		struct cell cell = next_cell(histogram, &i);
		/* An empty cell is a valley by itself: one far outlier must not shift the mean of many. */
		bool gap = count && cell.index > last + 1;
		struct group *group = count ? &groups[count - 1] : NULL;

		last = cell.index;
		if (group && gap)
			take(group, &tail);
		if (!group || ((gap || parts(group, &cell, valley_n, valley_density)) && count < GROUPS_MAX)) {
			groups[count++] =
			    (struct group){tail.n + cell.n, tail.sum_ns + cell.sum_ns, cell.n, density(&cell)};
			tail = (struct group){0};
			valley_density = INFINITY;
			continue;
		}
		tail.n += cell.n;
		tail.sum_ns += cell.sum_ns;
		if (density(&cell) > group->peak_density) {
			/* A rise without a real valley: the group's peak moves here. */
			group->peak = cell.n;
			group->peak_density = density(&cell);
			valley_density = INFINITY;
			take(group, &tail);
		} else if (density(&cell) < valley_density) {
			valley_density = density(&cell);
			valley_n = cell.n;
			take(group, &tail);
		}
	}
	if (count)
		take(&groups[count - 1], &tail);
	return count;
}

/*
 * Whether a group has its share of the fragments, or of the time: few heavy computations among many light ones are
 * separate work, unless they are a few outliers.
 */
static bool has_share(const struct histogram *histogram, const struct group *group, double share)
{
	return group->n >= share * histogram->n ||
	       (group->n >= LEAST_MEMBERS && group->sum_ns >= share * histogram->sum_ns);
}

static bool is_near(const struct histogram *histogram, size_t bucket, const struct group *group, double width)
{
	double mean = histogram->buckets[bucket].sum_ns / histogram->buckets[bucket].n;
	double group_mean = group->sum_ns / group->n;

	return fabs(mean - group_mean) <= width * group_mean;
}

/* Whether a group is a duration: most of its time is near its mean. Work that varies has a mean, and no duration. */
static bool is_duration(const struct histogram *histogram, const struct group *group, double width)
{
	double near_ns = 0;

	for (size_t b = 0; b < histogram->count; b++)
		near_ns += is_near(histogram, b, group, width) ? histogram->buckets[b].sum_ns : 0;
	return near_ns >= SHARE_MOST * group->sum_ns;
}

/* Drops groups that are no duration, where there is a populous one that is. Returns how many are left. */
static size_t drop_varying(const struct histogram *histogram, const struct vapro_config *config, struct group *groups,
			   size_t count)
{
	bool is[GROUPS_MAX], any = false;
	size_t live = 0;

	for (size_t i = 0; i < count; i++) {
		is[i] = is_duration(histogram, &groups[i], config->certify_width);
		any |= is[i] && groups[i].n >= config->populous_share * histogram->n;
	}
	for (size_t i = 0; i < count; i++) {
		if (is[i] || !any)
			groups[live++] = groups[i];
	}
	return live;
}

struct reference reference__of(const struct histogram *histogram, const struct vapro_config *config)
{
	struct group groups[GROUPS_MAX];
	struct reference reference = {0};
	size_t count = find_groups(histogram, groups);
	double near_ns = 0;

	count = drop_varying(histogram, config, groups, count);
	for (size_t i = 0; i < count; i++) {
		if (groups[i].n >= config->populous_share * histogram->n && !reference.groups++)
			reference.expected_ns = groups[i].sum_ns / groups[i].n;
		if (has_share(histogram, &groups[i], SHARE_MEANINGFUL) && reference.centre_count < REFERENCE_CENTRES)
			reference.centre_ns[reference.centre_count++] = groups[i].sum_ns / groups[i].n;
	}
	if (!reference.groups && histogram->n > 0) {
		/* No group is populous: the median bucket certifies nothing. */
		double seen = 0;

		for (size_t i = 0; i < histogram->count; i++) {
			seen += histogram->buckets[i].n;
			if (seen * 2 >= histogram->n) {
				reference.expected_ns = histogram->buckets[i].sum_ns / histogram->buckets[i].n;
				break;
			}
		}
		return reference;
	}
	for (size_t i = 0; i < count; i++)
		reference.near_groups += has_share(histogram, &groups[i], config->populous_share);
	for (size_t b = 0; b < histogram->count; b++) {
		for (size_t i = 0; i < count; i++) {
			if (has_share(histogram, &groups[i], config->populous_share) &&
			    is_near(histogram, b, &groups[i], config->certify_width)) {
				near_ns += histogram->buckets[b].sum_ns;
				break;
			}
		}
	}
	if (histogram->sum_ns > 0)
		reference.near_share = near_ns / histogram->sum_ns;
	return reference;
}

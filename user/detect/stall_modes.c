// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/stall_modes.h"

#include "model/histogram.h"
#include "model/judgement.h"

#include <math.h>
#include <stdbool.h>

#define NEAR_SHARE 0.7 /* of a mode's stalls within RATIO_ALIKE of its median: less is no length of its own */

/* Peaks and valleys are found on norm cells: in finer buckets a few dozen stalls have peaks by chance. */
struct stall_cell {
	uint32_t index;
	size_t begin, end; /* buckets */
	uint64_t n;
};

/* The linear width of a norm cell, ns, is that of its buckets: HISTOGRAM_PER_CELL equal ones. */
static double bucket_width(uint32_t index)
{
	return index < HISTOGRAM_PER_OCTAVE ? 1 : ldexp(1, (int)(index >> HISTOGRAM_OCTAVE_BITS) - 1);
}

static double least_of_bucket(uint32_t index)
{
	if (index < HISTOGRAM_PER_OCTAVE)
		return index;
	return bucket_width(index) * (HISTOGRAM_PER_OCTAVE + index % HISTOGRAM_PER_OCTAVE);
}

static double width(const struct stall_cell *cell)
{
	return bucket_width(cell->index * HISTOGRAM_PER_CELL) * HISTOGRAM_PER_CELL;
}

static double density(const struct stall_cell *cell)
{
	return (double)cell->n / width(cell);
}

/* Sums buckets to cells. Returns the number of cells. */
static size_t find_cells(const struct stall_bucket *buckets, size_t count, struct stall_cell *cells)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t index = buckets[i].index / HISTOGRAM_PER_CELL;

		if (!used || cells[used - 1].index != index)
			cells[used++] = (struct stall_cell){.index = index, .begin = i};
		cells[used - 1].end = i + 1;
		cells[used - 1].n += buckets[i].n;
	}
	return used;
}

/* Whether a density beside a peak is a valley: below half of the peak, and not by chance. */
static bool is_valley(const struct stall_cell *peak, double valley_density)
{
	double there = valley_density * width(peak); /* stalls that the peak would have at that density */

	return there < SHARE_MOST * (double)peak->n &&
	       (double)peak->n - there > SIGMAS_UNUSUAL * sqrt((double)peak->n + there);
}

/*
 * Finds the valley beside a peak, in the direction of step, up to a higher peak. *last: the last cell before the
 * valley. Returns the least density there; 0 where a cell is empty.
 */
static double find_valley(const struct stall_cell *cells, size_t count, size_t peak, int step, size_t *last)
{
	double least = INFINITY;

	*last = peak;
	for (size_t at = peak;;) {
		size_t next = at + (size_t)step;

		if (next >= count || cells[next].index != cells[at].index + (uint32_t)step) {
			*last = at;
			return 0;
		}
		if (density(&cells[next]) > density(&cells[peak]))
			return least;
		if (density(&cells[next]) < least) {
			least = density(&cells[next]);
			*last = at;
		}
		at = next;
	}
}

/* The cells around a peak that are part of it: down to a tenth of its density, and not beyond its valleys. */
static void trim(const struct stall_cell *cells, size_t peak, size_t *from, size_t *to)
{
	double least = SHARE_MEANINGFUL * density(&cells[peak]);
	size_t low = peak, high = peak;

	while (low > *from && density(&cells[low - 1]) >= least)
		low--;
	while (high < *to && density(&cells[high + 1]) >= least)
		high++;
	*from = low;
	*to = high;
}

static double mean_of(const struct stall_bucket *bucket)
{
	return (double)bucket->ns / (double)bucket->n;
}

static double median_of(const struct stall_bucket *buckets, size_t begin, size_t end, uint64_t n)
{
	uint64_t before = 0;

	for (size_t i = begin; i < end; i++) {
		before += buckets[i].n;
		if (2 * before >= n)
			return mean_of(&buckets[i]);
	}
	return 0;
}

/* Whether the stalls of the cells [from, to] have one length, which lies above what could not be seen. */
static bool has_length(const struct stall_bucket *buckets, const struct stall_cell *cells, size_t from, size_t to,
		       double *median)
{
	uint64_t n = 0, near = 0, edge_ns = 0;

	for (size_t i = cells[from].begin; i < cells[to].end; i++) {
		n += buckets[i].n;
		edge_ns += buckets[i].edge_ns;
	}
	if (n < LEAST_FRAGMENTS || !cells[from].index)
		return false;
	/* the cell below the first one is the valley: it must have been in sight */
	if (least_of_bucket((cells[from].index - 1) * HISTOGRAM_PER_CELL) * (double)n < (double)edge_ns)
		return false;
	*median = median_of(buckets, cells[from].begin, cells[to].end, n);
	for (size_t i = cells[from].begin; i < cells[to].end; i++) {
		double mean = mean_of(&buckets[i]);

		near += mean <= RATIO_ALIKE * *median && mean * RATIO_ALIKE >= *median ? buckets[i].n : 0;
	}
	return (double)near >= NEAR_SHARE * (double)n;
}

/* Describes the mode around a peak. Returns whether there is one. */
static bool mode_of(const struct stall_bucket *buckets, const struct stall_cell *cells, size_t count, size_t peak,
		    struct stall_mode *mode)
{
	size_t from, to, low, high;
	double median;

	if (!is_valley(&cells[peak], find_valley(cells, count, peak, -1, &from)) ||
	    !is_valley(&cells[peak], find_valley(cells, count, peak, 1, &to)))
		return false;
	low = from;
	high = to;
	trim(cells, peak, &low, &high);
	if (!has_length(buckets, cells, low, high, &median))
		return false;
	/* of the foot of the mode on either side what may be of its length */
	*mode = (struct stall_mode){.low = UINT32_MAX};
	for (size_t i = cells[from].begin; i < cells[to].end; i++) {
		double mean = mean_of(&buckets[i]);

		if (mean > RATIO_APART * median || mean * RATIO_APART < median)
			continue;
		mode->low = mode->low == UINT32_MAX ? buckets[i].index : mode->low;
		mode->high = buckets[i].index;
		mode->n += buckets[i].n;
		mode->ns += buckets[i].ns;
	}
	return true;
}

/* Adds a mode; of too many the one with the least time goes. */
static void add(struct stall_mode *modes, size_t *count, const struct stall_mode *mode)
{
	size_t least = 0;

	if (*count < STALL_MODES) {
		modes[(*count)++] = *mode;
		return;
	}
	for (size_t i = 1; i < STALL_MODES; i++)
		least = modes[i].ns < modes[least].ns ? i : least;
	if (modes[least].ns >= mode->ns)
		return;
	for (size_t i = least; i + 1 < STALL_MODES; i++)
		modes[i] = modes[i + 1];
	modes[STALL_MODES - 1] = *mode;
}

size_t stall_modes__find(const struct stall_bucket *buckets, size_t count, struct stall_mode *modes)
{
	struct stall_cell cells[HISTOGRAM_BUCKETS / HISTOGRAM_PER_CELL];
	size_t cell_count = find_cells(buckets, count, cells), found = 0;

	for (size_t i = 0; i < cell_count; i++) {
		struct stall_mode mode;

		/* of equally dense neighbours the first one is the peak */
		if (i && cells[i - 1].index + 1 == cells[i].index && density(&cells[i - 1]) >= density(&cells[i]))
			continue;
		if (mode_of(buckets, cells, cell_count, i, &mode))
			add(modes, &found, &mode);
	}
	return found;
}

void stall_modes__count(const struct stall_bucket *buckets, size_t count, uint32_t low, uint32_t high, uint64_t *n,
			uint64_t *ns)
{
	*n = *ns = 0;
	for (size_t i = 0; i < count && buckets[i].index <= high; i++) {
		if (buckets[i].index < low)
			continue;
		*n += buckets[i].n;
		*ns += buckets[i].ns;
	}
}

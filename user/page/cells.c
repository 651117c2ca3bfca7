// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/cells.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define MARGIN 10     /* bins before and after a region in full resolution */
#define NEARLY_ALL 95 /* the first percentage that is rounded, */
#define ALL 97	      /* and that to which it is */
#define STEP 5	      /* of waiting, percent */

uint8_t cells__byte(double performance, enum cells_rounding rounding)
{
	long percent;

	if (isnan(performance))
		return 0;
	percent = lround(100 * fmin(fmax(performance, 0), 1));
	if (rounding == CELLS_SPEED && percent >= NEARLY_ALL)
		percent = ALL;
	if (rounding == CELLS_WAITING)
		percent = (percent + STEP / 2) / STEP * STEP;
	return (uint8_t)(percent + 1);
}

static int add_part(struct cells *cells, uint64_t first, uint64_t end, uint64_t bins)
{
	uint64_t columns = (end - first + bins - 1) / bins;

	if (first == end)
		return 0;
	if (grow(&cells->parts, &cells->part_capacity, cells->part_count + 1, sizeof(*cells->parts)))
		return -ENOMEM;
	cells->parts[cells->part_count++] = (struct cells_part){first, (uint32_t)columns, (uint32_t)bins};
	cells->columns += columns;
	return 0;
}

/* Marks the bins that are shown in full resolution, at most `most`. Returns how many. */
static uint64_t mark(const struct view_map *map, const struct cells_interval *intervals, size_t count, uint64_t most,
		     bool *fine)
{
	uint64_t marked = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t first = intervals[i].first > map->first + MARGIN ? intervals[i].first - MARGIN : map->first;
		uint64_t end = intervals[i].end + MARGIN < map->end ? intervals[i].end + MARGIN : map->end;

		for (uint64_t bin = first; bin < end && marked < most; bin++) {
			marked += !fine[bin - map->first];
			fine[bin - map->first] = true;
		}
	}
	return marked;
}

/* Divides the time of a map so that a row has at most `most` columns, give or take those at the ends of parts. */
static int divide(struct cells *cells, const struct view_map *map, const struct cells_interval *intervals, size_t count,
		  uint64_t most)
{
	uint64_t bins = map->end - map->first, marked, step;
	bool *fine;
	int ret = 0;

	if (bins <= most)
		return add_part(cells, map->first, map->end, 1);
	fine = calloc(bins, sizeof(*fine));
	if (!fine)
		return -ENOMEM;
	marked = mark(map, intervals, count, most / 2, fine);
	step = (bins - marked + most - marked - 1) / (most - marked);
	for (uint64_t first = 0, end; !ret && first < bins; first = end) {
		for (end = first + 1; end < bins && fine[end] == fine[first]; end++)
			;
		ret = add_part(cells, map->first + first, map->first + end, fine[first] ? 1 : step);
	}
	free(fine);
	return ret;
}

/* Fills a row from its bins. */
static void fill(struct cells *cells, const struct view_map *map, const double *values, size_t row)
{
	uint8_t *worst = cells->worst + row * cells->columns;
	uint8_t *mean = cells->mean ? cells->mean + row * cells->columns : NULL;

	for (size_t p = 0; p < cells->part_count; p++) {
		const struct cells_part *part = &cells->parts[p];

		for (uint32_t column = 0; column < part->columns; column++) {
			uint64_t from = part->first - map->first + (uint64_t)column * part->bins;
			uint64_t to = from + part->bins;
			double least = NAN, sum = 0;
			unsigned known = 0;

			/* the last column of a part ends with it */
			if (column + 1 == part->columns)
				to = p + 1 < cells->part_count ? cells->parts[p + 1].first - map->first
							       : map->end - map->first;
			for (uint64_t bin = from; bin < to; bin++) {
				if (isnan(values[bin]))
					continue;
				least = fmin(least, values[bin]); /* the number, if one is NAN */
				sum += values[bin];
				known++;
			}
			*worst++ = cells__byte(least, cells->rounding);
			if (mean)
				*mean++ = part->bins > 1 && known ? cells__byte(sum / known, cells->rounding) : 0;
		}
	}
}

int cells__make(struct cells *cells, const struct view_map *map, const struct cells_interval *intervals, size_t count,
		size_t most, enum cells_rounding rounding)
{
	uint64_t bins = map->end - map->first;
	double *values = malloc((bins + 1) * sizeof(*values));
	int ret = values ? 0 : -ENOMEM;

	*cells = (struct cells){.rows = map->row_count, .rounding = rounding};
	if (!ret)
		ret = divide(cells, map, intervals, count, map->row_count ? most / map->row_count + 2 : bins);
	if (!ret) {
		cells->worst = calloc(cells->rows * cells->columns + 1, 1);
		if (cells->columns < bins)
			cells->mean = calloc(cells->rows * cells->columns + 1, 1);
		if (!cells->worst || (cells->columns < bins && !cells->mean))
			ret = -ENOMEM;
	}
	for (size_t row = 0; !ret && row < cells->rows; row++) {
		ret = view_model__cells(map, row, row + 1, 1, bins, values);
		if (!ret)
			fill(cells, map, values, row);
	}
	free(values);
	return ret;
}

void cells__free(struct cells *cells)
{
	free(cells->worst);
	free(cells->mean);
	free(cells->parts);
	*cells = (struct cells){.rows = 0};
}

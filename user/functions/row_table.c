// SPDX-License-Identifier: GPL-2.0-or-later
/* The number space of all rows, and the rows that are added while running. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "functions/functions.h"

#define ROWS_MAX (KERNEL_FUNCTIONS - 1) /* the last one is the calibration's */

static struct {
	struct function_row rows[ROWS_MAX];
	uint64_t dropped[ROWS_MAX]; /* `drops` at the time; 0 = in use */
	unsigned int count;
	uint64_t drops;
} added;

static unsigned int first_added(void)
{
	return function_row_count + thread_row_count;
}

const struct function_row *functions__row(unsigned int number)
{
	if (number < function_row_count)
		return &function_rows[number];
	number -= function_row_count;
	if (number < thread_row_count)
		return &thread_rows[number];
	number -= thread_row_count;
	return number < added.count ? &added.rows[number] : NULL;
}

unsigned int functions__end(void)
{
	return first_added() + added.count;
}

static void clear_row(struct function_row *row)
{
	free((char *)row->symbol);
	free((char *)row->image);
	memset(row, 0, sizeof(*row));
}

static unsigned int oldest_dropped(void)
{
	unsigned int oldest = added.count;

	for (unsigned int i = 0; i < added.count; i++)
		if (added.dropped[i] && (oldest == added.count || added.dropped[i] < added.dropped[oldest]))
			oldest = i;
	return oldest;
}

int functions__add(const struct function_row *row)
{
	struct function_row copy = *row;
	unsigned int at = added.count;

	if (first_added() + at >= ROWS_MAX) {
		at = oldest_dropped();
		if (at == added.count)
			return -ENOSPC;
	}
	copy.symbol = strdup(row->symbol);
	copy.image = row->image ? strdup(row->image) : NULL;
	if (!copy.symbol || (row->image && !copy.image)) {
		clear_row(&copy);
		return -ENOMEM;
	}
	if (at < added.count)
		clear_row(&added.rows[at]);
	else
		added.count++;
	added.rows[at] = copy;
	added.dropped[at] = 0;
	return (int)(first_added() + at);
}

/* A dropped row's texts stay: its calls may still have to be reported. */
void functions__drop(unsigned int number)
{
	if (number >= first_added() && number < functions__end())
		added.dropped[number - first_added()] = ++added.drops;
}

void functions__clear(void)
{
	for (unsigned int i = 0; i < added.count; i++)
		clear_row(&added.rows[i]);
	memset(&added, 0, sizeof(added));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A rectangle of character cells: what `vapro top` shows, before it is put on a terminal or printed as text. */
#ifndef VAPRO_TOP_GRID_H
#define VAPRO_TOP_GRID_H

#include <stdint.h>
#include <stdio.h>

enum grid_style {
	GRID_PLAIN,
	GRID_DIM,
	GRID_BOLD,
	GRID_TITLE,  /* of a table, or a bar of keys */
	GRID_CURSOR, /* the selected row */
	GRID_GOOD,
	GRID_FAIR,
	GRID_BAD,
	GRID_STYLES,
};

struct grid_cell {
	uint32_t character; /* Unicode, of one column */
	enum grid_style style;
};

struct grid {
	unsigned width, height;
	struct grid_cell *cells; /* by rows */
};

/* Makes a blank grid of a size; what it held is lost. Returns 0 or -ENOMEM. */
int grid__resize(struct grid *grid, unsigned width, unsigned height);
void grid__free(struct grid *grid);

/*
 * Writes text from a cell on, in at most `most` columns and not beyond the row; returns the columns written. Control
 * characters, characters that take no column or two, and bytes that are no UTF-8 become question marks.
 */
unsigned grid__put(struct grid *grid, unsigned row, unsigned column, unsigned most, enum grid_style style,
		   const char *text);

/* As grid__put, up to the row's end. */
__attribute__((format(printf, 5, 6))) unsigned grid__print(struct grid *grid, unsigned row, unsigned column,
							   enum grid_style style, const char *format, ...);

/* As grid__put, with text that is too long cut by "..", or set to the right. */
void grid__left(struct grid *grid, unsigned row, unsigned column, unsigned width, enum grid_style style,
		const char *text);
void grid__right(struct grid *grid, unsigned row, unsigned column, unsigned width, enum grid_style style,
		 const char *text);

/* Gives a whole row a style. */
void grid__style(struct grid *grid, unsigned row, enum grid_style style);

/* Writes the rows as UTF-8 text, without blanks at their ends. */
void grid__write(const struct grid *grid, FILE *out);

#endif

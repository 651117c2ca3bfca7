// SPDX-License-Identifier: GPL-2.0-or-later
#include "top/grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

int grid__resize(struct grid *grid, unsigned width, unsigned height)
{
	struct grid_cell *cells = malloc(((size_t)width * height + 1) * sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)width * height; i++)
		cells[i] = (struct grid_cell){.character = ' '};
	free(grid->cells);
	*grid = (struct grid){width, height, cells};
	return 0;
}

void grid__free(struct grid *grid)
{
	free(grid->cells);
	*grid = (struct grid){0};
}

/* Reads a character of UTF-8; what is none is read as one byte, as a question mark. Returns its length. */
static size_t read_character(const char *text, uint32_t *character)
{
	const unsigned char *byte = (const unsigned char *)text;
	size_t length = *byte < 0x80 ? 1 : (*byte & 0xe0) == 0xc0 ? 2 : (*byte & 0xf0) == 0xe0 ? 3 : 4;
	uint32_t code = length == 1 ? *byte : *byte & (0xffU >> (length + 1));

	for (size_t i = 1; i < length; i++) {
		if ((byte[i] & 0xc0) != 0x80) {
			*character = '?';
			return 1;
		}
		code = code << 6 | (byte[i] & 0x3f);
	}
	*character = code >= ' ' && code < 0x7f ? code : code > 0x9f && wcwidth((wchar_t)code) == 1 ? code : '?';
	return length;
}

unsigned grid__put(struct grid *grid, unsigned row, unsigned column, unsigned most, enum grid_style style,
		   const char *text)
{
	unsigned used = 0;

	if (row >= grid->height)
		return 0;
	for (; *text && used < most && column + used < grid->width; used++) {
		struct grid_cell *cell = &grid->cells[(size_t)row * grid->width + column + used];

		text += read_character(text, &cell->character);
		cell->style = style;
	}
	return used;
}

unsigned grid__print(struct grid *grid, unsigned row, unsigned column, enum grid_style style, const char *format, ...)
{
	char text[2048];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return grid__put(grid, row, column, grid->width, style, text);
}

static unsigned columns_of(const char *text)
{
	unsigned columns = 0;
	uint32_t character;

	for (; *text; columns++)
		text += read_character(text, &character);
	return columns;
}

void grid__left(struct grid *grid, unsigned row, unsigned column, unsigned width, enum grid_style style,
		const char *text)
{
	if (column + width > grid->width)
		width = column < grid->width ? grid->width - column : 0;
	if (columns_of(text) <= width || width < 3) {
		grid__put(grid, row, column, width, style, text);
		return;
	}
	grid__put(grid, row, column, width - 2, style, text);
	grid__put(grid, row, column + width - 2, 2, style, "..");
}

void grid__right(struct grid *grid, unsigned row, unsigned column, unsigned width, enum grid_style style,
		 const char *text)
{
	unsigned columns = columns_of(text);

	grid__put(grid, row, column + (columns < width ? width - columns : 0), width, style, text);
}

void grid__style(struct grid *grid, unsigned row, enum grid_style style)
{
	for (unsigned column = 0; row < grid->height && column < grid->width; column++)
		grid->cells[(size_t)row * grid->width + column].style = style;
}

static void write_character(uint32_t code, FILE *out)
{
	if (code < 0x80) {
		putc((int)code, out);
	} else if (code < 0x800) {
		putc((int)(0xc0 | code >> 6), out);
		putc((int)(0x80 | (code & 0x3f)), out);
	} else {
		if (code < 0x10000) {
			putc((int)(0xe0 | code >> 12), out);
		} else {
			putc((int)(0xf0 | code >> 18), out);
			putc((int)(0x80 | (code >> 12 & 0x3f)), out);
		}
		putc((int)(0x80 | (code >> 6 & 0x3f)), out);
		putc((int)(0x80 | (code & 0x3f)), out);
	}
}

void grid__write(const struct grid *grid, FILE *out)
{
	for (unsigned row = 0; row < grid->height; row++) {
		const struct grid_cell *cells = &grid->cells[(size_t)row * grid->width];
		unsigned length = grid->width;

		while (length && cells[length - 1].character == ' ')
			length--;
		for (unsigned column = 0; column < length; column++)
			write_character(cells[column].character, out);
		putc('\n', out);
	}
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Libraries between a program and MPI, by what they define and what they need of others. Names of Fortran are those of
 * C in letters of one case, with or without underscores behind them.
 */
#include <string.h>
#include <strings.h>

#include "functions/functions.h"
#include "probe/elf/transparent.h"

enum { NAME_MOST = 64 }; /* bytes of a function's name, underscores of Fortran included */

/* What is known of a function of MPI, as bits. */
enum {
	DEFINES_C = 1,
	DEFINES_FORTRAN = 2,
	DEFINES_PROFILED = 4, /* PMPI_X, in either language */
	NEEDS_C = 8,
	NEEDS_FORTRAN = 16,
	NEEDS_PROFILED = 32,
};

struct signs {
	bool defining;			     /* the names are of definitions */
	bool looks_up;			     /* it asks the linker for names */
	uint8_t functions[KERNEL_FUNCTIONS]; /* by row */
};

/* Finds the row of a name of Fortran, or -1. */
static int find_fortran(const char *name)
{
	char bare[NAME_MOST];
	size_t length = strlen(name);

	if (length >= sizeof(bare) || strncasecmp(name, "mpi_", 4))
		return -1;
	while (length && name[length - 1] == '_')
		length--;
	memcpy(bare, name, length);
	bare[length] = '\0';
	for (unsigned int i = 0; i < function_row_count; i++)
		if (!strcasecmp(function_rows[i].symbol, bare))
			return (int)i;
	return -1;
}

static int note(const char *name, void *ctx)
{
	struct signs *signs = ctx;
	bool profiled = *name == 'P' || *name == 'p', fortran = false;
	int row;

	signs->looks_up |= !signs->defining && !strcmp(name, "dlsym");
	if (strncasecmp(name + profiled, "mpi_", 4))
		return 0;
	row = functions__find(name);
	if (row < 0) {
		row = find_fortran(name + profiled);
		fortran = true;
	}
	if (row < 0)
		return 0;
	if (signs->defining)
		signs->functions[row] |= profiled ? DEFINES_PROFILED : fortran ? DEFINES_FORTRAN : DEFINES_C;
	else
		signs->functions[row] |= profiled ? NEEDS_PROFILED : fortran ? NEEDS_FORTRAN : NEEDS_C;
	return 0;
}

/* Whether a function's call is passed on. */
static bool passes(const struct signs *signs, uint8_t function)
{
	if (function & DEFINES_C)
		return function & NEEDS_PROFILED || signs->looks_up;
	return function & DEFINES_FORTRAN && function & (NEEDS_PROFILED | NEEDS_C);
}

/*
 * Whether the library calls a function by the name by which programs call it, and does not only pass it on. What is not
 * probed at all, such as questions about ranks, does not count.
 */
static bool calls(const struct function_row *row, uint8_t function)
{
	return !row->polling && (function & NEEDS_FORTRAN || (function & NEEDS_C && !(function & DEFINES_FORTRAN)));
}

bool transparent__passes_on(struct image *image)
{
	int send = functions__find("MPI_Send");
	struct signs signs = {.defining = true};
	bool any = false;

	if (image__is_program(image))
		return false;
	image__definitions(image, note, &signs);
	if (send < 0 || (signs.functions[send] & DEFINES_C && signs.functions[send] & DEFINES_PROFILED))
		return false; /* an MPI library */
	signs.defining = false;
	image__references(image, note, &signs);
	for (unsigned int i = 0; i < function_row_count; i++) {
		if (calls(&function_rows[i], signs.functions[i]))
			return false;
		any |= passes(&signs, signs.functions[i]);
	}
	return any;
}

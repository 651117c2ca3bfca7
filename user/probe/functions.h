/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * External functions as data (ARCHITECTURE section 5): one row per function says what each argument
 * means. The kernel side reads arguments by these roles; nothing else knows a function by name.
 */
#ifndef VAPRO_FUNCTIONS_H
#define VAPRO_FUNCTIONS_H

#include <vapro/bundle.h>
#include <vapro/kernel.h>

struct function_row {
	const char *symbol; /* MPI_Send */
	enum vapro_class class;
	bool blocking;		  /* may wait for a peer */
	bool polling;		  /* off by default: called in loops, or bookkeeping only */
	bool common;		  /* of the few to probe where each probe is dear */
	struct vapro_roles roles; /* which argument means what; shared with the kernel side */
};

extern const struct function_row function_rows[];
extern const unsigned int function_row_count;

#define FUNCTIONS_COMMON_MAX 40

/* Index of the row of a symbol, or -1. PMPI_X finds MPI_X. */
int functions__find(const char *symbol);

/* Bit i set where the row reads argument i; for site__choose. Arguments on the stack are not counted. */
unsigned int functions__arguments(const struct function_row *row);

#endif

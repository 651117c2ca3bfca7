/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states of a capture as a table for a person: in lines of a terminal's width, or one line each. */
#ifndef VAPRO_STG_TABLE_H
#define VAPRO_STG_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <vapro/bundle.h>

struct stg_table_row {
	enum vapro_class class;
	uint64_t calls;
	double seconds, least_s, most_s; /* of all calls, of the shortest and of the longest one */
	int64_t clusters;		 /* -1: its workloads have no measure */
	const char *place;		 /* where it is, in words */
	const char *labels;
	const char *from, *to; /* call-sites; from NULL: a vertex */
};

struct stg_table_options {
	unsigned width; /* columns; 0: one line a state, however long */
	bool all;	/* also states inside MPI's own libraries */
};

/* Returns whether a state lies inside a library that MPI consists of: its calls are not the program's. */
bool stg_table_row__internal(const struct stg_table_row *row);

/* Prints the rows in their order. */
void stg_table__print(const struct stg_table_row *rows, size_t count, FILE *out,
		      const struct stg_table_options *options);

#endif

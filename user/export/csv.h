/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run as tables of comma-separated values (RFC 4180, UTF-8, a first line with the names of the columns), which
 * spreadsheets, R and pandas read. Texts are as they were recorded; a field without a value is empty. Times that end in
 * _s are seconds from the run's begin, which jobs.csv has as UTC; shares end in _pct, performance is 0 to 1.
 */
#ifndef VAPRO_EXPORT_CSV_H
#define VAPRO_EXPORT_CSV_H

#include <stdio.h>

#include "page/run_report.h"

/* A table, which is a file of a folder. */
struct csv_table {
	const char *name;  /* of the file: "cells.csv" */
	const char *begin; /* its first line, by which it is recognised */
	int (*write_rows)(const struct run_report *report, FILE *out);
};

#define CSV_TABLES 8
extern const struct csv_table csv_tables[CSV_TABLES];

/* Writes a table. Returns 0, or a negative errno where memory or out fails. */
int csv__write(const struct csv_table *table, const struct run_report *report, FILE *out);

#endif

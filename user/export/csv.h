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
#include "report/record.h"

/* A table, which is a file of a folder. */
struct csv_table {
	const char *name;  /* of the file: "cells.csv" */
	const char *begin; /* its first line, by which it is recognised */
	int (*write_rows)(const struct run_report *report, FILE *out);
};

#define CSV_TABLES 9
extern const struct csv_table csv_tables[CSV_TABLES];

/* Writes a table. Returns 0, or a negative errno where memory or out fails. */
int csv__write(const struct csv_table *table, const struct run_report *report, FILE *out);

/* What the files of tables share: fields of a row, and the tables of their own files. */

/* A row that is written: each field but the first follows a comma. */
struct csv_row {
	FILE *out;
	bool begun, out_of_memory;
};

/* Write a field; what is NULL or NAN is an empty one. */
void csv__text(struct csv_row *row, const char *text);
void csv__number(struct csv_row *row, double value);
void csv__integer(struct csv_row *row, int64_t value);
void csv__flag(struct csv_row *row, bool value); /* true or false */
void csv__time(struct csv_row *row, uint64_t utc_ns);
void csv__list(struct csv_row *row, const char *const *items, size_t count); /* one field, joined by blanks */
void csv__end(struct csv_row *row);

/* Returns what a job is called where it is shown: user as in struct vapro_thread. */
const char *csv__job(const struct run_report *report, const char *said, uint32_t user);

/* Returns seconds from the run's begin. */
double csv__seconds(const struct run_report *report, uint64_t utc_ns);

/* Writes seconds from the run's begin, where the record has the time. */
void csv__time_of(const struct run_report *report, struct csv_row *row, const cJSON *object, enum record_row key);

/* Returns what the job of a record is called where it is shown. */
const char *csv__job_of(const struct run_report *report, const cJSON *record);

/* csv_regions.c, csv_hangs.c, csv_noise.c, csv_variability.c, csv_profile.c; each writes a table without its first line
 * and returns 0 or a negative errno. */
int csv__variances(const struct run_report *report, FILE *out);
int csv__causes(const struct run_report *report, FILE *out);
int csv__states(const struct run_report *report, FILE *out);
int csv__hangs(const struct run_report *report, FILE *out);
int csv__noise(const struct run_report *report, FILE *out);
int csv__variability(const struct run_report *report, FILE *out);
int csv__profile(const struct run_report *report, FILE *out);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/duration.h"
#include "base/wrap.h"
#include "cli/stg_table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "report/regions.h"

#define INDENT 6 /* of the text below the numbers of a state */

/* Beginnings of the names of libraries that Open MPI, MPICH and their transports consist of. */
static const char *const mpi_libraries[] = {
    "libpmix", "libevent", "libopen-pal", "libopen-rte", "libprrte",  "libmpi.so",   "libmpich.",  "libmpl.", "libucs.",
    "libucp.", "libuct.",  "libucm.",	  "libfabric.",	 "libhwloc.", "libibverbs.", "librdmacm.", "libpsm",  "mca_"};

static bool is_mpi(const char *site)
{
	for (size_t i = 0; site && i < sizeof(mpi_libraries) / sizeof(*mpi_libraries); i++) {
		if (!strncmp(site, mpi_libraries[i], strlen(mpi_libraries[i])))
			return true;
	}
	return false;
}

bool stg_table_row__internal(const struct stg_table_row *row)
{
	return is_mpi(row->from) || is_mpi(row->to);
}

/* Writes the flags of an open as people name them. */
static void print_mode(FILE *out, unsigned long mode)
{
	static const struct {
		unsigned long flag;
		const char *word;
	} words[] = {{O_CREAT, "create"},  {O_EXCL, "exclusive"},    {O_TRUNC, "truncate"},
		     {O_APPEND, "append"}, {O_NONBLOCK, "nonblock"}, {O_DIRECTORY, "directory"}};

	fputs((mode & O_ACCMODE) == O_RDONLY   ? "mode=read"
	      : (mode & O_ACCMODE) == O_WRONLY ? "mode=write"
					       : "mode=read+write",
	      out);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if ((mode & words[i].flag) == words[i].flag)
			fprintf(out, "+%s", words[i].word);
	}
}

/* Writes labels as people name them: communicators, and how a file was opened. */
static void print_labels(FILE *out, const char *labels)
{
	const char *between = "";

	while (*labels) {
		size_t length = strcspn(labels, " ");
		char *end;

		fputs(between, out);
		if (!strncmp(labels, "comm=0", 6) && length == 6)
			fputs("comm=world", out);
		else if (!strncmp(labels, "comm=1", 6) && length == 6)
			fputs("comm=self", out);
		else if (!strncmp(labels, "mode=0", 6))
			print_mode(out, strtoul(labels + 5, &end, 8));
		else
			fprintf(out, "%.*s", (int)length, labels);
		between = " ";
		labels += length + strspn(labels + length, " ");
	}
}

/* Returns "place [labels]"; malloc'ed, NULL when out of memory. */
static char *words_of(const struct stg_table_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s [", row->place);
	print_labels(out, row->labels);
	fputc(']', out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* Prints two lines or more a state: numbers, then words within the width. */
static void print_narrow(const struct stg_table_row *rows, size_t count, FILE *out,
			 const struct stg_table_options *options)
{
	fprintf(out, "%10s %11s %9s %9s %9s %8s  %s\n", "calls", "seconds", "mean", "least", "most", "clusters",
		"class");
	for (size_t i = 0; i < count; i++) {
		const struct stg_table_row *row = &rows[i];
		char mean[40], least[40], most[40], clusters[24] = "-", *words;

		if (!options->all && stg_table_row__internal(row))
			continue;
		duration__text(row->seconds / (double)row->calls, mean, sizeof(mean));
		duration__text(row->least_s, least, sizeof(least));
		duration__text(row->most_s, most, sizeof(most));
		if (row->clusters >= 0)
			snprintf(clusters, sizeof(clusters), "%lld", (long long)row->clusters);
		fprintf(out, "%10llu %11.4f %9s %9s %9s %8s  %s\n", (unsigned long long)row->calls, row->seconds, mean,
			least, most, clusters, vapro_class_name[row->class]);
		words = regions__defuse(words_of(row));
		if (words)
			wrap__print(out, "", words, INDENT, options->width);
		free(words);
	}
}

/* Prints one line a state. */
static void print_wide(const struct stg_table_row *rows, size_t count, FILE *out,
		       const struct stg_table_options *options)
{
	fprintf(out, "%10s %11s %11s %8s  %-13s  %s\n", "calls", "seconds", "mean us", "clusters", "class",
		"state [labels]");
	for (size_t i = 0; i < count; i++) {
		const struct stg_table_row *row = &rows[i];
		char clusters[24] = "-", *words;

		if (!options->all && stg_table_row__internal(row))
			continue;
		if (row->clusters >= 0)
			snprintf(clusters, sizeof(clusters), "%lld", (long long)row->clusters);
		words = words_of(row);
		fprintf(out, "%10llu %11.4f %11.1f %8s  %-13s  %s\n", (unsigned long long)row->calls, row->seconds,
			row->seconds * 1e6 / (double)row->calls, clusters, vapro_class_name[row->class],
			words ? words : row->place);
		free(words);
	}
}

static void print_hidden(const struct stg_table_row *rows, size_t count, FILE *out, unsigned width)
{
	uint64_t states = 0, calls = 0;
	double seconds = 0;
	char text[256], duration[40];

	for (size_t i = 0; i < count; i++) {
		if (!stg_table_row__internal(&rows[i]))
			continue;
		states++;
		calls += rows[i].calls;
		seconds += rows[i].seconds;
	}
	if (!states)
		return;
	snprintf(text, sizeof(text),
		 "%llu state%s inside MPI's own libraries (%llu calls, %s) %s hidden; --all shows them",
		 (unsigned long long)states, states == 1 ? "" : "s", (unsigned long long)calls,
		 duration__text(seconds, duration, sizeof(duration)), states == 1 ? "is" : "are");
	wrap__print(out, "", text, 0, width ? width : 1000);
}

void stg_table__print(const struct stg_table_row *rows, size_t count, FILE *out,
		      const struct stg_table_options *options)
{
	if (options->width)
		print_narrow(rows, count, out, options);
	else
		print_wide(rows, count, out, options);
	if (!options->all)
		print_hidden(rows, count, out, options->width);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/runs_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/wrap.h"

#define TEXT_MOST 1024
#define ROWS_MOST 20 /* in a list */
#define NAME_MOST 40 /* columns of a run's name */

static const char *const unit_words[] = {
    [COMPARE_RANKS] = "rank", [COMPARE_PROCESSES] = "process", [COMPARE_THREADS] = "thread"};

const char *runs_report__use(const struct runs_run *run)
{
	switch (run->use) {
	case RUNS_OTHER_PROGRAM:
		return "of another program";
	case RUNS_OTHER_RANKS:
		return "with another number of ranks";
	case RUNS_INCOMPARABLE:
		return "too short, or nothing in common";
	default:
		return "";
	}
}

/* The end of a name that is too long, in which files of one folder differ. */
static const char *short_name(const char *name, char *text, size_t size)
{
	size_t length = strlen(name);

	snprintf(text, size, "%s%s", length > NAME_MOST ? "..." : "",
		 length > NAME_MOST ? name + length - NAME_MOST + 3 : name);
	return printable(text);
}

static void print_runs(const struct runs *found, FILE *out)
{
	int width = 3;

	for (uint32_t i = 0; i < found->count; i++) {
		int length = (int)strlen(found->runs[i].name);

		width = length > width ? length : width;
	}
	width = width > NAME_MOST ? NAME_MOST : width;
	fprintf(out, "%-*s  %9s  %9s  %9s  %9s  %5s  %s\n", width, "run", "time", "of median", "equal work", "calls",
		"ranks", "hosts");
	for (uint32_t i = 0; i < found->count; i++) {
		const struct runs_run *run = &found->runs[i];
		char name[NAME_MOST + 4], host[256];

		fprintf(out, "%-*s  %7.1f s", width, short_name(run->name, name, sizeof(name)), run->seconds);
		if (run->use != RUNS_COMPARED) {
			snprintf(host, sizeof(host), "%s", run->program);
			fprintf(out, "  not compared: %s%s%s\n", runs_report__use(run), *host ? ", " : "",
				printable(host));
			continue;
		}
		snprintf(host, sizeof(host), "%s", run->host ? run->host : "?");
		fprintf(out, "  %8.3f%s  %9.3f%s  %9.3f  %5u  %u (%s%s)\n", run->time_ratio,
			run->time_outlying ? "!" : " ", run->work_ratio, run->work_outlying ? "!" : " ",
			run->calls_ratio, run->ranks, run->hosts, printable(host), run->hosts > 1 ? ", ..." : "");
	}
}

/* Names a state by its functions, or by the texts of its call-sites. */
static void name_state(const struct vapro_state *state, char *text, size_t size)
{
	const char *from = state->from_symbol ? state->from_symbol : state->from;
	const char *to = state->to_symbol ? state->to_symbol : state->to;

	if (!strcmp(state->to, vapro_class_name[state->class])) /* of the output of vaprod */
		snprintf(text, size, "all %s", state->to);
	else if (state->from)
		snprintf(text, size, "%s %s -> %s", vapro_class_name[state->class], from, to);
	else
		snprintf(text, size, "%s at %s", vapro_class_name[state->class], to);
}

static void say_chance(double p, char *text, size_t size)
{
	size_t used = strlen(text);

	if (p < 1e-9)
		snprintf(text + used, size - used, "p < 1e-9");
	else
		snprintf(text + used, size - used, p < 0.001 ? "p = %.0e" : "p = %.3f", p);
}

static void say_row(const struct runs *found, const struct runs_row *row, char *text, size_t size)
{
	const char *run = found->runs[row->run].name;
	char state[512];
	size_t used;

	name_state(row->state, state, sizeof(state));
	if (row->what == RUNS_HOST)
		snprintf(text, size, "host %s: ", row->host);
	else if (row->what == RUNS_RANK)
		snprintf(text, size, "%s %d on %s: ", unit_words[found->unit_kind], row->rank, row->host);
	else
		snprintf(text, size, "%s: ", state);
	used = strlen(text);
	snprintf(text + used, size - used, "%.3f times the usual time for equal work (%+.2f s) in %s", row->ratio,
		 row->seconds, run);
	used = strlen(text);
	if (row->what != RUNS_STATE && row->in_runs > 1)
		snprintf(text + used, size - used, " and %u other%s", row->in_runs - 1, row->in_runs > 2 ? "s" : "");
	used = strlen(text);
	if (row->what != RUNS_STATE)
		snprintf(text + used, size - used, ", of its %u run%s; in %u of %u states, most in %s (%.3f); ",
			 row->of_runs, row->of_runs == 1 ? "" : "s", row->states, row->of_states, state,
			 row->state_ratio);
	else
		snprintf(text + used, size - used, ", on most %ss; ", unit_words[found->unit_kind]);
	say_chance(row->p, text, size);
	printable(text);
}

static void print_rows(const struct runs *found, enum runs_what what, const char *heading, unsigned width, FILE *out)
{
	unsigned shown = 0, left = 0;

	for (size_t i = 0; i < found->row_count; i++) {
		char text[TEXT_MOST];

		if (found->rows[i].what != what)
			continue;
		if (shown == ROWS_MOST) {
			left++;
			continue;
		}
		if (!shown++)
			fprintf(out, "\n%s\n", heading);
		say_row(found, &found->rows[i], text, sizeof(text));
		wrap__print(out, "  ", text, 4, width);
	}
	if (left)
		fprintf(out, "  and %u more\n", left);
}

static void print_outlying(const struct runs *found, unsigned width, FILE *out)
{
	unsigned shown = 0;

	for (uint32_t i = 0; i < found->count; i++) {
		const struct runs_run *run = &found->runs[i];
		char text[TEXT_MOST];

		if (!run->time_outlying && !run->work_outlying)
			continue;
		if (!shown++)
			fputs("\nOutlying runs\n", out);
		snprintf(text, sizeof(text), "%s: ", run->name);
		if (run->time_outlying) {
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 "it lasted %.3f times the median (%+.1f s), ", run->time_ratio,
				 run->seconds - found->median_s);
			say_chance(run->time_p, text, sizeof(text));
		}
		if (run->work_outlying) {
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 "%sequal work took %.3f times that of the median run, ",
				 run->time_outlying ? "; " : "", run->work_ratio);
			say_chance(run->work_p, text, sizeof(text));
		}
		wrap__print(out, "  ", printable(text), 4, width);
	}
	if (!shown && !found->row_count && found->compared >= RUNS_LEAST)
		fprintf(out, "\nNo run, host, rank or state is outlying by %.3g %% or more.\n", found->threshold * 100);
}

static void print_notes(const struct runs *found, bool from_records, unsigned width, FILE *out)
{
	char text[TEXT_MOST];

	if (found->compared < RUNS_LEAST) {
		snprintf(
		    text, sizeof(text),
		    "%u runs are compared: which of them is outlying is said of %d and more; vapro diff compares two",
		    found->compared, RUNS_LEAST);
		wrap__print(out, "note: ", text, 6, width);
	}
	if (!found->by_instructions && !from_records)
		wrap__print(
		    out, "note: ",
		    "work is not counted in instructions in all of the runs: more work and slower work look alike", 6,
		    width);
	if (found->rebuilt)
		wrap__print(out, "note: ",
			    "the program or its libraries were built again between the runs: states are matched by "
			    "function, called function and order",
			    6, width);
	if (from_records)
		wrap__print(out, "note: ",
			    "records of vaprod hold performance against each run's own reference: what was slow for "
			    "all of a run shows in its time only. Captures (vaprod --capture) show it",
			    6, width);
}

void runs_report__text(const struct runs *found, bool from_records, unsigned width, FILE *out)
{
	print_runs(found, out);
	fprintf(out, "\n%u of %u runs compared; median %.1f s, spread %.2f %%\n", found->compared, found->count,
		found->median_s, found->spread * 100);
	print_outlying(found, width, out);
	print_rows(found, RUNS_HOST, "Hosts", width, out);
	print_rows(found, RUNS_RANK, "Ranks", width, out);
	print_rows(found, RUNS_STATE, "States", width, out);
	if (found->compared < RUNS_LEAST || found->rebuilt || !found->by_instructions)
		fputc('\n', out);
	print_notes(found, from_records, width, out);
}

static int by_time(const void *a, const void *b)
{
	const struct runs_run *x = *(const struct runs_run *const *)a, *y = *(const struct runs_run *const *)b;

	return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* A field with quotation marks. */
static void put_quoted(const char *text, FILE *out)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

int runs_report__csv(const struct runs *found, FILE *out)
{
	const struct runs_run **order = calloc(found->count + 1, sizeof(*order));
	size_t count = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < found->count; i++)
		if (found->runs[i].use == RUNS_COMPARED)
			order[count++] = &found->runs[i];
	if (count)
		qsort(order, count, sizeof(*order), by_time);
	fputs("run,seconds,share_pct,time_ratio,time_outlying,work_ratio,work_outlying,calls_ratio,ranks,hosts\n", out);
	for (size_t i = 0, end = 0; i < count; i++) {
		const struct runs_run *run = order[i];

		while (end < count && order[end]->seconds <= run->seconds)
			end++;
		put_quoted(run->name, out);
		fprintf(out, ",%.9g,%.9g,%.9g,%s,%.9g,%s,%.9g,%u,%u\n", run->seconds, 100 * (double)end / (double)count,
			run->time_ratio, run->time_outlying ? "true" : "false", run->work_ratio,
			run->work_outlying ? "true" : "false", run->calls_ratio, run->ranks, run->hosts);
	}
	free(order);
	return 0;
}

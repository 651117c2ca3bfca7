/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 96
#define ROW_NAME 24

/* Runs that are summed up: a shape, a kind of fault or noise, or all. */
struct row {
	char name[ROW_NAME];
	unsigned jobs, quiet;
	unsigned demanded[VAPRO_CLASSES], found[VAPRO_CLASSES], plain[VAPRO_CLASSES];
	unsigned alarms[ALARM_KINDS], plain_alarms[ALARM_KINDS];
	unsigned quiet_alarmed, quiet_stalled, plain_quiet;
	unsigned better, worse; /* faults that the simple rule alone finds, or the analysis alone */
	double *loss;		/* errors of computation faults that were found, absolute */
	size_t loss_count;
};

bool report__is_shape(const struct run *run)
{
	return !strcmp(run->at->part, "shapes");
}

size_t report__others(const struct run *runs, size_t count)
{
	size_t others = 0;

	while (others < count && !report__is_shape(&runs[others]))
		others++;
	return others;
}

static unsigned wrong(const unsigned *by_kind)
{
	return by_kind[ALARM_FALSE] + by_kind[ALARM_WRONG_CLASS];
}

static void add(struct row *row, const struct run *run)
{
	bool quiet = run->at->type & CASE_QUIET;

	row->jobs++;
	row->quiet += quiet;
	row->quiet_alarmed += quiet && wrong(run->score.by_kind);
	row->quiet_stalled += quiet && run->score.stalls;
	row->plain_quiet += quiet && wrong(run->plain.by_kind);
	for (int kind = 0; kind < ALARM_KINDS; kind++) {
		row->alarms[kind] += run->score.by_kind[kind];
		row->plain_alarms[kind] += run->plain.by_kind[kind];
	}
	for (uint32_t i = 0; i < run->score.truth_count; i++) {
		const struct truth_score *at = &run->score.truths[i];
		bool plain = run->plain.hit[i];

		if (at->apart != APART_NOT)
			continue;
		row->demanded[at->class]++;
		row->found[at->class] += at->hit;
		row->plain[at->class] += plain;
		row->better += plain && !at->hit;
		row->worse += at->hit && !plain;
		if (at->hit && at->class == VAPRO_COMPUTATION && !isnan(at->lost_error) && row->loss)
			row->loss[row->loss_count++] = fabs(at->lost_error);
	}
}

static void print_part(unsigned found, unsigned of, FILE *out)
{
	char text[16];

	snprintf(text, sizeof(text), "%u/%u", found, of);
	fprintf(out, " %8s", of ? text : "");
}

static void print(const struct row *row, FILE *out)
{
	fprintf(out, "%-20s %4u", row->name, row->jobs);
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		print_part(row->found[class], row->demanded[class], out);
	fprintf(out, " %5u %5u", row->alarms[ALARM_PART], wrong(row->alarms));
	print_part(row->quiet_alarmed, row->quiet, out);
	fprintf(out, "  |");
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		print_part(row->plain[class], row->demanded[class], out);
	fprintf(out, " %5u %5u", row->plain_alarms[ALARM_PART], wrong(row->plain_alarms));
	print_part(row->plain_quiet, row->quiet, out);
	fprintf(out, " %6u %5u\n", row->better, row->worse);
}

static void print_head(const char *name, FILE *out)
{
	fprintf(out, "%-20s %4s", name, "jobs");
	for (int twice = 0; twice < 2; twice++) {
		for (int class = 0; class < VAPRO_CLASSES; class ++)
			fprintf(out, " %8.8s", vapro_class_name[class]);
		fprintf(out, " %5s %5s %8s%s", "parts", "false", "quiet", twice ? "" : "  |");
	}
	fprintf(out, " %6s %5s\n", "better", "worse");
}

/* "grid" of "grid-hog" or "hog" of it; a case of its own has its whole name. */
static void name_of(const struct run *run, bool shape, char *name)
{
	const char *kind = run->at->kind, *dash = strchr(kind, '-');

	if (!dash)
		snprintf(name, ROW_NAME, "%s", kind);
	else if (shape)
		snprintf(name, ROW_NAME, "%.*s", (int)(dash - kind), kind);
	else
		snprintf(name, ROW_NAME, "%s", dash + 1);
}

static void print_rows(const struct run *runs, size_t count, enum vapro_workload_source source, bool shape, FILE *out)
{
	static struct row rows[ROWS];
	size_t row_count = 0;

	for (size_t i = 0; i < count; i++) {
		char name[ROW_NAME];
		size_t at = 0;

		if (runs[i].source != source || runs[i].failed)
			continue;
		name_of(&runs[i], shape, name);
		while (at < row_count && strcmp(rows[at].name, name))
			at++;
		if (at == ROWS)
			continue;
		if (at == row_count) {
			rows[row_count] = (struct row){0};
			memcpy(rows[row_count++].name, name, sizeof(name));
		}
		add(&rows[at], &runs[i]);
	}
	for (size_t i = 0; i < row_count; i++)
		print(&rows[i], out);
}

static double ratio(unsigned some, unsigned all)
{
	return all ? (double)some / all : NAN;
}

static double precision(const unsigned *by_kind)
{
	unsigned right = by_kind[ALARM_HIT] + by_kind[ALARM_ALLOWED];

	return ratio(right, right + wrong(by_kind));
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void print_checks(struct row *sum, FILE *out)
{
	qsort(sum->loss, sum->loss_count, sizeof(double), compare);
	report__check(out, "recall of computation",
		      ratio(sum->found[VAPRO_COMPUTATION], sum->demanded[VAPRO_COMPUTATION]), 0.97, true, "");
	report__check(out, "precision", precision(sum->alarms), 0.97, true, "");
	report__check(out, "jobs without a fault that alarm", sum->quiet ? sum->quiet_alarmed : NAN, 2, false, "");
	report__check(out, "jobs without a fault with noise of fragments", sum->quiet ? sum->quiet_stalled : NAN, 0,
		      false, "");
	report__check(out, "loss off by, median", 100 * report__quantile(sum->loss, sum->loss_count, 0.5), 2, false,
		      " %");
	report__check(out, "loss off by, 90 %", 100 * report__quantile(sum->loss, sum->loss_count, 0.9), 10, false,
		      " %");
	fprintf(out, "  without a bar: recall of communication %.3f, of io %.3f\n",
		ratio(sum->found[VAPRO_COMMUNICATION], sum->demanded[VAPRO_COMMUNICATION]),
		ratio(sum->found[VAPRO_IO], sum->demanded[VAPRO_IO]));
	fprintf(out,
		"  robust z: recall %.3f, %.3f, %.3f; precision %.3f; quiet jobs that alarm %u; it alone finds %u "
		"faults, the analysis alone %u\n",
		ratio(sum->plain[VAPRO_COMPUTATION], sum->demanded[VAPRO_COMPUTATION]),
		ratio(sum->plain[VAPRO_COMMUNICATION], sum->demanded[VAPRO_COMMUNICATION]),
		ratio(sum->plain[VAPRO_IO], sum->demanded[VAPRO_IO]), precision(sum->plain_alarms), sum->plain_quiet,
		sum->better, sum->worse);
}

/* What was missed, far off, or said without reason, and what was said instead. */
static void print_misses(const struct run *run, FILE *out)
{
	for (uint32_t i = 0; i < run->score.truth_count; i++) {
		const struct truth_score *at = &run->score.truths[i];
		bool off = at->hit && fabs(at->lost_error) > 0.1;

		if (at->apart != APART_NOT || (at->hit && !off))
			continue;
		fprintf(out, "  %-22s seed %llu: %-6s %s of %s, %.1f..%.1f s, %.2f s, x %.2f%s; %s", run->at->kind,
			(unsigned long long)run->seed, at->hit ? "off" : "missed", vapro_class_name[at->class],
			at->ranks, at->begin, at->end, at->lost, at->ratio,
			!at->hit && run->plain.hit[i] ? " (robust z finds it)" : "",
			at->hit	    ? ""
			: *at->near ? at->near
				    : "nothing is said");
		if (at->hit)
			fprintf(out, "loss %+.1f %%, begin %.2f s, end %.2f s", 100 * at->lost_error, at->begin_error,
				at->end_error);
		fputc('\n', out);
	}
	for (uint32_t i = 0; i < run->score.alarm_count; i++) {
		const struct alarm_score *at = &run->score.alarms[i];

		if (at->kind == ALARM_FALSE || at->kind == ALARM_WRONG_CLASS)
			fprintf(out, "  %-22s seed %llu: %s alarm, %s of %s, %.1f..%.1f s, %.2f s; %s\n", run->at->kind,
				(unsigned long long)run->seed, score__alarm_name[at->kind], vapro_class_name[at->class],
				at->ranks, at->begin, at->end, at->lost, at->evidence);
	}
}

static void print_mode(const struct run *runs, size_t count, enum vapro_workload_source source, FILE *out)
{
	struct row sum = {.name = "all"};
	unsigned failed = 0, faulty = 0;
	size_t room = 1;

	for (size_t i = 0; i < count; i++)
		room += runs[i].score.truth_count;
	sum.loss = calloc(room, sizeof(*sum.loss));
	for (size_t i = 0; i < count; i++) {
		bool computes = false;

		if (runs[i].source != source)
			continue;
		failed += runs[i].failed;
		add(&sum, &runs[i]);
		for (uint32_t at = 0; at < runs[i].score.truth_count; at++)
			computes |=
			    runs[i].score.truths[at].class == VAPRO_COMPUTATION && !runs[i].score.truths[at].apart;
		faulty += computes;
	}
	if (sum.jobs) {
		fprintf(out,
			"\nshapes, %s: %u jobs, %u of them without a fault, %u with faults of computation; the "
			"analysis | a simple rule, robust z\n",
			report__mode_name[source], sum.jobs, sum.quiet, faulty);
		print_head("shape", out);
		print_rows(runs, count, source, true, out);
		print_head("fault or noise", out);
		print_rows(runs, count, source, false, out);
		print(&sum, out);
		print_checks(&sum, out);
		report__check(out, "runs that failed", failed, 0, false, "");
		for (size_t i = 0; i < count; i++) {
			if (runs[i].source == source)
				print_misses(&runs[i], out);
		}
	}
	free(sum.loss);
}

void report__shapes(const struct run *runs, size_t count, FILE *out)
{
	print_mode(runs, count, VAPRO_BY_INSTRUCTIONS, out);
	print_mode(runs, count, VAPRO_BY_ARGUMENTS, out);
}

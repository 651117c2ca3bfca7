/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS 64

void report__check(FILE *out, const char *what, double value, double bar, bool at_least, const char *unit)
{
	bool good = isnan(value) || (at_least ? value >= bar - 1e-9 : value <= bar + 1e-9);

	if (isnan(value))
		fprintf(out, "  %-58s %12s   (%s %g%s)\n", what, "none", at_least ? ">=" : "<=", bar, unit);
	else
		fprintf(out, "  %-58s %9.3f%-3s %s (%s %g%s)\n", what, value, unit, good ? "ok  " : "MISS",
			at_least ? ">=" : "<=", bar, unit);
}

static double part(unsigned some, unsigned all)
{
	return all ? (double)some / all : NAN;
}

static double precision_of(const struct summary_of *sum)
{
	unsigned right = sum->alarms[ALARM_HIT] + sum->alarms[ALARM_ALLOWED];
	unsigned wrong = sum->alarms[ALARM_WRONG_CLASS] + sum->alarms[ALARM_FALSE];

	return part(right, right + wrong);
}

static void checks(const struct run *runs, size_t count, enum vapro_workload_source source, FILE *out)
{
	struct summary_of sum;

	if (!report__sum(runs, count, source, NULL, &sum) || !sum.runs) {
		report__free(&sum);
		return;
	}
	fprintf(out, "\n%s: %u jobs, %u of them without a fault", report__mode_name[source], sum.runs, sum.quiet);
	fprintf(out, "; %u faults demanded, %u stalls, %u places, %u drifts\n", sum.demanded, sum.stalls, sum.places,
		sum.drifts);
	fprintf(out, "  alarms: %u hits, %u parts, %u allowed, %u of a wrong class, %u false\n", sum.alarms[ALARM_HIT],
		sum.alarms[ALARM_PART], sum.alarms[ALARM_ALLOWED], sum.alarms[ALARM_WRONG_CLASS],
		sum.alarms[ALARM_FALSE]);
	fprintf(out,
		"  apart: below the bars %u of %u hit, without a reference %u of %u hit, not demanded %u of %u hit\n",
		sum.below_hit, sum.below, sum.unsupported_hit, sum.unsupported, sum.free_hit, sum.free);
	report__check(out, "recall of faults", part(sum.hit, sum.demanded), 0.98, true, "");
	report__check(out, "recall of silent places (place or imbalance)", part(sum.places_hit, sum.places), 0.98, true,
		      "");
	report__check(out, "recall of slowdowns of all (drift)", part(sum.drifts_hit, sum.drifts), 0.98, true, "");
	report__check(out, "precision", precision_of(&sum), 0.98, true, "");
	report__check(out, "jobs without a fault that alarm", sum.quiet ? sum.quiet_alarmed : NAN, 0, false, "");
	report__check(out, "jobs without a fault with noise of fragments", sum.quiet ? sum.quiet_stalled : NAN, 0,
		      false, "");
	report__check(out, "loss off by, median", 100 * report__quantile(sum.loss, sum.loss_count, 0.5), 2, false,
		      " %");
	report__check(out, "loss off by, 90 %", 100 * report__quantile(sum.loss, sum.loss_count, 0.9), 10, false, " %");
	report__check(out, "ratio of sets of ranks off by, 90 %",
		      100 * report__quantile(sum.ratio, sum.ratio_count, 0.9), 2, false, " %");
	report__check(out, "begin off by, median", 1e3 * report__quantile(sum.begin, sum.begin_count, 0.5), 100, false,
		      " ms");
	report__check(out, "end off by, median", 1e3 * report__quantile(sum.end, sum.end_count, 0.5), 100, false,
		      " ms");
	report__check(out, "begin and end within 400 ms or one fragment", part(sum.times_good, sum.times), 0.99, true,
		      "");
	report__check(out, "attributed stalls of 150 ms and more found", part(sum.stalls_hit, sum.stalls), 0.95, true,
		      "");
	report__check(out, "faults reported as several variances, of all hit", part(sum.split, sum.all_hit), 0.02,
		      false, "");
	report__check(out, "lasting: alarm within 15 s, of all", part(sum.lasting - sum.late, sum.lasting), 1, true,
		      "");
	report__check(out, "lasting: retained to the end, of all", part(sum.lasting - sum.dropped, sum.lasting), 1,
		      true, "");
	report__check(out, "lasting: loss within 5 %, of all", part(sum.lasting - sum.lasting_loss, sum.lasting), 1,
		      true, "");
	report__check(out, "runs that failed", sum.failed, 0, false, "");
	report__check(out, "jobs", sum.runs, 100, true, "");
	report__free(&sum);
}

static void row(FILE *out, const struct run *runs, size_t count, enum vapro_workload_source source, const char *kind)
{
	struct summary_of sum;

	if (report__sum(runs, count, source, kind, &sum) && sum.runs) {
		fprintf(out, "%-22s %-9s %4u %4u/%-4u", kind, source == VAPRO_BY_INSTRUCTIONS ? "counts" : "arguments",
			sum.runs, sum.hit + sum.stalls_hit, sum.demanded + sum.stalls);
		fprintf(out, " %3u/%-3u %3u/%-3u", sum.places_hit + sum.drifts_hit, sum.places + sum.drifts,
			sum.unsupported_hit + sum.below_hit + sum.free_hit, sum.unsupported + sum.below + sum.free);
		fprintf(out, " %4u %4u %5u %5u", sum.alarms[ALARM_PART], sum.alarms[ALARM_ALLOWED],
			sum.alarms[ALARM_WRONG_CLASS], sum.alarms[ALARM_FALSE]);
		if (sum.loss_count)
			fprintf(out, " %7.1f %7.1f", 100 * report__quantile(sum.loss, sum.loss_count, 0.5),
				100 * report__quantile(sum.loss, sum.loss_count, 0.9));
		if (sum.begin_count)
			fprintf(out, " %6.0f %6.0f", 1e3 * report__quantile(sum.begin, sum.begin_count, 0.5),
				1e3 * report__quantile(sum.end, sum.end_count, 0.5));
		fprintf(out, "%s\n", sum.failed ? " FAILED" : "");
	}
	report__free(&sum);
}

void report__table(const struct run *runs, size_t count, FILE *out)
{
	const char *kinds[GROUPS];
	size_t kind_count = 0;
	double cpu_s = 0;

	for (size_t i = 0; i < count; i++) {
		bool known = false;

		cpu_s += runs[i].cpu_s;
		for (size_t k = 0; k < kind_count; k++)
			known |= !strcmp(kinds[k], runs[i].at->kind);
		if (!known && kind_count < GROUPS)
			kinds[kind_count++] = runs[i].at->kind;
	}
	fprintf(out, "%-22s %-9s %4s %9s %7s %7s %4s %4s %5s %5s %15s %13s\n", "kind", "mode", "jobs", "found", "place",
		"apart", "part", "free", "class", "false", "loss off, %", "times off, ms");
	fprintf(out, "%-22s %-9s %4s %9s %7s %7s %4s %4s %5s %5s %7s %7s %6s %6s\n", "", "", "", "", "/drift", "", "",
		"", "", "", "median", "90 %", "begin", "end");
	for (size_t k = 0; k < kind_count; k++) {
		row(out, runs, count, VAPRO_BY_INSTRUCTIONS, kinds[k]);
		row(out, runs, count, VAPRO_BY_ARGUMENTS, kinds[k]);
	}
	checks(runs, count, VAPRO_BY_INSTRUCTIONS, out);
	checks(runs, count, VAPRO_BY_ARGUMENTS, out);
	fprintf(out, "\n%.0f s of CPU\n", cpu_s);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Sentences about a comparison. */
#include "report/diff_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/json.h"

const char *diff_report__unit_word(const struct comparison *found)
{
	static const char *const words[] = {
	    [COMPARE_RANKS] = "rank", [COMPARE_PROCESSES] = "process", [COMPARE_THREADS] = "thread"};

	return words[found->unit_kind];
}

bool diff_report__shows(const struct diff_report *report, const struct compare_row *row)
{
	if (!row->named && !report->all)
		return false;
	return report->rank == COMPARE_ALL || row->unit == COMPARE_ALL ||
	       report->found->units[row->unit].number == report->rank;
}

static bool is_slower(const struct compare_row *row)
{
	return row->seconds > 0;
}

static unsigned count(const struct diff_report *report, bool slower)
{
	unsigned n = 0;

	for (size_t i = 0; i < report->found->row_count; i++) {
		const struct compare_row *row = &report->found->rows[i];

		n += row->named && diff_report__shows(report, row) && is_slower(row) == slower;
	}
	return n;
}

unsigned diff_report__slower(const struct diff_report *report)
{
	return count(report, true);
}

unsigned diff_report__faster(const struct diff_report *report)
{
	return count(report, false);
}

static int by_value(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

char *diff_report__ranks(const struct diff_report *report, enum compare_what what, bool slower, uint32_t *n)
{
	const struct comparison *found = report->found;
	int32_t *numbers = calloc(found->row_count + 1, sizeof(*numbers));
	uint32_t all = 0;
	char *text = NULL;

	*n = 0;
	for (size_t i = 0; numbers && i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		if (row->named && row->what == what && row->unit != COMPARE_ALL && is_slower(row) == slower &&
		    diff_report__shows(report, row))
			numbers[all++] = found->units[row->unit].number;
	}
	if (numbers) {
		qsort(numbers, all, sizeof(*numbers), by_value);
		for (uint32_t i = 0; i < all; i++)
			if (!*n || numbers[*n - 1] != numbers[i])
				numbers[(*n)++] = numbers[i];
		text = json__ranks(numbers, *n);
	}
	free(numbers);
	return text;
}

/* Returns the job's own row, or NULL. */
static const struct compare_row *job_row(const struct comparison *found)
{
	for (size_t i = 0; i < found->row_count; i++)
		if (found->rows[i].what == COMPARE_JOB)
			return &found->rows[i];
	return NULL;
}

static void say_hosts(const struct diff_report *report, bool slower, char *text, size_t size)
{
	const char *sep = "";

	for (size_t i = 0; i < report->found->row_count; i++) {
		const struct compare_row *row = &report->found->rows[i];

		if (row->what != COMPARE_HOST || !row->named || is_slower(row) != slower)
			continue;
		text__append(text, size, "%s%s", *sep ? sep : " (most of host ", row->host);
		sep = ", ";
	}
	if (*sep)
		text__append(text, size, ")");
}

/* Says which ranks changed: how much the one that changed most. */
static void say_units(const struct diff_report *report, bool slower, char *text, size_t size)
{
	const struct comparison *found = report->found;
	const struct compare_row *worst = NULL;
	uint32_t n;
	char *ranks = diff_report__ranks(report, COMPARE_RANK, slower, &n);
	double seconds = 0;

	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		if (row->what != COMPARE_RANK || !row->named || is_slower(row) != slower ||
		    !diff_report__shows(report, row))
			continue;
		seconds += row->seconds;
		if (!worst || fabs(row->beyond - 1) > fabs(worst->beyond - 1))
			worst = row;
	}
	if (worst && ranks) {
		char word[16];

		snprintf(word, sizeof(word), "%s", diff_report__unit_word(found));
		word[0] = (char)(word[0] - 'a' + 'A');
		text__append(text, size, "%s%s%s %s", *text ? " " : "", word,
			     n == 1	      ? ""
			     : word[0] == 'P' ? "es"
					      : "s",
			     ranks);
		say_hosts(report, slower, text, size);
		text__append(text, size, " became %s%.1f %% %s than in A (%+.2f s).", n == 1 ? "" : "up to ",
			     fabs(worst->ratio - 1) * 100, slower ? "slower" : "faster", seconds);
	}
	free(ranks);
}

/* What a rank is in such time. */
static const char *cause_word(unsigned cause)
{
	switch (profile_causes[cause]) {
	case VAPRO_WAKEUP_WAIT:
		return "waiting for a CPU after a wake-up";
	case VAPRO_STEAL:
		return "stopped by the hypervisor (steal)";
	case VAPRO_IRQ:
		return "interrupted";
	default:
		return vapro_factor_name[profile_causes[cause]]; /* preempted, throttled, stopped */
	}
}

static void say_causes(const struct diff_report *report, char *text, size_t size)
{
	const struct comparison *found = report->found;

	for (unsigned cause = 0; cause < PROFILE_CAUSES; cause++) {
		const struct compare_row *worst = NULL;
		uint32_t n = 0;

		for (size_t i = 0; i < found->row_count; i++) {
			const struct compare_row *row = &found->rows[i];

			if (row->what != COMPARE_CAUSE || !row->named || row->cause != cause || !is_slower(row) ||
			    !diff_report__shows(report, row))
				continue;
			n++;
			if (!worst || (row->unit != COMPARE_ALL && row->ratio > worst->ratio))
				worst = row;
		}
		if (!worst)
			continue;
		text__append(text, size, "%s", *text ? " " : "");
		if (worst->unit == COMPARE_ALL)
			text__append(text, size, "The job");
		else
			text__append(text, size, "%c%s %d%s", diff_report__unit_word(found)[0] - 'a' + 'A',
				     diff_report__unit_word(found) + 1, found->units[worst->unit].number,
				     n > 1 ? " (and others)" : "");
		text__append(text, size, " was %s for %.1f %% of its computation and IO, in A for %.1f %%.",
			     cause_word(cause), worst->share_b * 100, worst->share_a * 100);
	}
}

void diff_report__verdict(const struct diff_report *report, char *text, size_t size)
{
	const struct compare_row *job = job_row(report->found);
	unsigned slower = diff_report__slower(report), faster = diff_report__faster(report);

	*text = '\0';
	if (job && job->named)
		text__append(text, size, "The whole job became %.1f %% %s than in A (%+.2f s over all %ss).",
			     fabs(job->ratio - 1) * 100, is_slower(job) ? "slower" : "faster", job->seconds,
			     diff_report__unit_word(report->found));
	say_units(report, true, text, size);
	say_units(report, false, text, size);
	say_causes(report, text, size);
	if (!*text && (slower || faster))
		text__append(text, size,
			     "%u state%s became %s; the time of no rank as a whole changed by %.3g %% or more.",
			     slower ? slower : faster, (slower ? slower : faster) == 1 ? "" : "s",
			     slower ? "slower" : "faster", report->threshold * 100);
	if (!*text)
		text__append(text, size, "Nothing that was compared became slower or faster by %.3g %% or more.",
			     report->threshold * 100);
	for (size_t i = 0; i < report->found->match.changed_count; i++) {
		const struct match_image *image = &report->found->match.changed[i];

		if (strcmp(image->name_a, image->name_b))
			text__append(text, size, " A is a run of %s, B of %s.", image->name_a, image->name_b);
	}
}

/* Shares of B's time in ranks that both have. */
static double share(double part, const struct compare_side *side)
{
	double all = side->own_s + side->least_s + side->none_s;

	return all > 0 ? 100 * part / all : 0;
}

static bool note_of_match(const struct match *match, unsigned i, char *text, size_t size)
{
	if (i < match->changed_count) {
		const struct match_image *image = &match->changed[i];

		snprintf(text, size,
			 "program changed: %s (build-id %s in A) is %s (%s) in B: states are matched by function, "
			 "called function and order",
			 image->name_a, image->build_a, image->name_b, image->build_b);
		return true;
	}
	snprintf(text, size, "states that only one run has: %u in A (%.2f s), %u in B (%.2f s)", match->only_a,
		 match->only_a_s, match->only_b, match->only_b_s);
	return i == match->changed_count && (match->only_a || match->only_b);
}

static bool note_of_runs(const struct diff_report *report, unsigned i, char *text, size_t size)
{
	const struct comparison *found = report->found;
	const struct compare_side *a = &found->side[0], *b = &found->side[1];
	const char *word = diff_report__unit_word(found);

	switch (i) {
	case 0:
		snprintf(
		    text, size,
		    "A has %u %s%s, B %u: the %u that both have are compared; with other numbers of them, the work "
		    "of each may differ",
		    a->units, word,
		    a->units == 1    ? ""
		    : word[0] == 'p' ? "es"
				     : "s",
		    b->units, found->unit_count);
		return a->units != b->units || found->unit_count != b->units;
	case 1:
		snprintf(text, size, "some %ss ran on another host in B than in A", word);
		return found->moved;
	case 2:
		snprintf(text, size, "processes have no known rank: those of both runs are matched by their order");
		return found->unit_kind == COMPARE_PROCESSES;
	case 3:
		snprintf(text, size, "only the job with most time is compared; others: %u in A, %u in B", a->other_jobs,
			 b->other_jobs);
		return a->other_jobs || b->other_jobs;
	case 4:
		snprintf(text, size,
			 "the own part of collective calls is not compared: not all ranks were seen in both "
			 "runs");
		return !found->calls_compared && found->unit_kind == COMPARE_RANKS && !report->records[0] &&
		       a->least_s + b->least_s > 0;
	case 5:
		snprintf(text, size, "work is not counted in instructions in %s: more work and slower work look alike",
			 found->profile[0]->by_instructions   ? "B"
			 : found->profile[1]->by_instructions ? "A"
							      : "either run");
		return !report->records[0] &&
		       !(found->profile[0]->by_instructions && found->profile[1]->by_instructions);
	case 6:
		snprintf(text, size, "%u state%s of a %s %s too few batches in one of the runs and %s not compared",
			 found->too_few, found->too_few == 1 ? "" : "s", word, found->too_few == 1 ? "has" : "have",
			 found->too_few == 1 ? "is" : "are");
		return found->too_few;
	case 7:
		snprintf(
		    text, size,
		    "records of vaprod hold performance against each run's own reference: what was slow for all of "
		    "a run is not in it. Captures (vaprod --capture) show states and what lasted");
		return report->records[0] || report->records[1];
	case 8:
		snprintf(
		    text, size,
		    "not compared in B: %.0f %% waiting in collectives beyond their own part, %.0f %% in other calls "
		    "(receives, waits, threads' barriers): who waits longer is not slower",
		    share(b->least_s, b), share(b->none_s, b));
		return !report->records[0] && b->least_s + b->none_s > 0;
	case 9:
		snprintf(text, size,
			 "computations whose instructions were not counted are not compared: %llu in A, %llu in B",
			 (unsigned long long)a->unmeasured, (unsigned long long)b->unmeasured);
		return a->unmeasured || b->unmeasured;
	case 10:
		snprintf(text, size,
			 "%u computation%s of a %s under 20 us %s mostly the cost of the probes around %s and %s not "
			 "compared",
			 found->too_short, found->too_short == 1 ? "" : "s", word, found->too_short == 1 ? "is" : "are",
			 found->too_short == 1 ? "it" : "them", found->too_short == 1 ? "is" : "are");
		return found->too_short;
	default:
		return false;
	}
}

#define RUN_NOTES 11

bool diff_report__note(const struct diff_report *report, unsigned i, char *text, size_t size)
{
	for (unsigned note = 0; note < RUN_NOTES + report->found->match.changed_count + 1; note++) {
		bool due = note < RUN_NOTES ? note_of_runs(report, note, text, size)
					    : note_of_match(&report->found->match, note - RUN_NOTES, text, size);

		if (due && !i--)
			return true;
	}
	return false;
}

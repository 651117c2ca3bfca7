// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/diff_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "report/json.h"

#define ROWS_MOST 20 /* in a table, unless all are wanted */
#define TEXT_MOST 2048

/* Named rows of one state and direction, of several ranks. */
struct group {
	const struct compare_row *first;
	double base_s, seconds, low, high, p, calls_a, calls_b, spread_a, spread_b, work;
	int32_t *numbers;
	uint32_t count;
	bool job_wide;
};

/* Prints words in lines of the width, the first after `used` columns; later lines are indented. */
static void wrap(FILE *out, const char *text, unsigned width, unsigned used, unsigned indent)
{
	bool begins = true;

	while (*text) {
		unsigned length = (unsigned)strcspn(text, " ");

		if (!begins && used + 1 + length > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			used = indent;
		} else if (!begins) {
			fputc(' ', out);
			used++;
		}
		fprintf(out, "%.*s", (int)length, text);
		used += length;
		begins = false;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

/* The name of the program: that of the call-site with most time. */
static void program_of(const struct compare_side *side, char *text, size_t size)
{
	const char *site = side->main ? side->main->to : "?";

	snprintf(text, size, "%.*s", (int)strcspn(site, "@"), site);
	printable(text);
}

static void print_side(const struct diff_report *report, int side, FILE *out)
{
	const struct compare_side *run = &report->found->side[side];
	const struct diff_records *records = report->records[side];
	const char *word = diff_report__unit_word(report->found);
	double all = run->own_s + run->least_s + run->none_s, compared = report->found->compared_s[side];
	char text[TEXT_MOST], program[128];

	program_of(run, program, sizeof(program));
	snprintf(text, sizeof(text), "%c  %s: %s%s%u %s%s on %u host%s, %.1f s", 'A' + side, report->name[side],
		 records ? "" : program, records ? "" : ", ", run->units, word,
		 run->units == 1  ? ""
		 : word[0] == 'p' ? "es"
				  : "s",
		 run->hosts, run->hosts == 1 ? "" : "s", run->length_s);
	if (records)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 ", coverage %.0f %%, performance %.1f %%, %u variances (%u alarms)", records->coverage * 100,
			 records->performance * 100, records->variances, records->alarms);
	else if (all > 0)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 ", %.0f %% of the %ss' time compared (computation and IO: %.0f %%)", 100 * compared / all,
			 word, 100 * run->own_s / all);
	wrap(out, printable(text), report->width, 0, 3);
}

/* Writes "0.1" for small and "1e-09" for smaller ones. */
static const char *p_text(double p, char *text, size_t size)
{
	if (p < 1e-9)
		snprintf(text, size, "<1e-9");
	else
		snprintf(text, size, p < 0.001 ? "%.0e" : "%.3f", p);
	return text;
}

static void print_heading(const struct diff_report *report, bool slower, const char *what, FILE *out)
{
	fprintf(out, "\n%s%s\n", what,
		report->all ? (slower ? ", slower ones" : ", faster ones")
		: slower    ? " that became slower"
			    : " that became faster");
}

/* Ranks, hosts or the job. */
static void print_units(const struct diff_report *report, enum compare_what what, bool slower, FILE *out)
{
	const struct comparison *found = report->found;
	unsigned shown = 0, left = 0;

	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];
		char name[300], p[16];

		if (row->what != what || (row->seconds > 0) != slower || !diff_report__shows(report, row))
			continue;
		if (shown == ROWS_MOST && !report->all) {
			left++;
			continue;
		}
		if (!shown++) {
			char heading[32];

			snprintf(heading, sizeof(heading), "%c%ss",
				 what == COMPARE_HOST ? 'H' : diff_report__unit_word(found)[0] - 'a' + 'A',
				 what == COMPARE_HOST			 ? "ost"
				 : found->unit_kind == COMPARE_PROCESSES ? "rocesse"
									 : diff_report__unit_word(found) + 1);
			print_heading(report, slower, heading, out);
			fprintf(out, "%10s  %17s  %10s  %7s  %s\n", "change", "95 %", "seconds", "p",
				what == COMPARE_HOST ? "host" : diff_report__unit_word(found));
		}
		if (what == COMPARE_HOST)
			snprintf(name, sizeof(name), "%s", row->host);
		else
			snprintf(name, sizeof(name), "%d on %s", found->units[row->unit].number,
				 found->units[row->unit].host_b);
		fprintf(out, "%+8.1f %%  %+7.1f..%+.1f%*s  %+10.2f  %7s  %s%s\n", (row->ratio - 1) * 100,
			(row->low - 1) * 100, (row->high - 1) * 100,
			8 - snprintf(NULL, 0, "%+.1f", (row->high - 1) * 100), "", row->seconds,
			p_text(row->p, p, sizeof(p)), printable(name),
			row->named || !report->all ? "" : "  (not significant)");
	}
	if (left)
		fprintf(out, "%10s  and %u more (--all)\n", "", left);
}

void diff_report__state(const struct comparison *found, const struct compare_row *row, char *text, size_t size)
{
	const struct profile *profile = found->profile[1];
	const struct vapro_state *state = &stg__state(profile->stg, profile->kinds[row->kind].state)->about;
	const char *from = state->from_symbol ? state->from_symbol : state->from;
	const char *to = state->to_symbol ? state->to_symbol : state->to;

	if (!strcmp(state->to, vapro_class_name[state->class])) /* of the output of vaprod */
		snprintf(text, size, "all %s", state->to);
	else if (state->from)
		snprintf(text, size, "%s %s -> %s%s%s%s", vapro_class_name[state->class], from, to,
			 *state->common ? " [" : "", state->common, *state->common ? "]" : "");
	else
		snprintf(text, size, "%s at %s%s%s%s%s", vapro_class_name[state->class], to, *state->common ? " [" : "",
			 state->common, *state->common ? "]" : "", row->least ? ": its own part, without waiting" : "");
	printable(text);
}

static int by_value(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* Gathers the shown rows that belong to the one at `at`; each is noted in done. */
static bool gather(const struct diff_report *report, size_t at, bool *done, struct group *group)
{
	const struct comparison *found = report->found;
	const struct compare_row *first = &found->rows[at];

	*group = (struct group){.first = first, .low = first->low, .high = first->high};
	group->job_wide = first->unit == COMPARE_ALL;
	group->numbers = calloc(found->row_count + 1, sizeof(*group->numbers));
	for (size_t i = at; group->numbers && i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		if (done[i] || row->what != COMPARE_STATE || row->kind != first->kind || row->named != first->named ||
		    (row->seconds > 0) != (first->seconds > 0) || (row->unit == COMPARE_ALL) != group->job_wide ||
		    !diff_report__shows(report, row))
			continue;
		done[i] = true;
		if (!group->job_wide)
			group->numbers[group->count++] = found->units[row->unit].number;
		group->base_s += row->base_s;
		group->seconds += row->seconds;
		group->low = fmin(group->low, row->low);
		group->high = fmax(group->high, row->high);
		group->p = fmax(group->p, row->p);
		group->calls_a += (double)row->calls_a;
		group->calls_b += (double)row->calls_b;
		group->spread_a += row->spread_a * row->base_s;
		group->spread_b += row->spread_b * row->base_s;
		group->work += log(row->work) * row->base_s;
	}
	if (group->numbers)
		qsort(group->numbers, group->count, sizeof(*group->numbers), by_value);
	return group->numbers;
}

static void print_group(const struct diff_report *report, const struct group *group, FILE *out)
{
	const struct compare_row *row = group->first;
	double ratio = 1 + group->seconds / group->base_s, call = group->base_s * 1e6 / group->calls_b;
	double work = exp(group->work / group->base_s);
	char p[16], text[TEXT_MOST];
	char *ranks = group->job_wide ? NULL : json__ranks(group->numbers, group->count);

	fprintf(out, "%+8.1f %%  %+7.1f..%+.1f%*s  %+10.2f  %7s  %s%s%s%s\n", (ratio - 1) * 100, (group->low - 1) * 100,
		(group->high - 1) * 100, 8 - snprintf(NULL, 0, "%+.1f", (group->high - 1) * 100), "", group->seconds,
		p_text(group->p, p, sizeof(p)),
		group->job_wide ? "the whole job" : diff_report__unit_word(report->found), group->job_wide ? "" : " ",
		ranks ? ranks : "", row->named || !report->all ? "" : "  (not significant)");
	free(ranks);
	diff_report__state(report->found, row, text, sizeof(text));
	fprintf(out, "%*s", 4, "");
	wrap(out, text, report->width, 4, 6);
	if (report->records[0])
		return;
	fprintf(out, "    %.1f -> %.1f us a call, spread %.1f %% -> %.1f %%, %.0f -> %.0f calls", call, call * ratio,
		100 * group->spread_a / group->base_s, 100 * group->spread_b / group->base_s, group->calls_a,
		group->calls_b);
	if (work > 1 + report->threshold / 2 || work < 1 - report->threshold / 2)
		fprintf(out, ", %+.1f %% %s a call", (work - 1) * 100,
			report->found->profile[1]->by_instructions && !row->least ? "instructions" : "bytes");
	fputc('\n', out);
}

static void print_states(const struct diff_report *report, bool slower, FILE *out)
{
	const struct comparison *found = report->found;
	bool *done = calloc(found->row_count + 1, sizeof(*done));
	unsigned shown = 0, left = 0;

	for (size_t i = 0; done && i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];
		struct group group;

		if (done[i] || row->what != COMPARE_STATE || (row->seconds > 0) != slower ||
		    !diff_report__shows(report, row))
			continue;
		if (!gather(report, i, done, &group))
			break;
		if (shown < ROWS_MOST || report->all) {
			if (!shown++) {
				print_heading(report, slower, "States", out);
				fprintf(out, "%10s  %17s  %10s  %7s  where\n", "change", "95 %", "seconds", "p");
			}
			print_group(report, &group, out);
		} else {
			left++;
		}
		free(group.numbers);
	}
	if (left)
		fprintf(out, "%10s  and %u more (--all)\n", "", left);
	free(done);
}

static void print_causes(const struct diff_report *report, FILE *out)
{
	const struct comparison *found = report->found;
	unsigned shown = 0;

	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];
		char name[64] = "the whole job", p[16];

		if (row->what != COMPARE_CAUSE || !diff_report__shows(report, row))
			continue;
		if (shown == ROWS_MOST && !report->all)
			break;
		if (!shown++)
			fprintf(
			    out,
			    "\nTime that the kernel attributes, as a share of computation and IO\n%8s  %8s  %10s  %7s  "
			    "cause\n",
			    "A", "B", "seconds", "p");
		if (row->unit != COMPARE_ALL)
			snprintf(name, sizeof(name), "%s %d", diff_report__unit_word(found),
				 found->units[row->unit].number);
		fprintf(out, "%6.1f %%  %6.1f %%  %+10.2f  %7s  %s, %s%s\n", row->share_a * 100, row->share_b * 100,
			row->seconds, p_text(row->p, p, sizeof(p)), vapro_factor_name[profile_causes[row->cause]], name,
			row->named || !report->all ? "" : "  (not significant)");
	}
}

/* Seconds by cause of the diagnoses of either run. */
static double cause_of(const struct diff_records *records, const char *name)
{
	for (size_t i = 0; i < records->cause_count; i++)
		if (!strcmp(records->causes[i].name, name))
			return records->causes[i].seconds;
	return 0;
}

static void print_loss(const char *name, double a_s, double b_s, const struct diff_report *report, FILE *out)
{
	if (a_s > 0 || b_s > 0)
		fprintf(out, "%10.2f  %10.2f  %8.2f %%  %8.2f %%  %s\n", a_s, b_s,
			100 * a_s / report->records[0]->window_s, 100 * b_s / report->records[1]->window_s, name);
}

/* What the variances of both runs lost; shares are of the run's length. */
static void print_losses(const struct diff_report *report, FILE *out)
{
	const struct diff_records *a = report->records[0], *b = report->records[1];

	fprintf(out,
		"\nLost seconds of variances, and their share of the run's length (over all ranks)\n"
		"%10s  %10s  %10s  %10s  class or major cause\n",
		"A", "B", "A", "B");
	for (int i = 0; i < VAPRO_CLASSES; i++)
		print_loss(vapro_class_name[i], a->lost_s[i], b->lost_s[i], report, out);
	for (size_t i = 0; i < b->cause_count; i++)
		print_loss(b->causes[i].name, cause_of(a, b->causes[i].name), b->causes[i].seconds, report, out);
	for (size_t i = 0; i < a->cause_count; i++)
		if (cause_of(b, a->causes[i].name) <= 0)
			print_loss(a->causes[i].name, a->causes[i].seconds, 0, report, out);
}

void diff_report__text(const struct diff_report *report, FILE *out)
{
	char text[TEXT_MOST];

	print_side(report, 0, out);
	print_side(report, 1, out);
	diff_report__verdict(report, text, sizeof(text));
	fputc('\n', out);
	wrap(out, printable(text), report->width, 0, 0);
	for (int direction = 1; direction >= 0; direction--) {
		print_units(report, COMPARE_HOST, direction, out);
		print_units(report, COMPARE_RANK, direction, out);
		print_states(report, direction, out);
	}
	print_causes(report, out);
	if (report->records[0] && report->records[1])
		print_losses(report, out);
	for (unsigned i = 0; diff_report__note(report, i, text, sizeof(text)); i++) {
		char line[TEXT_MOST];

		if (!i)
			fputc('\n', out);
		snprintf(line, sizeof(line), "note: %s", text);
		wrap(out, printable(line), report->width, 0, 6);
	}
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/diff_page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "report/json.h"

enum { ROWS_MOST = 500, TEXT_MOST = 2048 };

#define WIDTH 760.0 /* of the picture */
#define HEIGHT 170.0
#define LEFT 60.0
#define RIGHT 10.0
#define TOP 10.0
#define BOTTOM 26.0

/* Writes text as content of an element: what is no valid UTF-8, or a control character, is replaced. */
static void put_text(FILE *out, const char *text)
{
	char *valid = utf8__valid(text);

	for (const char *at = valid ? printable(valid) : ""; *at; at++) {
		if (*at == '<')
			fputs("&lt;", out);
		else if (*at == '>')
			fputs("&gt;", out);
		else if (*at == '&')
			fputs("&amp;", out);
		else if (*at == '"')
			fputs("&quot;", out);
		else
			putc(*at, out);
	}
	free(valid);
}

static void put_element(FILE *out, const char *name, const char *text)
{
	fprintf(out, "<%s>", name);
	put_text(out, text);
	fprintf(out, "</%s>\n", name);
}

int diff_page__begin(FILE *out)
{
	fputs(
	    DIFF_PAGE_BEGIN
	    "<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>vapro diff</title>\n<style>\n"
	    "body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:1rem auto;padding:0 1rem;"
	    "color:#1b1f24;background:#fff}\n"
	    "table{border-collapse:collapse;margin:.5rem 0}th,td{text-align:left;padding:2px 10px 2px 0;"
	    "border-bottom:1px solid #b6bec8;vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}\n"
	    ".verdict{font-size:1.15rem;border-left:4px solid #0550ae;padding-left:.8rem}\n"
	    ".slower{color:#a40e26}.faster{color:#1a6b33}.soft{color:#57606a}\n"
	    "svg{width:100%;max-width:900px;font-size:11px}svg text{fill:#57606a}\n"
	    "@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0f1318}.slower{color:#ff9a96}"
	    ".faster{color:#7ee2a0}}\n</style></head><body>\n<h1>Runs compared</h1>\n",
	    out);
	return 0;
}

void diff_page__end(FILE *out)
{
	fputs("</body></html>\n", out);
}

static void put_side(const struct diff_report *report, int side, FILE *out)
{
	const struct compare_side *run = &report->found->side[side];
	char text[TEXT_MOST];

	snprintf(text, sizeof(text), "%c: %s, %u %s%s on %u host%s, %.1f s", 'A' + side, report->name[side], run->units,
		 diff_report__unit_word(report->found),
		 run->units == 1				 ? ""
		 : report->found->unit_kind == COMPARE_PROCESSES ? "es"
								 : "s",
		 run->hosts, run->hosts == 1 ? "" : "s", run->length_s);
	put_element(out, "li", text);
}

/* A row of the comparison as the picture has it. */
struct bar {
	int32_t number;
	const char *host;
	const struct compare_row *row;
};

static int by_number(const void *a, const void *b)
{
	const struct bar *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

static size_t list_bars(const struct diff_report *report, struct bar *bars)
{
	const struct comparison *found = report->found;
	size_t count = 0;

	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		if (row->what == COMPARE_RANK && row->unit >= 0 && isfinite(row->ratio))
			bars[count++] =
			    (struct bar){found->units[row->unit].number, found->units[row->unit].host_b, row};
	}
	if (count)
		qsort(bars, count, sizeof(*bars), by_number);
	return count;
}

static double y_of(double change, double least, double most)
{
	return TOP + (HEIGHT - TOP - BOTTOM) * (most - change) / (most - least);
}

/* Where the changes of the ranks are drawn. */
struct axes {
	double least, most, step;
};

static void put_bar(const struct diff_report *report, const struct bar *bar, const struct axes *axes, double x,
		    FILE *out)
{
	const struct compare_row *row = bar->row;
	const char *colour = row->named ? "#b3261e" : "#1f5fa8";
	char text[300];

	snprintf(text, sizeof(text), "%s %d on %.200s: %+.1f %%", diff_report__unit_word(report->found), bar->number,
		 bar->host ? bar->host : "?", 100 * (row->ratio - 1));
	fprintf(out, "<g fill=\"%s\" stroke=\"%s\"><title>", colour, colour);
	put_text(out, text);
	fprintf(out,
		"</title><path d=\"M%.1f %.1fV%.1f\" stroke-width=\"%.1f\"/><circle cx=\"%.1f\" cy=\"%.1f\" "
		"r=\"2.5\"/></g>\n",
		x, y_of(row->low - 1, axes->least, axes->most), y_of(row->high - 1, axes->least, axes->most),
		fmin(3, fmax(0.5, axes->step / 3)), x, y_of(row->ratio - 1, axes->least, axes->most));
}

static void put_bars(const struct diff_report *report, const struct bar *bars, size_t count, double least, double most,
		     FILE *out)
{
	const struct axes axes = {least, most, (WIDTH - LEFT - RIGHT) / (double)count};
	size_t every = (count + 15) / 16;

	for (size_t i = 0; i < count; i++) {
		double x = LEFT + axes.step * ((double)i + 0.5);

		put_bar(report, &bars[i], &axes, x, out);
		if (i % every == 0)
			fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d</text>\n", x, HEIGHT - 8,
				bars[i].number);
	}
}

/* Finds the range of the axis: a very wide interval does not decide it. */
static void find_range(const struct diff_report *report, const struct bar *bars, size_t count, double *least,
		       double *most)
{
	*least = -report->threshold;
	*most = report->threshold;
	for (size_t i = 0; i < count; i++) {
		double widest = 2 * fabs(bars[i].row->ratio - 1) + report->threshold;

		*least = fmin(*least, fmax(-1, bars[i].row->low - 1));
		*most = fmax(*most, fmin(bars[i].row->high - 1, widest));
	}
}

/* Draws the least change, none, and the greatest one. */
static void put_grid(double least, double most, FILE *out)
{
	const double changes[] = {least, 0, most};

	for (int i = 0; i < 3; i++)
		fprintf(out,
			"<path d=\"M%g %.1fH%g\" stroke=\"#b6bec8\"/><text x=\"%g\" y=\"%.1f\" "
			"text-anchor=\"end\">%+.1f %%</text>\n",
			LEFT, y_of(changes[i], least, most), WIDTH - RIGHT, LEFT - 4, y_of(changes[i], least, most) + 4,
			100 * changes[i]);
}

/* Draws the change of each rank, with the interval of 95 %. Returns 0 or -ENOMEM. */
static int put_picture(const struct diff_report *report, FILE *out)
{
	struct bar *bars = calloc(report->found->row_count + 1, sizeof(*bars));
	size_t count = bars ? list_bars(report, bars) : 0;
	double least, most;

	if (!bars)
		return -ENOMEM;
	find_range(report, bars, count, &least, &most);
	if (count) {
		fprintf(out, "<h2>Change of each %s</h2>\n<svg viewBox=\"0 0 %g %g\" role=\"img\">\n",
			diff_report__unit_word(report->found), WIDTH, HEIGHT);
		put_grid(least, most, out);
		put_bars(report, bars, count, least, most, out);
		fputs("</svg>\n", out);
	}
	free(bars);
	return 0;
}

/* Writes what a row is about. */
static void name_row(const struct diff_report *report, const struct compare_row *row, char *text, size_t size)
{
	const struct comparison *found = report->found;
	char who[64] = "the whole job", state[TEXT_MOST];

	if (row->unit != COMPARE_ALL)
		snprintf(who, sizeof(who), "%s %d", diff_report__unit_word(found), found->units[row->unit].number);
	if (row->what == COMPARE_HOST) {
		snprintf(text, size, "host %s", row->host);
	} else if (row->what == COMPARE_RANK) {
		snprintf(text, size, "%s on %s", who, found->units[row->unit].host_b);
	} else if (row->what == COMPARE_STATE) {
		diff_report__state(found, row, state, sizeof(state));
		snprintf(text, size, "%s: %s", who, state);
	} else if (row->what == COMPARE_CAUSE) {
		snprintf(text, size, "%s: %s, %.1f %% of computation and IO in A, %.1f %% in B", who,
			 vapro_factor_name[profile_causes[row->cause]], 100 * row->share_a, 100 * row->share_b);
	} else {
		snprintf(text, size, "%s", who);
	}
}

static void put_row(const struct diff_report *report, const struct compare_row *row, FILE *out)
{
	char text[TEXT_MOST + 128];

	fprintf(out, "<tr class=\"%s\">", !row->named ? "soft" : row->seconds > 0 ? "slower" : "faster");
	if (row->what == COMPARE_CAUSE)
		fprintf(out, "<td class=\"n\"></td><td class=\"n\"></td>");
	else
		fprintf(out, "<td class=\"n\">%+.1f %%</td><td class=\"n\">%+.1f .. %+.1f</td>", 100 * (row->ratio - 1),
			100 * (row->low - 1), 100 * (row->high - 1));
	fprintf(out, "<td class=\"n\">%+.2f</td><td class=\"n\">%.1g</td><td>", row->seconds, row->p);
	name_row(report, row, text, sizeof(text));
	put_text(out, text);
	fputs("</td></tr>\n", out);
}

/* A table of the rows of one kind, where there are any. */
static void put_table(const struct diff_report *report, enum compare_what what, const char *heading, FILE *out)
{
	const struct comparison *found = report->found;
	unsigned shown = 0, left = 0;

	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		if (row->what != what || !diff_report__shows(report, row))
			continue;
		if (shown == ROWS_MOST) {
			left++;
			continue;
		}
		if (!shown++)
			fprintf(out,
				"<h2>%s</h2>\n<table><thead><tr><th class=\"n\">change</th><th class=\"n\">95 %%</th>"
				"<th class=\"n\">seconds</th><th class=\"n\">p</th><th></th></tr></thead><tbody>\n",
				heading);
		put_row(report, row, out);
	}
	if (shown)
		fputs("</tbody></table>\n", out);
	if (left)
		fprintf(out, "<p>and %u more, in the records (--json)</p>\n", left);
}

/* Writes which runs these are, and the result in sentences. */
static void put_head(const struct diff_report *report, FILE *out)
{
	char text[TEXT_MOST];

	fputs("<section>\n<ul>\n", out);
	put_side(report, 0, out);
	put_side(report, 1, out);
	fputs("</ul>\n<p class=\"verdict\">", out);
	diff_report__verdict(report, text, sizeof(text));
	put_text(out, text);
	fputs("</p>\n", out);
}

static void put_notes(const struct diff_report *report, FILE *out)
{
	char text[TEXT_MOST];

	fputs("<ul class=\"soft\">\n", out);
	for (unsigned i = 0; diff_report__note(report, i, text, sizeof(text)); i++)
		put_element(out, "li", text);
	fputs("</ul>\n</section>\n", out);
}

int diff_page__add(const struct diff_report *report, FILE *out)
{
	static const char *const headings[COMPARE_WHATS] = {
	    [COMPARE_JOB] = "Job",
	    [COMPARE_HOST] = "Hosts",
	    [COMPARE_RANK] = "Ranks",
	    [COMPARE_STATE] = "States",
	    [COMPARE_CAUSE] = "Time that the kernel attributes",
	};
	int error;

	put_head(report, out);
	error = put_picture(report, out);
	for (int what = 0; what < COMPARE_WHATS; what++)
		put_table(report, (enum compare_what)what, headings[what], out);
	put_notes(report, out);
	return error;
}

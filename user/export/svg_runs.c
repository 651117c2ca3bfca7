// SPDX-License-Identifier: GPL-2.0-or-later
#include "export/svg_runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "export/svg_private.h"

#define WIDTH 252.0 /* 3.5 inches */
#define HEIGHT 150.0
#define LEFT 26.0 /* of the axes: what lies beside them are texts */
#define RIGHT 8.0
#define TOP 26.0
#define BOTTOM 24.0
#define TICKS 5 /* of the time, at most */
#define TEXT_MOST 60

struct axis {
	double first, last, step; /* seconds */
};

static int by_time(const void *a, const void *b)
{
	const struct runs_run *x = *(const struct runs_run *const *)a, *y = *(const struct runs_run *const *)b;

	return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Chooses an axis of round numbers that has all times. */
static struct axis axis_of(double least, double most)
{
	double room = fmax(most - least, fmax(most, 1) * 1e-2), power = pow(10, floor(log10(room / TICKS)));
	struct axis axis = {.step = power};

	if (room / power > 2 * TICKS)
		axis.step = (room / power > 5 * TICKS ? 10 : 5) * power;
	else if (room / power > TICKS)
		axis.step = 2 * power;
	axis.first = axis.step * floor(least / axis.step);
	axis.last = axis.step * ceil(most / axis.step);
	if (axis.last <= axis.first)
		axis.last = axis.first + axis.step;
	return axis;
}

static double x_of(const struct axis *axis, double seconds)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (seconds - axis->first) / (axis->last - axis->first);
}

static double y_of(double share)
{
	return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
}

static void put_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
	fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", x, y, anchor);
	svg__text(out, text, TEXT_MOST);
	fputs("</text>\n", out);
}

static void put_axes(const struct axis *axis, FILE *out)
{
	char text[32];

	fprintf(out, "<path d=\"M%.2f %.2fV%.2fH%.2f\" stroke=\"#333\" stroke-width=\"0.6\" fill=\"none\"/>\n", LEFT,
		y_of(1), y_of(0), WIDTH - RIGHT);
	for (int i = 0; i <= 4; i++) {
		snprintf(text, sizeof(text), "%d %%", 25 * i);
		put_text(out, LEFT - 3, y_of(i / 4.0) + SVG_FONT / 3, "end", text);
		fprintf(out, "<path d=\"M%.2f %.2fH%.2f\" stroke=\"#ddd\" stroke-width=\"0.4\"/>\n", LEFT,
			y_of(i / 4.0), WIDTH - RIGHT);
	}
	for (int i = 0; axis->first + i * axis->step <= axis->last * (1 + 1e-9); i++) {
		double seconds = axis->first + i * axis->step;

		snprintf(text, sizeof(text), "%.6g", seconds);
		put_text(out, x_of(axis, seconds), y_of(0) + SVG_LINE, "middle", text);
	}
	put_text(out, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "middle", "time of a run, seconds");
}

/* Draws the steps of the distribution, and the runs on them. */
static void put_runs(const struct axis *axis, const struct runs_run *const *order, size_t count, FILE *out)
{
	fprintf(out, "<path d=\"M%.2f %.2f", x_of(axis, axis->first), y_of(0));
	for (size_t i = 0; i < count; i++)
		fprintf(out, "H%.2fV%.2f", x_of(axis, order[i]->seconds), y_of((double)(i + 1) / (double)count));
	fprintf(out, "H%.2f\" stroke=\"#1f5fa8\" stroke-width=\"0.9\" fill=\"none\"/>\n", x_of(axis, axis->last));
	for (size_t i = 0; i < count; i++) {
		const struct runs_run *run = order[i];
		bool outlying = run->time_outlying || run->work_outlying;

		fprintf(out,
			"<circle cx=\"%.2f\" cy=\"%.2f\" r=\"1.6\" stroke=\"%s\" stroke-width=\"0.6\" fill=\"%s\">"
			"<title>",
			x_of(axis, run->seconds), y_of((double)(i + 1) / (double)count),
			outlying ? "#b3261e" : "#1f5fa8", outlying ? "#b3261e" : "#fff");
		svg__text(out, run->name, 4 * TEXT_MOST);
		fputs("</title></circle>\n", out);
	}
}

int svg_runs__write(const struct runs *found, FILE *out)
{
	const struct runs_run **order = calloc(found->count + 1, sizeof(*order));
	struct axis axis;
	size_t count = 0, outlying = 0;
	char text[256];

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < found->count; i++) {
		if (found->runs[i].use != RUNS_COMPARED)
			continue;
		outlying += found->runs[i].time_outlying || found->runs[i].work_outlying;
		order[count++] = &found->runs[i];
	}
	qsort(order, count, sizeof(*order), by_time);
	axis = axis_of(count ? order[0]->seconds : 0, count ? order[count - 1]->seconds : 0);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- vapro runs -->\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%gpt\" height=\"%gpt\" "
		"viewBox=\"0 0 %g %g\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"%g\">\n"
		"<title>Times of %zu runs</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, SVG_FONT, count);
	snprintf(text, sizeof(text), "%zu runs%s%.100s: share that took no longer", count,
		 *found->runs[found->base].program ? " of " : "", found->runs[found->base].program);
	put_text(out, 3, 3 + SVG_FONT, "start", text);
	snprintf(text, sizeof(text), "Median %.4g s, spread %.2g %%; %zu outlying (filled)", found->median_s,
		 found->spread * 100, outlying);
	put_text(out, 3, 3 + SVG_FONT + SVG_LINE, "start", text);
	put_axes(&axis, out);
	put_runs(&axis, order, count, out);
	fputs("</svg>\n", out);
	free(order);
	return 0;
}

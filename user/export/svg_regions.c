// SPDX-License-Identifier: GPL-2.0-or-later
/* The slow regions of a picture: outlined, numbered as `vapro view` numbers them, and the worst of them listed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "export/svg_private.h"
#include "report/cause_text.h"
#include "report/record.h"

#define OUTLINES_MOST 2000 /* more would hide the map */
#define LABELS_MOST 20	   /* numbers of more would hide the map too */
#define LISTED_MOST 8
#define OUTLINE_LEAST 2.5 /* of a smaller region the outline is this large, so that it does not cover the cells */
#define LABEL_HEIGHT (SVG_FONT - 0.5)

struct box {
	double left, top, right, bottom;
};

/* Labels drawn so far: they do not cover each other. */
struct labels {
	struct box boxes[LABELS_MOST];
	size_t count;
	FILE *out; /* drawn after all outlines */
};

/* Returns whether a region is drawn in this map: it is of the job, and slow in the class. */
static bool is_drawn(const struct picture *picture, const struct run_region *region)
{
	const cJSON *also;

	if (!row_order__region_is_of(region, picture->map))
		return false;
	if (!strcmp(region->region->class, picture->map->class))
		return true;
	cJSON_ArrayForEach(also, record__item(region->variance, KEY(variance, also)))
	{
		if (cJSON_IsString(also) && !strcmp(also->valuestring, picture->map->class))
			return true;
	}
	return false;
}

static bool row_is_slow(const struct picture *picture, const struct run_region *region, size_t row)
{
	for (size_t i = picture->rows[row].first; i < picture->rows[row].end; i++) {
		if (row_order__region_has(region, picture->order.items[i].row))
			return true;
	}
	return false;
}

static bool overlap(const struct box *a, const struct box *b)
{
	return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static void put_label(const struct picture *picture, struct labels *labels, const struct box *outline,
		      const char *number)
{
	double width = SVG_LETTER * (double)strlen(number) + 2, left = outline->left, top = outline->top - LABEL_HEIGHT;
	struct box box;

	left = fmin(left, picture->left + picture->width - width);
	top = fmax(top, picture->top);
	box = (struct box){left, top, left + width, top + LABEL_HEIGHT};
	for (size_t i = 0; i < labels->count; i++) {
		if (overlap(&box, &labels->boxes[i]))
			return;
	}
	if (labels->count == LABELS_MOST)
		return;
	labels->boxes[labels->count++] = box;
	fprintf(labels->out,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#fff\" fill-opacity=\"0.85\"/>"
		"<text x=\"%.2f\" y=\"%.2f\" font-weight=\"bold\">%s</text>\n",
		left, top, width, LABEL_HEIGHT, left + 1, top + LABEL_HEIGHT - 1, number);
}

/* Widens an interval to at least OUTLINE_LEAST. Returns whether it was less. */
static bool widen(double *from, double *to)
{
	double lacks = OUTLINE_LEAST - (*to - *from);

	if (lacks <= 0)
		return false;
	*from -= lacks / 2;
	*to += lacks / 2;
	return true;
}

static void put_rectangle(const struct picture *picture, const struct box *box, const char *color, double width,
			  bool dashed)
{
	fprintf(picture->out,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" stroke=\"%s\" "
		"stroke-width=\"%.2f\"%s/>\n",
		box->left, box->top, box->right - box->left, box->bottom - box->top, color, width,
		dashed ? " stroke-dasharray=\"1.5 1\"" : "");
}

/* Outlines rows [row, end) of a region: dark on white, dashed where the region is not sure. Returns the outline. */
static struct box put_outline(const struct picture *picture, const struct region *region, size_t row, size_t end)
{
	struct box box = {svg__x(picture, region->begin_ns), svg__y(picture, row), svg__x(picture, region->end_ns),
			  svg__y(picture, end)};
	bool narrow = widen(&box.left, &box.right), small = widen(&box.top, &box.bottom) || narrow;

	if (!small)
		put_rectangle(picture, &box, "#fff", 1.6, false);
	put_rectangle(picture, &box, "#111", small ? 0.4 : 0.7, !regions__sure(region));
	return box;
}

/* Outlines a region wherever its rows are neighbours, and numbers the first outline. Returns the number of outlines. */
static size_t put_region(const struct picture *picture, const struct run_region *region, struct labels *labels,
			 size_t most)
{
	size_t outlines = 0;

	for (size_t row = 0, end; row < picture->row_count && outlines < most; row = end) {
		struct box box;

		for (end = row; end < picture->row_count && row_is_slow(picture, region, end); end++)
			;
		if (end == row) {
			end++;
			continue;
		}
		box = put_outline(picture, region->region, row, end);
		if (!outlines++)
			put_label(picture, labels, &box, region->number);
	}
	return outlines;
}

int svg__regions(const struct picture *picture)
{
	struct labels labels = {.count = 0};
	size_t outlines = 0, size;
	char *texts = NULL;

	labels.out = open_memstream(&texts, &size);
	if (!labels.out)
		return -ENOMEM;
	for (size_t i = 0; i < picture->report->region_count; i++) {
		const struct run_region *region = &picture->report->regions[i];

		if (is_drawn(picture, region))
			outlines += put_region(picture, region, &labels, OUTLINES_MOST - outlines);
	}
	if (fclose(labels.out)) {
		free(texts);
		return -ENOMEM;
	}
	fputs(texts, picture->out);
	free(texts);
	return 0;
}

static void list_region(const struct picture *picture, const struct run_region *run_region, FILE *out, double x,
			double y, double width)
{
	const struct region *region = run_region->region;
	const char *cause = region->cause ? cause_text__noun(region->cause) : region->class;
	double begin_s = (double)(int64_t)(region->begin_ns - picture->report->start_ns) / 1e9;
	double end_s = (double)(int64_t)(region->end_ns - picture->report->start_ns) / 1e9;
	char lost[40], text[1024];

	duration__text(region->lost_seconds, lost, sizeof(lost));
	snprintf(text, sizeof(text), "%s%s%.200s%s: %s lost, %.1f to %.1f s, %.200s", region->culprit.comm,
		 *region->culprit.comm ? ": " : "", cause, regions__sure(region) ? "" : " (unconfirmed)", lost, begin_s,
		 end_s, region->who ? region->who : "?");
	fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" font-weight=\"bold\">%s</text><text x=\"%.2f\" y=\"%.2f\">", x, y,
		run_region->number, x + 4 * SVG_LETTER, y);
	svg__text(out, text, (size_t)((width - 4 * SVG_LETTER) / SVG_LETTER));
	fputs("</text>\n", out);
}

double svg__list_regions(const struct picture *picture, FILE *out, double x, double y, double width)
{
	size_t listed = 0, others = 0;

	for (size_t i = 0; i < picture->report->region_count; i++) {
		const struct run_region *region = &picture->report->regions[i];

		if (!is_drawn(picture, region))
			continue;
		if (listed == LISTED_MOST) {
			others++;
			continue;
		}
		listed++;
		y += SVG_LINE;
		if (out)
			list_region(picture, region, out, x, y, width);
	}
	if (others) {
		y += SVG_LINE;
		if (out)
			fprintf(out, "<text x=\"%.2f\" y=\"%.2f\">and %zu more slow regions</text>\n", x, y, others);
	}
	return y;
}

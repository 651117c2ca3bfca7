// SPDX-License-Identifier: GPL-2.0-or-later
#include "export/svg.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "export/svg_private.h"
#include "report/json.h"

#define WIDTH 252.0 /* 3.5 inches */
#define MARGIN 3.0
#define ROW_MOST 9.0 /* height of a row, at most */
#define MAP_LEAST 30.0
#define MAP_MOST 190.0
#define HOST_LETTERS 10
#define RANK_LETTERS 6
#define TICK 2.0
#define TICK_LEAST 30.0 /* from tick to tick */

void svg__text(FILE *out, const char *text, size_t most)
{
	char *valid = printable(utf8__valid(text));
	size_t count = 0;

	for (const char *at = valid; at && *at; count++) {
		size_t length = utf8__length(at);

		/* the last place is that of the ellipsis, unless all fits */
		if (count + 1 >= most && at[length]) {
			fputs("\u2026", out);
			break;
		}
		if (*at == '<')
			fputs("&lt;", out);
		else if (*at == '>')
			fputs("&gt;", out);
		else if (*at == '&')
			fputs("&amp;", out);
		else if (!strncmp(at, "\uFFFE", length) || !strncmp(at, "\uFFFF", length))
			putc('?', out); /* no characters of XML */
		else
			fwrite(at, 1, length, out);
		at += length;
	}
	free(valid);
}

double svg__x(const struct picture *picture, uint64_t utc_ns)
{
	double bins = (double)utc_ns / (double)picture->map->bin_ns - (double)picture->map->first;
	double columns = fmin(fmax(bins / (double)picture->step, 0), (double)picture->columns);

	return picture->left + columns * picture->width / (double)picture->columns;
}

double svg__y(const struct picture *picture, size_t row)
{
	return picture->top + (double)row * picture->height / (double)picture->row_count;
}

const struct view_map *svg__choose(const struct run_report *report, const char *class, char *err, size_t err_size)
{
	const struct view_map *found = NULL;
	const char *wanted = class ? class : vapro_class_name[VAPRO_COMPUTATION];

	for (size_t i = 0; i < report->view.map_count; i++) {
		const struct view_map *map = &report->view.maps[i];

		if (!map->end || !map->row_count || strcmp(map->class, wanted))
			continue;
		if (found) {
			snprintf(
			    err, err_size,
			    "there are several jobs, as %.200s and %.200s, and a picture has one: choose it by --job",
			    found->job, map->job);
			printable(err);
			return NULL;
		}
		found = map;
	}
	if (!found)
		snprintf(err, err_size,
			 "the run has no heat map of %s, so there is no picture of it; --class chooses another",
			 wanted);
	return found;
}

/* Returns the end of the rows from `first` on that share one of the picture: at most group, and of one host if apart.
 */
static size_t group_end(const struct row_order *order, size_t first, size_t group, bool apart)
{
	size_t end = first + 1;

	while (end < order->count && end < first + group &&
	       (!apart || order->items[end].host == order->items[first].host))
		end++;
	return end;
}

/* Divides the rows into at most SVG_ROWS of the picture; hosts are apart where they are not too many. */
static int group_rows(struct picture *picture)
{
	const struct row_order *order = &picture->order;
	bool apart = picture->host_count <= SVG_ROWS;
	size_t group = (order->count + SVG_ROWS - 1) / SVG_ROWS, count;

	picture->rows = calloc(order->count, sizeof(*picture->rows));
	if (!picture->rows)
		return -ENOMEM;
	do {
		count = 0;
		for (size_t row = 0, end; row < order->count; row = end) {
			end = group_end(order, row, group, apart);
			picture->rows[count++] = (struct svg_row){row, end};
		}
		group++;
	} while (count > SVG_ROWS);
	picture->row_count = count;
	return 0;
}

static void put_text(const struct picture *picture, double x, double y, const char *anchor, const char *text,
		     size_t most)
{
	fprintf(picture->out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", x, y, anchor);
	svg__text(picture->out, text, most);
	fputs("</text>\n", picture->out);
}

static void put_line(const struct picture *picture, double x1, double y1, double x2, double y2, double width)
{
	fprintf(picture->out, "<path d=\"M%.2f %.2fL%.2f %.2f\" stroke=\"#333\" stroke-width=\"%g\" fill=\"none\"/>\n",
		x1, y1, x2, y2, width);
}

/* Returns the greatest number of rows that share one of the picture. */
static size_t largest_group(const struct picture *picture)
{
	size_t most = 1;

	for (size_t row = 0; row < picture->row_count; row++) {
		size_t rows = picture->rows[row].end - picture->rows[row].first;

		most = rows > most ? rows : most;
	}
	return most;
}

static size_t count_ranks(const struct picture *picture)
{
	size_t ranks = 0;

	for (size_t i = 0; i < picture->order.count; i++)
		ranks += picture->order.items[i].row->thread < 0;
	return ranks;
}

/* Writes the lines above the map. Returns the y below them. */
static double put_head(const struct picture *picture)
{
	const struct view_map *map = picture->map;
	size_t letters = (size_t)((WIDTH - 2 * MARGIN) / SVG_LETTER), ranks = count_ranks(picture);
	size_t group = largest_group(picture);
	double y = MARGIN + SVG_FONT;
	bool known = picture->order.items[0].row->rank >= 0;
	const char *one = known ? "rank" : "process", *many = known ? "ranks" : "processes";
	char text[512], lasted[40], column[40], ranks_text[40], begin[JSON_TIME_SIZE];

	fprintf(picture->out, "<text x=\"%.2f\" y=\"%.2f\" font-weight=\"bold\">", MARGIN, y);
	snprintf(text, sizeof(text), "%s%s%s%.300s", picture->waiting ? "Waiting in " : "Performance of ", map->class,
		 *map->job ? ", job " : "", map->job);
	svg__text(picture->out, text, letters - letters / 12); /* bold letters are wider */
	fputs("</text>\n", picture->out);
	json__time(map->first * map->bin_ns, begin);
	begin[19] = 0; /* cuts after seconds */
	begin[10] = ' ';
	duration__text((double)((map->end - map->first) * map->bin_ns) / 1e9, lasted, sizeof(lasted));
	snprintf(text, sizeof(text), "%zu %s on %zu host%s, %s from %s UTC", ranks, ranks == 1 ? one : many,
		 picture->host_count, picture->host_count == 1 ? "" : "s", lasted, begin);
	put_text(picture, MARGIN, y += SVG_LINE, "start", text, letters);
	if (group == 1 && picture->step == 1)
		return y;
	duration__text((double)(picture->step * map->bin_ns) / 1e9, column, sizeof(column));
	snprintf(ranks_text, sizeof(ranks_text), " of up to %zu %s", group, many);
	snprintf(text, sizeof(text), "A cell is the %s%s in %s.", picture->waiting ? "longest waiting" : "slowest bin",
		 group > 1 ? ranks_text : "", column);
	put_text(picture, MARGIN, y += SVG_LINE, "start", text, letters);
	return y;
}

/* Writes a host's name without its domain; of a long one the end, in which hosts of a cluster differ. */
static void name_host(const char *host, char *buf, size_t size)
{
	size_t length = strcspn(host, "."), skipped = 0;

	if (length > HOST_LETTERS && length < size) {
		skipped = length - (HOST_LETTERS - 1);
		while ((host[skipped] & 0xc0) == 0x80) /* not inside a character */
			skipped++;
	}
	snprintf(buf, size, "%s%.*s", skipped ? "\u2026" : "", (int)(length - skipped), host + skipped);
}

/* Draws lines between hosts and names those for whose names there is room. */
static void put_hosts(const struct picture *picture)
{
	double named = picture->top - SVG_LINE;
	char name[256];

	for (size_t row = 0, end; row < picture->row_count; row = end) {
		const struct ordered_row *first = &picture->order.items[picture->rows[row].first];
		double top = svg__y(picture, row), middle;

		for (end = row + 1;
		     end < picture->row_count && picture->order.items[picture->rows[end].first].host == first->host;
		     end++)
			;
		if (row && picture->height / (double)picture->host_count > 2)
			put_line(picture, picture->left, top, picture->left + picture->width, top, 0.25);
		middle = (top + svg__y(picture, end)) / 2 + 0.35 * SVG_FONT;
		if (middle < named + SVG_LINE)
			continue;
		name_host(first->row->host, name, sizeof(name));
		put_text(picture, MARGIN, middle, "start", name, HOST_LETTERS);
		named = middle;
	}
}

/* Returns the step of round numbers by which `count` is divided into no more than `most` parts. */
static double round_step(double count, double most)
{
	static const double factors[] = {1, 2, 5};
	double unit = 1;

	for (size_t i = 0;; i++) {
		double step = factors[i % 3] * unit;

		if (count / step <= most)
			return step;
		if (i % 3 == 2)
			unit *= 10;
	}
}

/*
 * Returns whether a row of the picture is numbered, if there is room: on one host round numbers, on several the first
 * row of each and every step-th from there on that is not near the next host.
 */
static bool is_numbered(const struct picture *picture, size_t row, size_t step)
{
	const struct ordered_row *items = picture->order.items;
	size_t first = picture->rows[row].first, begin = first, end = first;

	if (picture->host_count == 1 && items[first].row->rank >= 0) {
		for (size_t i = first; i < picture->rows[row].end; i++) {
			if (items[i].row->rank % (int64_t)step == 0)
				return true;
		}
		return false;
	}
	while (begin && items[begin - 1].host == items[first].host)
		begin--;
	while (end < picture->order.count && items[end].host == items[first].host)
		end++;
	return first == begin || ((first - begin) % step == 0 && end - first >= step);
}

/* Numbers rows on the left. */
static void put_ranks(const struct picture *picture)
{
	size_t step = (size_t)round_step((double)picture->order.count, picture->height / SVG_LINE);
	double last = 0;
	char name[48];

	for (size_t row = 0; row < picture->row_count; row++) {
		const struct view_row *first = picture->order.items[picture->rows[row].first].row;
		double y = svg__y(picture, row), middle = fmin((y + svg__y(picture, row + 1)) / 2, y + SVG_FONT / 2);

		if (!is_numbered(picture, row, step) || (row && middle < last + SVG_LINE - 1))
			continue;
		if (first->rank < 0)
			snprintf(name, sizeof(name), "pid %llu", (unsigned long long)first->pid);
		else if (first->thread < 0)
			snprintf(name, sizeof(name), "%lld", (long long)first->rank);
		else
			snprintf(name, sizeof(name), "%lld.%lld", (long long)first->rank, (long long)first->thread);
		put_line(picture, picture->left - TICK, middle, picture->left, middle, 0.5);
		put_text(picture, picture->left - TICK - 1, fmax(middle, picture->top + 2) + 0.35 * SVG_FONT, "end",
			 name, 12);
		last = middle;
	}
}

/* Draws the axis of time below the map. Returns the y below it. */
static double put_time(const struct picture *picture)
{
	const struct view_map *map = picture->map;
	double begin_s = (double)(int64_t)(map->first * map->bin_ns - picture->report->start_ns) / 1e9;
	double end_s = (double)(int64_t)(map->end * map->bin_ns - picture->report->start_ns) / 1e9;
	double unit = end_s > 7200 ? 3600 : end_s > 600 ? 60 : 1, bottom = picture->top + picture->height;
	const char *unit_name = end_s > 7200 ? "hours" : end_s > 600 ? "minutes" : "seconds";
	/* in tenths of the unit */
	double step = round_step(10 * (end_s - begin_s) / unit, picture->width / TICK_LEAST) / 10;
	char text[80];

	for (double tick = ceil(begin_s / unit / step - 1e-9) * step; tick * unit <= end_s + 1e-6; tick += step) {
		double x = picture->left + (tick * unit - begin_s) / (end_s - begin_s) * picture->width;
		bool last = x > picture->left + picture->width - SVG_FONT;

		put_line(picture, x, bottom, x, bottom + TICK, 0.5);
		snprintf(text, sizeof(text), "%g", fabs(round(tick * 10) / 10)); /* no minus zero */
		put_text(picture, last ? WIDTH - MARGIN / 2 : x, bottom + TICK + SVG_FONT, last ? "end" : "middle",
			 text, 12);
	}
	snprintf(text, sizeof(text), "%s from the begin of the run", unit_name);
	put_text(picture, picture->left + picture->width / 2, bottom + TICK + 2 * SVG_LINE - 2, "middle", text, 60);
	return bottom + TICK + 2 * SVG_LINE - 2;
}

/* Draws the colours and what they mean. Returns the y below them. */
static double put_legend(const struct picture *picture, double y)
{
	double x = MARGIN + 66, cell = 4.0;

	y += 4;
	put_text(picture, MARGIN, y + 5.5, "start", picture->waiting ? "time waited" : "of best speed", 40);
	put_text(picture, x - 2, y + 5.5, "end", picture->waiting ? "100 %" : "0 %", 8);
	for (unsigned level = SVG_LEVELS; level-- > 0; x += cell)
		fprintf(picture->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"6\" fill=\"#%06x\"/>\n", x,
			y, cell + (level ? 0.2 : 0), scale__color(picture->scale, svg__level_pct(level)));
	put_text(picture, x + 2, y + 5.5, "start", picture->waiting ? "0 %" : "100 %", 8);
	x += 26;
	fprintf(picture->out,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"10\" height=\"6\" fill=\"url(#none)\" stroke=\"#333\" "
		"stroke-width=\"0.4\"/>\n",
		x, y);
	put_text(picture, x + 12, y + 5.5, "start", "not evaluated", 20);
	return y + 6;
}

/* Draws all but the frame of the document. Returns the height of the picture. */
static double draw(struct picture *picture, int *ret)
{
	double y = put_head(picture) + 5, bottom;

	picture->top = y;
	fprintf(picture->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"url(#none)\"/>\n",
		picture->left, picture->top, picture->width, picture->height);
	*ret = svg__cells(picture);
	if (picture->host_count > 1)
		put_hosts(picture);
	put_ranks(picture);
	if (!*ret)
		*ret = svg__regions(picture);
	bottom = put_time(picture);
	fprintf(picture->out,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" stroke=\"#333\" "
		"stroke-width=\"0.5\"/>\n",
		picture->left, picture->top, picture->width, picture->height);
	bottom = put_legend(picture, bottom);
	return svg__list_regions(picture, picture->out, MARGIN, bottom + 1, WIDTH - 2 * MARGIN) + MARGIN + 1;
}

int svg__write(const struct run_report *report, const struct view_map *map, FILE *out)
{
	bool waiting = !strcmp(map->class, vapro_class_name[VAPRO_COMMUNICATION]);
	struct picture picture = {.report = report,
				  .map = map,
				  .waiting = waiting,
				  .scale = &scales[waiting ? SCALE_WAITING : SCALE_SPEED][SCALE_LIGHT]};
	uint64_t bins = map->end - map->first;
	char *body = NULL;
	double height = 0;
	size_t size;
	int ret = row_order__make(&picture.order, &map, 1);

	if (!ret) {
		picture.host_count = picture.order.items[picture.order.count - 1].host + 1;
		ret = group_rows(&picture);
	}
	picture.step = (bins + SVG_COLUMNS - 1) / SVG_COLUMNS;
	picture.columns = (size_t)((bins + picture.step - 1) / picture.step);
	picture.left = MARGIN + TICK + 1 + RANK_LETTERS * SVG_LETTER;
	if (picture.host_count > 1)
		picture.left += (HOST_LETTERS + 1) * SVG_LETTER;
	if (!ret && picture.order.items[0].row->rank < 0)
		picture.left += 5 * SVG_LETTER; /* "pid 4194304" */
	picture.width = WIDTH - MARGIN - picture.left;
	picture.height = fmin(fmax((double)picture.row_count * ROW_MOST, MAP_LEAST), MAP_MOST);
	if (!ret) {
		picture.out = open_memstream(&body, &size);
		if (picture.out)
			height = draw(&picture, &ret);
		if (!picture.out || fclose(picture.out))
			ret = -ENOMEM;
	}
	if (!ret)
		fprintf(out,
			SVG_BEGIN
			"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%gpt\" height=\"%.1fpt\" "
			"viewBox=\"0 0 %g %.1f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"%g\">\n"
			"<title>Heat map of %s</title>\n"
			"<defs><pattern id=\"none\" width=\"3\" height=\"3\" patternUnits=\"userSpaceOnUse\">"
			"<rect width=\"3\" height=\"3\" fill=\"#f4f5f7\"/>"
			"<path d=\"M-1 1L1 -1M0 3L3 0M2 4L4 2\" stroke=\"#b6bcc4\" "
			"stroke-width=\"0.6\"/></pattern></defs>\n"
			"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n%s</svg>\n",
			WIDTH, height, WIDTH, height, SVG_FONT, map->class, body);
	free(body);
	free(picture.rows);
	row_order__free(&picture.order);
	return ret;
}

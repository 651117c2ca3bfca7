// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "page/page_json.h"
#include "page_web.h"

/* The cells of a map with the ids of the elements that hold them. */
struct drawn_map {
	const struct view_map *map;
	struct cells cells;
	char worst[32], mean[32];
};

/* Writes bytes as base64; count is a multiple of 3, or these are the last. */
static void write_base64(const uint8_t *bytes, size_t count, FILE *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[4];

	for (size_t i = 0; i < count; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16;

		three |= i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0;
		three |= i + 2 < count ? bytes[i + 2] : 0;
		text[0] = digits[three >> 18];
		text[1] = digits[three >> 12 & 63];
		text[2] = i + 1 < count ? digits[three >> 6 & 63] : '=';
		text[3] = i + 2 < count ? digits[three & 63] : '=';
		fwrite(text, 1, sizeof(text), out);
	}
}

/* Compresses as zlib does. Cells are runs and noise: to look for longer repetitions costs much and gains nothing. */
static int compress_cells(uint8_t *packed, uLongf *size, const uint8_t *bytes, size_t count)
{
	z_stream stream = {
	    .next_in = (Bytef *)bytes, .avail_in = (uInt)count, .next_out = packed, .avail_out = (uInt)*size};
	int ret = deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS, MAX_MEM_LEVEL, Z_RLE);

	if (ret != Z_OK)
		return -ENOMEM;
	ret = deflate(&stream, Z_FINISH);
	*size = stream.total_out;
	deflateEnd(&stream);
	return ret == Z_STREAM_END ? 0 : -ENOMEM;
}

/* Writes bytes, compressed, as an element that is no program. */
static int write_bytes(const char *id, const uint8_t *bytes, size_t count, FILE *out)
{
	uLongf size = compressBound(count) + count / 16; /* that of zlib is for its default strategy */
	uint8_t *packed = malloc(size);

	if (!packed || compress_cells(packed, &size, bytes, count)) {
		free(packed);
		return -ENOMEM;
	}
	fprintf(out, "<script type=\"application/octet-stream\" id=\"%s\">", id);
	write_base64(packed, size, out);
	fputs("</script>\n", out);
	free(packed);
	return 0;
}

/* Writes JSON as an element that is no program: no text in it can end the element. */
static int write_json(const cJSON *object, FILE *out)
{
	char *text = cJSON_PrintUnformatted(object);

	if (!text)
		return -ENOMEM;
	fputs("<script type=\"application/json\" id=\"data\">", out);
	for (const char *at = text; *at;) {
		size_t plain = strcspn(at, "<");

		fwrite(at, 1, plain, out);
		at += plain;
		if (*at) {
			fputs("\\u003c", out);
			at++;
		}
	}
	fputs("</script>\n", out);
	cJSON_free(text);
	return 0;
}

static size_t count_cells(const struct run_report *report, size_t *maps)
{
	size_t cells = 0;

	*maps = 0;
	for (size_t i = 0; i < report->view.map_count; i++) {
		const struct view_map *map = &report->view.maps[i];

		cells += map->row_count * (map->end - map->first);
		*maps += map->end > 0;
	}
	return cells;
}

/* Lists the times of the regions of a map's job and class, most important first. Returns the count. */
static size_t list_intervals(const struct run_report *report, const struct view_map *map,
			     struct cells_interval *intervals)
{
	size_t count = 0;

	for (size_t i = 0; i < report->region_count; i++) {
		const struct region *region = report->regions[i].region;

		if (!strcmp(region->job, map->said))
			intervals[count++] = (struct cells_interval){region->begin_ns / map->bin_ns,
								     (region->end_ns + map->bin_ns - 1) / map->bin_ns};
	}
	return count;
}

/* Returns how the values of a map are rounded; all: cells of the page. */
static enum cells_rounding rounding_of(const struct view_map *map, size_t all)
{
	if (all <= CELLS_ROUNDED)
		return CELLS_EXACT;
	return strcmp(map->class, vapro_class_name[VAPRO_COMMUNICATION]) ? CELLS_SPEED : CELLS_WAITING;
}

/* Makes the cells of all maps and adds these to the page. Returns 0 or -ENOMEM. */
static int make_maps(const struct run_report *report, cJSON *page, struct drawn_map *drawn, size_t *count)
{
	struct cells_interval *intervals = calloc(report->region_count + 1, sizeof(*intervals));
	size_t maps, all = count_cells(report, &maps);
	int ret = intervals ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < report->view.map_count; i++) {
		const struct view_map *map = &report->view.maps[i];
		struct drawn_map *own = &drawn[*count];
		size_t cells = map->row_count * (map->end - map->first);

		if (!map->end)
			continue;
		*own = (struct drawn_map){.map = map};
		snprintf(own->worst, sizeof(own->worst), "worst-%zu", i);
		snprintf(own->mean, sizeof(own->mean), "mean-%zu", i);
		(*count)++;
		/* each map has its share of what is allowed */
		ret =
		    cells__make(&own->cells, map, intervals, list_intervals(report, map, intervals),
				all <= CELLS_MOST ? cells : (size_t)((double)CELLS_MOST * (double)cells / (double)all),
				rounding_of(map, all));
		if (!ret &&
		    !page_json__add_map(page, report, map, &own->cells, own->worst, own->cells.mean ? own->mean : NULL))
			ret = -ENOMEM;
	}
	free(intervals);
	return ret;
}

static int write_page(const cJSON *page, const struct drawn_map *drawn, size_t count, FILE *out)
{
	int ret;

	fwrite(page_before, 1, sizeof(page_before), out);
	ret = write_json(page, out);
	for (size_t i = 0; !ret && i < count; i++) {
		const struct cells *cells = &drawn[i].cells;

		ret = write_bytes(drawn[i].worst, cells->worst, cells->rows * cells->columns, out);
		if (!ret && cells->mean)
			ret = write_bytes(drawn[i].mean, cells->mean, cells->rows * cells->columns, out);
	}
	fwrite(page_after, 1, sizeof(page_after), out);
	if (!ret && (fflush(out) || ferror(out)))
		ret = errno ? -errno : -EIO;
	return ret;
}

int page__write(const struct run_report *report, const struct report_input *input, const char *version, FILE *out)
{
	struct drawn_map *drawn = calloc(report->view.map_count + 1, sizeof(*drawn));
	cJSON *page = drawn ? page_json__report(report, input, version) : NULL;
	size_t count = 0;
	int ret = page ? 0 : -ENOMEM;

	errno = 0;
	if (!ret)
		ret = make_maps(report, page, drawn, &count);
	if (!ret)
		ret = write_page(page, drawn, count, out);
	for (size_t i = 0; i < count; i++)
		cells__free(&drawn[i].cells);
	free(drawn);
	cJSON_Delete(page);
	return ret;
}

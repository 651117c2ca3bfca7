// SPDX-License-Identifier: GPL-2.0-or-later
/* The model of a report, the cells of its maps, and what is written as a page. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <cmocka.h>

#include "page/cells.h"
#include "page/page.h"
#include "page/page_json.h"
#include "page/run_report.h"
#include "parsed.h"

#define BEGIN "\"begin\":\"2026-01-01T00:00:00.000000000Z\""
#define HEAD(type)                                                                                                     \
	"{\"schema\":\"vapro/1\",\"type\":\"" type "\",\"time\":\"2026-01-01T00:00:10.000000000Z\",\"host\":\"n1\","
#define WINDOW(end, covered)                                                                                           \
	HEAD("window")                                                                                                 \
	"\"job\":\"j\"," BEGIN ",\"end\":\"" end "\",\"ranks\":\"0-1\",\"coverage\":{\"total\":" covered               \
	",\"computation\":" covered "},\"performance\":{\"computation\":0.9},\"uncovered\":[{\"labels\":null,"         \
	"\"time_pct_of_job\":50,\"reason\":\"few_fragments\"}]}\n"
#define VARIANCE(id, revision, class, lost, effect)                                                                    \
	HEAD("variance")                                                                                               \
	"\"job\":\"j\",\"id\":" id ",\"revision\":" revision                                                           \
	",\"state\":\"closed\",\"class\":\"" class "\"," BEGIN                                                         \
						   ",\"end\":\"2026-01-01T00:00:02.000000000Z\",\"ranks\":\"0\","      \
						   "\"who\":\"rank 0\",\"performance\":0.5,"                           \
						   "\"lost_seconds\":" lost                                            \
						   ",\"severity\":\"warning\",\"confidence\":\"confirmed\",\"alarm\":" \
						   "true,"                                                             \
						   "\"effect_of\":" effect ",\"call_sites\":[]}\n"
#define DIAGNOSIS(id, comm)                                                                                            \
	HEAD("diagnosis")                                                                                              \
	"\"job\":\"j\",\"variance\":" id ",\"factors\":[],\"interferers\":[{\"comm\":\"" comm                          \
	"\",\"pid\":7,\"seconds\":1,\"relation\":\"foreign\"}],\"where\":{\"hosts\":[\"n1\"]},\"cause\":"              \
	"\"preempted\","                                                                                               \
	"\"culprit\":\"" comm "\",\"advice\":\"move it\"}\n"
#define OTHER_HOST(type, members)                                                                                      \
	"{\"schema\":\"vapro/1\",\"type\":\"" type                                                                     \
	"\",\"time\":\"2026-01-01T00:00:10.000000000Z\",\"host\":\"n2\",\"job\":\"j\"," members "}\n"
#define HOSTILE "</script><script>alert(1)</script>"

static void read_text(struct run_report *report, const char *text)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(run_report__init(report), 0);
	assert_int_equal(run_report__add_file(report, file, -1, "test"), 0);
	assert_int_equal(report->view.bad_lines, 0);
	assert_int_equal(run_report__finish(report), 0);
	fclose(file);
}

static void test_bytes(void **state)
{
	(void)state;
	assert_int_equal(cells__byte(NAN, CELLS_EXACT), 0);
	assert_int_equal(cells__byte(0, CELLS_EXACT), 1);
	assert_int_equal(cells__byte(-0.5, CELLS_EXACT), 1);
	assert_int_equal(cells__byte(0.504, CELLS_EXACT), 51);
	assert_int_equal(cells__byte(1, CELLS_EXACT), 101);
	assert_int_equal(cells__byte(1.5, CELLS_EXACT), 101);
	assert_int_equal(cells__byte(0.94, CELLS_SPEED), 95);
	assert_int_equal(cells__byte(0.95, CELLS_SPEED), 98);
	assert_int_equal(cells__byte(1, CELLS_SPEED), 98);
	assert_int_equal(cells__byte(NAN, CELLS_SPEED), 0);
	assert_int_equal(cells__byte(0.52, CELLS_WAITING), 51);
	assert_int_equal(cells__byte(0.53, CELLS_WAITING), 56);
	assert_int_equal(cells__byte(1, CELLS_WAITING), 101);
	assert_int_equal(cells__byte(0, CELLS_WAITING), 1);
}

/* Adds a map of two rows, "bins" bins each; rank 1 has no value in the first half. */
static void make_map(struct run_report *report, unsigned bins, unsigned slow)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fputs(HEAD("heatmap") "\"job\":\"j\",\"class\":\"computation\"," BEGIN
			      ",\"bin_ns\":200000000,\"revision\":0,\"rows\":[",
	      out);
	for (int rank = 0; rank < 2; rank++) {
		fprintf(out, "%s{\"rank\":%d,\"pid\":%d,\"host\":\"n%d\",\"values\":[", rank ? "," : "", rank,
			10 + rank, rank);
		for (unsigned bin = 0; bin < bins; bin++) {
			fputs(bin ? "," : "", out);
			if (rank && bin < bins / 2)
				fputs("null", out);
			else
				fputs(bin == slow ? "0.25" : "0.75", out);
		}
		fputs("]}", out);
	}
	fputs("]}\n", out);
	fclose(out);
	read_text(report, text);
	free(text);
}

static void test_full_resolution(void **state)
{
	struct run_report report;
	struct cells cells;

	(void)state;
	make_map(&report, 10, 3);
	assert_int_equal(cells__make(&cells, &report.view.maps[0], NULL, 0, 20, CELLS_EXACT), 0);
	assert_int_equal(cells.rows, 2);
	assert_int_equal(cells.columns, 10);
	assert_int_equal(cells.part_count, 1);
	assert_null(cells.mean);
	for (int bin = 0; bin < 10; bin++) {
		assert_int_equal(cells.worst[bin], bin == 3 ? 26 : 76);
		assert_int_equal(cells.worst[10 + bin], bin < 5 ? 0 : 76);
	}
	cells__free(&cells);
	run_report__free(&report);
}

/* Around the region each bin is a column; elsewhere columns have the worst and the mean of several. */
static void test_two_resolutions(void **state)
{
	const struct view_map *map;
	struct run_report report;
	struct cells cells;
	uint64_t at, fine = 0;
	size_t column = 0;

	(void)state;
	make_map(&report, 1000, 203);
	map = &report.view.maps[0];
	assert_int_equal(cells__make(&cells, map, &(struct cells_interval){map->first + 500, map->first + 520}, 1,
				     2 * 200, CELLS_EXACT),
			 0);
	assert_true(cells.columns < 210);
	assert_non_null(cells.mean);
	at = map->first;
	for (size_t p = 0; p < cells.part_count; p++) {
		const struct cells_part *part = &cells.parts[p];

		/* without a gap, but for what the last column of a part has less */
		assert_true(part->first <= at && (!p || part->first + cells.parts[p - 1].bins > at));
		at = part->first + (uint64_t)part->columns * part->bins;
		if (part->bins == 1) {
			fine += part->columns;
			assert_true(part->first <= map->first + 500 && at >= map->first + 520);
		}
		for (uint32_t i = 0; i < part->columns; i++, column++) {
			uint64_t first = part->first - map->first + (uint64_t)i * part->bins;
			bool slow = first <= 203 && 203 < first + part->bins;

			assert_int_equal(cells.worst[column], slow ? 26 : 76);
			if (part->bins == 1)
				assert_int_equal(cells.mean[column], 0);
			else
				assert_int_equal(cells.mean[column],
						 slow ? lround(100 * (0.75 - 0.5 / part->bins)) + 1 : 76);
		}
	}
	assert_int_equal(fine, 40); /* the region and 10 bins on both sides */
	assert_int_equal(column, cells.columns);
	assert_int_equal(cells.worst[cells.columns], 0);
	assert_int_equal(cells.worst[2 * cells.columns - 1], 76);
	cells__free(&cells);
	run_report__free(&report);
}

/* Many regions: not all of them fit in full resolution, and the columns stay bounded. */
static void test_bounded(void **state)
{
	struct cells_interval intervals[100];
	struct run_report report;
	struct cells cells;

	(void)state;
	make_map(&report, 5000, 0);
	for (uint64_t i = 0; i < 100; i++)
		intervals[i].end = (intervals[i].first = report.view.maps[0].first + 50 * i) + 25;
	assert_int_equal(cells__make(&cells, &report.view.maps[0], intervals, 100, 2 * 500, CELLS_SPEED), 0);
	assert_true(cells.columns <= 500 + cells.part_count + 2);
	assert_int_equal(cells.parts[0].bins, 1); /* the first is the most important */
	cells__free(&cells);
	run_report__free(&report);
}

static void test_regions(void **state)
{
	struct run_report report;
	char text[RUN_REPORT_VERDICT_SIZE];

	(void)state;
	read_text(&report,
		  WINDOW("2026-01-01T00:00:10.000000000Z", "0.5") VARIANCE("1", "0", "computation", "1", "null")
		      VARIANCE("2", "0", "computation", "5", "null") VARIANCE("3", "0", "communication", "2", "1")
			  VARIANCE("1", "1", "computation", "2", "null") DIAGNOSIS("2", "hog"));
	assert_int_equal(report.region_count, 3);
	assert_string_equal(report.regions[0].number, "1");
	assert_int_equal(report.regions[0].region->id, 2);
	assert_non_null(report.regions[0].diagnosis);
	assert_string_equal(report.regions[1].number, "2");
	assert_int_equal(report.regions[1].region->id, 1);
	assert_true(fabs(report.regions[1].region->lost_seconds - 2) < 1e-9); /* the latest revision */
	is_number(report.regions[1].variance, "revision", 1);
	assert_null(report.regions[1].diagnosis);
	assert_string_equal(report.regions[2].number, "2.1");
	assert_int_equal(report.regions[2].region->id, 3);
	assert_int_equal(report.end_ns - report.start_ns, 10000000000ULL);
	assert_string_equal(run_report__verdict(&report, text), "critical"); /* 25 % of the time */
	assert_non_null(strstr(text, "hog and others preempted rank 0 on host n1, from 0.0 to 2.0 s: 5.00 s lost"));
	run_report__free(&report);
}

/* Sentences of records name variances by their ids, the page by its own numbers. */
static void test_words(void **state)
{
	struct run_report report;
	cJSON *list;

	(void)state;
	read_text(&report,
		  VARIANCE("7", "0", "computation", "5", "null") HEAD(
		      "variance") "\"job\":\"j\",\"id\":9,\"class\":\"communication\"," BEGIN
				  ",\"end\":\"2026-01-01T00:00:02.000000000Z\",\"ranks\":\"1\",\"lost_seconds\":2,"
				  "\"effect_of\":7,\"call_sites\":[],\"verdict\":\"rank 1 lost 2 s: it waited for what "
				  "variance 7 is about, not variance 70.\"}\n");
	list = page_json__regions(&report);
	assert_non_null(list);
	assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 1), "verdict")->valuestring,
			    "rank 1 lost 2 s: it waited for what region 1 is about, not variance 70.");
	cJSON_Delete(list);
	run_report__free(&report);
}

/* Effects of effects follow the cause, and those that name each other are all listed. */
static void test_effects(void **state)
{
	struct run_report report;

	(void)state;
	read_text(&report, VARIANCE("1", "0", "computation", "9", "null") VARIANCE("2", "0", "communication", "3", "1")
			       VARIANCE("3", "0", "communication", "2", "2") VARIANCE("4", "0", "io", "1", "5")
				   VARIANCE("5", "0", "io", "1", "4") VARIANCE("6", "0", "io", "0.5", "77"));
	assert_int_equal(report.region_count, 6);
	assert_string_equal(report.regions[1].number, "1.1");
	assert_int_equal(report.regions[1].region->id, 2);
	assert_string_equal(report.regions[2].number, "1.2");
	assert_int_equal(report.regions[2].region->id, 3);
	assert_int_equal(report.regions[5].region->id, 6); /* its cause is not in the input */
	assert_string_equal(report.regions[5].number, "4");
	run_report__free(&report);
}

/* Heat maps alone: the records were filtered. */
static void test_no_window(void **state)
{
	struct run_report report;
	char text[RUN_REPORT_VERDICT_SIZE];

	(void)state;
	make_map(&report, 10, 3);
	assert_string_equal(run_report__verdict(&report, text), "no result");
	assert_non_null(strstr(text, "the records have no window"));
	run_report__free(&report);
}

/* Each vaprod numbers its own regions. */
static void test_hosts(void **state)
{
	struct run_report report;

	(void)state;
	read_text(&report,
		  VARIANCE("1", "0", "computation", "1", "null") DIAGNOSIS("1", "hog") OTHER_HOST(
		      "variance", "\"id\":1,\"revision\":0,\"state\":\"closed\",\"class\":\"computation\"," BEGIN
				  ",\"end\":\"2026-01-01T00:00:02.000000000Z\",\"ranks\":\"5\",\"lost_seconds\":3")
		      OTHER_HOST("variance",
				 "\"id\":2,\"revision\":0,\"state\":\"closed\",\"class\":\"communication\"," BEGIN
				 ",\"end\":\"2026-01-01T00:00:02.000000000Z\",\"ranks\":\"6\","
				 "\"lost_seconds\":3,\"effect_of\":1"));
	assert_int_equal(report.region_count, 3);
	assert_int_equal(report.regions[0].region->ranks[0], 0); /* it alone is sure */
	assert_non_null(report.regions[0].diagnosis);
	assert_string_equal(report.regions[1].number, "2");
	assert_int_equal(report.regions[1].region->ranks[0], 5);
	assert_null(report.regions[1].diagnosis);
	assert_string_equal(report.regions[2].number, "2.1");
	is_text(report.regions[2].variance, "host", "n2");
	assert_int_equal(report.cause_list.count, 2);
	run_report__free(&report);
}

static char *write_page(const struct run_report *report)
{
	static const char *const files[] = {"a " HOSTILE};
	const struct report_input input = {
	    .files = files, .count = 1, .kind = FILE_KIND_RECORDS, .run_read = 1, .runs = 1};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(page__write(report, &input, "0", out), 0);
	fclose(out);
	assert_int_equal(strncmp(text, PAGE_BEGIN, strlen(PAGE_BEGIN)), 0);
	return text;
}

static void test_verdicts(void **state)
{
	struct run_report report;
	char text[RUN_REPORT_VERDICT_SIZE], *page;

	(void)state;
	read_text(&report, WINDOW("2026-01-01T00:00:10.000000000Z", "0.5"));
	assert_string_equal(run_report__verdict(&report, text), "quiet");
	assert_string_equal(text, "no slow region found in the 50.0 % of the ranks' time that could be compared");
	run_report__free(&report);
	read_text(&report, WINDOW("2026-01-01T00:00:10.000000000Z", "0"));
	assert_string_equal(run_report__verdict(&report, text), "no result");
	assert_non_null(strstr(text, "What would help: a longer run"));
	run_report__free(&report);
	/* a hang is worse than anything that is slow */
	read_text(&report,
		  WINDOW("2026-01-01T00:00:10.000000000Z", "0.5") VARIANCE("3", "0", "computation", "2.5", "null")
		      HEAD("hang") "\"job\":\"j\",\"id\":4,\"alarm\":true,\"severity\":\"critical\",\"text\":"
				   "\"hang: no rank\"}\n");
	assert_string_equal(run_report__verdict(&report, text), "critical");
	assert_string_equal(text, "hang: no rank");
	run_report__free(&report);
	/* alarms stand above the causes, what is none among the findings */
	read_text(&report,
		  WINDOW("2026-01-01T00:00:10.000000000Z", "0.5")
		      HEAD("hang") "\"job\":\"j\",\"id\":4,\"alarm\":true,\"severity\":\"critical\",\"text\":"
				   "\"hang: no rank\"}\n" HEAD(
				       "hang") "\"job\":\"j\",\"id\":5,\"alarm\":false,\"severity\":\"info\",\"text\":"
					       "\"waiting for input\"}\n");
	page = write_page(&report);
	assert_non_null(strstr(page, "\"hangs\":[{\"job\":\"j\",\"severity\":\"critical\",\"text\":"
				     "\"hang: no rank\"}]"));
	assert_non_null(strstr(page, "{\"kind\":\"note\",\"text\":\"waiting for input\"}"));
	free(page);
	run_report__free(&report);
	read_text(&report, HEAD("hello") "\"version\":\"1\"}\n");
	assert_string_equal(run_report__verdict(&report, text), "no result");
	assert_string_equal(text, "no MPI or multi-threaded process was found");
	run_report__free(&report);
}

/* The second sentence on coverage is that of the terminal, and does not repeat the verdict. */
static void test_coverage(void **state)
{
	static const struct {
		const char *covered, *finding, *verdict, *coverage;
	} cases[] = {
	    {"0.7", VARIANCE("3", "0", "computation", "2.5", "null"), "critical", NULL},
	    {"0.05", VARIANCE("3", "0", "computation", "2.5", "null"), "critical", "only 5.0 % of the time of job j "},
	    {"0.05", "", "quiet", "only 5.0 % of the time of job j "},
	    {"0.0", "", "no result", NULL},
	    {"0.0", HEAD("hang") "\"job\":\"j\",\"id\":4,\"alarm\":true,\"severity\":\"critical\",\"text\":\"h\"}\n",
	     "critical", "only 0.0 % of the time of job j "},
	};
	char text[RUN_REPORT_VERDICT_SIZE], records[4096], *page;
	struct run_report report;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(records, sizeof(records), WINDOW("2026-01-01T00:00:10.000000000Z", "%s") "%s",
			 cases[i].covered, cases[i].covered, cases[i].finding);
		read_text(&report, records);
		assert_string_equal(run_report__verdict(&report, text), cases[i].verdict);
		assert_int_equal(run_report__coverage(&report, 0, text), cases[i].coverage != NULL);
		page = write_page(&report);
		if (cases[i].coverage) {
			assert_memory_equal(text, cases[i].coverage, strlen(cases[i].coverage));
			assert_non_null(strstr(page, "\"notes\":[\"only "));
		} else {
			assert_non_null(strstr(page, "\"notes\":[]"));
		}
		free(page);
		run_report__free(&report);
	}
}

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		found++;
	return found;
}

/* Returns the contents of the element with this beginning; malloc'ed. */
static char *contents(const char *page, const char *begin)
{
	const char *at = strstr(page, begin);

	assert_non_null(at);
	at += strlen(begin);
	return strndup(at, (size_t)(strstr(at, "</script>") - at));
}

static size_t decode(const char *text, uint8_t *bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t value = 0;
	unsigned bits = 0;
	size_t size = 0;

	for (; *text && *text != '='; text++) {
		assert_non_null(strchr(digits, *text));
		value = value << 6 | (uint32_t)(strchr(digits, *text) - digits);
		bits += 6;
		if (bits >= 8)
			bytes[size++] = (uint8_t)(value >> (bits -= 8));
	}
	return size;
}

static void test_page_has_cells(void **state)
{
	uint8_t packed[4096], cells[20];
	struct run_report report;
	uLongf size = sizeof(cells);
	char *page, *text;
	cJSON *data;

	(void)state;
	make_map(&report, 10, 3);
	page = write_page(&report);
	text = contents(page, "<script type=\"application/octet-stream\" id=\"worst-0\">");
	assert_true(strlen(text) < sizeof(packed));
	assert_int_equal(uncompress(cells, &size, packed, decode(text, packed)), Z_OK);
	assert_int_equal(size, 20);
	assert_int_equal(cells[3], 26);
	assert_int_equal(cells[10], 0);
	free(text);
	text = contents(page, "<script type=\"application/json\" id=\"data\">");
	data = cJSON_Parse(text);
	is_text(data, "maps/0/worst", "worst-0");
	is_null(data, "maps/0/mean");
	is_number(data, "maps/0/bin", 0.2);
	is_number(data, "maps/0/parts/0/1", 10);
	is_number(data, "maps/0/rows/1/0", 1);
	is_text(data, "hosts/1", "n1");
	is_text(data, "start", "1767225600000000000");
	cJSON_Delete(data);
	free(text);
	free(page);
	run_report__free(&report);
}

/* A text of a user ends no element, and comes out as it was. */
static void test_texts_are_no_markup(void **state)
{
	struct run_report plain, hostile;
	char *pages[2], *text;
	cJSON *data;

	(void)state;
	read_text(&plain, WINDOW("2026-01-01T00:00:10.000000000Z", "0.5") VARIANCE("2", "0", "computation", "3", "null")
			      DIAGNOSIS("2", "hog"));
	read_text(&hostile, WINDOW("2026-01-01T00:00:10.000000000Z", "0.5")
				VARIANCE("2", "0", "computation", "3", "null") DIAGNOSIS("2", HOSTILE));
	pages[0] = write_page(&plain);
	pages[1] = write_page(&hostile);
	assert_int_equal(count(pages[0], "<script"), count(pages[1], "<script"));
	assert_int_equal(count(pages[0], "</script"), count(pages[1], "</script"));
	assert_int_equal(count(pages[1], "default-src 'none'"), 1);
	text = contents(pages[1], "<script type=\"application/json\" id=\"data\">");
	data = cJSON_Parse(text);
	is_text(data, "regions/0/interferers/0/comm", HOSTILE);
	is_text(data, "source/files/0", "a " HOSTILE);
	cJSON_Delete(data);
	free(text);
	free(pages[0]);
	free(pages[1]);
	run_report__free(&plain);
	run_report__free(&hostile);
}

/* A page is bounded: it has the worst regions and counts the others. */
static void test_many_regions(void **state)
{
	char *text = NULL, *page;
	struct run_report report;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	cJSON *data;

	(void)state;
	for (int id = 1; id <= PAGE_REGIONS + 3; id++)
		fprintf(out,
			HEAD("variance") "\"job\":\"j\",\"id\":%d,\"revision\":0,\"state\":\"closed\",\"class\":"
					 "\"io\"," BEGIN ",\"end\":\"2026-01-01T00:00:02.000000000Z\",\"ranks\":\"0\","
					 "\"lost_seconds\":%d}\n",
			id, id);
	fclose(out);
	read_text(&report, text);
	free(text);
	page = write_page(&report);
	text = contents(page, "<script type=\"application/json\" id=\"data\">");
	data = cJSON_Parse(text);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(data, "regions")), PAGE_REGIONS);
	is_number(data, "regions/0/lost", PAGE_REGIONS + 3);
	is_number(data, "regions_more", 3);
	cJSON_Delete(data);
	free(text);
	free(page);
	run_report__free(&report);
}

/* What cannot be written is an error. */
static void test_full_disk(void **state)
{
	const struct report_input input = {.kind = FILE_KIND_RECORDS};
	struct run_report report;
	FILE *out = fopen("/dev/full", "w");

	(void)state;
	make_map(&report, 10, 3);
	assert_int_equal(page__write(&report, &input, "0", out), -ENOSPC);
	fclose(out);
	run_report__free(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bytes),
	    cmocka_unit_test(test_full_resolution),
	    cmocka_unit_test(test_two_resolutions),
	    cmocka_unit_test(test_bounded),
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_regions),
	    cmocka_unit_test(test_verdicts),
	    cmocka_unit_test(test_coverage),
	    cmocka_unit_test(test_hosts),
	    cmocka_unit_test(test_no_window),
	    cmocka_unit_test(test_effects),
	    cmocka_unit_test(test_page_has_cells),
	    cmocka_unit_test(test_texts_are_no_markup),
	    cmocka_unit_test(test_full_disk),
	    cmocka_unit_test(test_many_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

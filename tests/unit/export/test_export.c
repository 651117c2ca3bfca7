/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pictures, tables and traces: fields of any text, events that nest, rows host by host, colours in order. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/utf8.h"
#include "export/csv.h"
#include "export/csv.h"
#include "export/row_order.h"
#include "export/svg.h"
#include "export/trace.h"
#include "export/trace_private.h"
#include "page/scale.h"

static void becomes(const char *text, const char *wanted)
{
	char *valid = utf8__valid(text);

	assert_string_equal(valid, wanted);
	free(valid);
}

static void test_utf8(void **state)
{
	(void)state;
	becomes("", "");
	becomes("a\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80", "a\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80");
	becomes("\xff\x80", "??");
	becomes("\xc0\x80", "??");	     /* too long a form */
	becomes("\xed\xa0\x80", "???");	     /* half of a pair of UTF-16 */
	becomes("\xf4\x90\x80\x80", "????"); /* beyond the last character */
	becomes("\xe2\x82", "??");	     /* cut off */
	becomes("\xe2\x82z", "??z");	     /* and followed by another one */
}

static void field_becomes(const char *text, const char *wanted)
{
	char *written = NULL;
	size_t size;
	struct csv_row row = {.out = open_memstream(&written, &size)};

	csv__text(&row, text);
	csv__text(&row, "b");
	csv__end(&row);
	fclose(row.out);
	assert_string_equal(written, wanted);
	free(written);
}

/* RFC 4180, section 2. */
static void test_fields(void **state)
{
	(void)state;
	field_becomes("a", "a,b\r\n");
	field_becomes(NULL, ",b\r\n");
	field_becomes("", "\"\",b\r\n");
	field_becomes("a,b", "\"a,b\",b\r\n");
	field_becomes("say \"a\"", "\"say \"\"a\"\"\",b\r\n");
	field_becomes("two\nlines", "\"two\nlines\",b\r\n");
	field_becomes("two\rlines", "\"two\rlines\",b\r\n");
	field_becomes("a\xff,", "\"a?,\",b\r\n");
}

static void put_slice(struct trace_slices *slices, size_t row, uint64_t begin, uint64_t end)
{
	assert_int_equal(trace_slices__add(slices, &(struct trace_slice){.row = row, .begin_ns = begin, .end_ns = end}),
			 0);
}

static void test_slices(void **state)
{
	struct trace_slices slices = {.count = 0};

	(void)state;
	put_slice(&slices, 1, 0, 10);
	put_slice(&slices, 0, 5, 15); /* overlaps the end of the next one */
	put_slice(&slices, 0, 0, 10);
	put_slice(&slices, 0, 2, 4);  /* nests */
	put_slice(&slices, 0, 4, 10); /* begins where another one ends, and ends with the outer one */
	put_slice(&slices, 0, 15, 20);
	trace_slices__place(&slices);
	assert_int_equal(slices.items[0].end_ns, 10);
	assert_int_equal(slices.items[0].lane, 0);
	assert_int_equal(slices.items[1].lane, 0);
	assert_int_equal(slices.items[2].lane, 0);
	assert_int_equal(slices.items[3].begin_ns, 5);
	assert_int_equal(slices.items[3].lane, 1);
	assert_int_equal(slices.items[4].lane, 0);
	assert_int_equal(slices.items[5].row, 1);
	assert_int_equal(slices.items[5].lane, 0);
	trace_slices__free(&slices);
}

/* What finds no lane is marked: each slice of this stairway overlaps all others. */
static void test_too_many_lanes(void **state)
{
	struct trace_slices slices = {.count = 0};
	size_t without = 0;

	(void)state;
	for (uint64_t i = 0; i < TRACE_LANES + 3; i++)
		put_slice(&slices, 0, i, 1000 + i);
	trace_slices__place(&slices);
	for (size_t i = 0; i < slices.count; i++)
		without += slices.items[i].lane == TRACE_LANES;
	assert_int_equal(without, 3);
	trace_slices__free(&slices);
}

static void test_rows(void **state)
{
	struct view_row first[] = {{.rank = 0, .thread = -1, .host = "b"},
				   {.rank = 1, .thread = -1, .host = "a"},
				   {.rank = 2, .thread = -1, .host = "b"},
				   {.rank = 2, .thread = 0, .host = "b"}};
	struct view_row second[] = {{.rank = 2, .thread = -1, .host = "b"}, {.rank = 3, .thread = -1, .host = "a"}};
	struct view_map maps[] = {{.rows = first, .row_count = 4}, {.rows = second, .row_count = 2}};
	const struct view_map *both[] = {&maps[0], &maps[1]};
	static const struct {
		int64_t rank, thread;
		size_t host;
	} wanted[] = {{0, -1, 0}, {2, -1, 0}, {2, 0, 0}, {1, -1, 1}, {3, -1, 1}};
	struct row_order order;
	char name[40];

	(void)state;
	assert_int_equal(row_order__make(&order, both, 2), 0);
	assert_int_equal(order.count, 5);
	for (size_t i = 0; i < order.count; i++) {
		assert_int_equal(order.items[i].row->rank, wanted[i].rank);
		assert_int_equal(order.items[i].row->thread, wanted[i].thread);
		assert_int_equal(order.items[i].host, wanted[i].host);
	}
	assert_string_equal(row_order__name(order.items[2].row, name, sizeof(name)), "rank 2 thread 0");
	row_order__free(&order);
	assert_int_equal(row_order__make(&order, both, 0), 0);
	assert_int_equal(order.count, 0);
	row_order__free(&order);
}

/* Returns how light a colour is to the eye, 0 to 1 (relative luminance of sRGB). */
static double lightness(uint32_t rgb)
{
	static const double weights[] = {0.2126, 0.7152, 0.0722};
	double sum = 0;

	for (unsigned i = 0; i < 3; i++) {
		double value = (rgb >> (16 - 8 * i) & 255) / 255.0;

		sum += weights[i] * (value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4));
	}
	return sum;
}

/* Who does not see colours sees the order all the same, in steps of a tenth of the scale. */
static void test_scales(void **state)
{
	(void)state;
	for (int kind = 0; kind < SCALE_KINDS; kind++) {
		for (int ground = 0; ground < SCALE_GROUNDS; ground++) {
			const struct scale *scale = &scales[kind][ground];
			double last = lightness(scale__color(scale, 100));

			for (int pct = 90; pct >= 0; pct -= 10) {
				double light = lightness(scale__color(scale, pct));

				assert_true(ground == SCALE_DARK ? light > last : light < last);
				last = light;
			}
		}
	}
	assert_int_equal(scale__color(&scales[SCALE_SPEED][SCALE_LIGHT], 100), 0xdbe8f2);
	assert_int_equal(scale__color(&scales[SCALE_SPEED][SCALE_LIGHT], 0), 0x3a0f52);
	assert_int_equal(scale__color(&scales[SCALE_SPEED][SCALE_LIGHT], -5), 0x3a0f52);
	assert_int_equal(scale__color(&scales[SCALE_SPEED][SCALE_LIGHT], 80), 0xf5b955);
}

#define HEAD "{\"schema\":\"vapro/1\",\"time\":\"2027-01-15T08:00:15.000000000Z\",\"host\":\"n1\",\"job\":\"j\","

/*
 * Processes of unknown rank, threads with rows of their own, a region that says little, two jobs of different users, a
 * noise component.
 */
static const char records[] = HEAD
    "\"type\":\"heatmap\",\"class\":\"computation\",\"begin\":\"2027-01-15T08:00:00.000000000Z\",\"bin_ns\":200000000,"
    "\"revision\":0,\"rows\":[{\"rank\":-1,\"pid\":7,\"values\":[1,0.5,null]},{\"rank\":-1,\"pid\":8,\"values\":[1,1,1]"
    "},"
    "{\"rank\":4,\"pid\":9,\"values\":[1]},{\"rank\":4,\"pid\":9,\"thread\":1,\"values\":[0.2]}]}\n" HEAD
    "\"uid\":5,\"type\":\"heatmap\",\"class\":\"computation\",\"begin\":\"2027-01-15T08:00:00.000000000Z\","
    "\"bin_ns\":200000000,\"revision\":0,\"rows\":[{\"rank\":0,\"pid\":7,\"values\":[1]}]}\n" HEAD
    "\"type\":\"variance\",\"id\":1,\"state\":\"closed\",\"class\":\"computation\",\"begin\":"
    "\"2027-01-15T08:00:00.000000000Z\",\"end\":\"2027-01-15T08:00:00.400000000Z\",\"ranks\":\"?,4\",\"threads\":[{"
    "\"rank\":-1,\"thread\":0,\"pid\":7,\"tid\":7},{\"rank\":4,\"thread\":1,\"pid\":9,\"tid\":10}],\"performance\":0.5,"
    "\"lost_seconds\":0.1,\"exemplars\":[{\"begin\":\"2027-01-15T08:00:00.100000000Z\",\"duration_ns\":100,\"rank\":4,"
    "\"thread\":1,\"site\":9},{\"begin\":\"x\"},{\"begin\":\"2027-01-15T08:00:00.100000000Z\",\"rank\":99}]}\n" HEAD
    "\"type\":\"noise\",\"id\":3,\"source\":\"scheduler\",\"what\":\"kworker\",\"relation\":\"foreign\",\"pid\":null,"
    "\"n\":1600,\"longest_us\":1100,\"period_ms\":12.5,\"period_least_ms\":10,\"period_most_ms\":15,"
    "\"time_pct_of_ranks\":2.4,\"lost_seconds\":0.36,\"ranks\":\"?,4\",\"hosts\":[\"n1\",\"n2\"],\"host_count\":2,"
    "\"begin\":\"2027-01-15T08:00:00.200000000Z\",\"end\":\"2027-01-15T08:00:00.600000000Z\"}\n";

static void read_records(struct run_report *report)
{
	FILE *file = fmemopen((void *)(uintptr_t)records, sizeof(records) - 1, "r");

	assert_non_null(file);
	assert_int_equal(run_report__init(report), 0);
	assert_int_equal(run_report__add_file(report, file, -1, "records"), 0);
	assert_int_equal(report->view.bad_lines, 0);
	assert_int_equal(run_report__finish(report), 0);
	fclose(file);
}

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		found++;
	return found;
}

static void test_unknown_ranks(void **state)
{
	struct run_report report;
	char *text = NULL, err[256];
	uint64_t left_out;
	size_t size;
	FILE *out;

	(void)state;
	read_records(&report);
	out = open_memstream(&text, &size);
	assert_int_equal(trace__write(&report, "1", out, &left_out), 0);
	fclose(out);
	assert_int_equal(left_out, 0);
	assert_int_equal(count(text, "\"pid 7\""), 1);
	assert_int_equal(count(text, "\"job j of uid 5\""), 1);
	/* on process 7, rank 4 and its thread */
	assert_int_equal(count(text, "\"cat\":\"region\""), 3);
	assert_int_equal(count(text, "\"cat\":\"fragment\""), 1);
	free(text);
	out = open_memstream(&text, &size);
	for (size_t i = 0; i < CSV_TABLES; i++)
		assert_int_equal(csv__write(&csv_tables[i], &report, out), 0);
	fclose(out);
	assert_int_equal(count(text, "j,computation,n1,,7,,0.2,0.2,0.5\r\n"), 1);
	assert_int_equal(count(text, "j,computation,n1,4,9,1,0,0.2,0.2\r\n"), 1);
	assert_int_equal(count(text, "j of uid 5,computation,n1,0,7,,0,0.2,1\r\n"), 1);
	assert_int_equal(count(text, "j,3,scheduler,kworker,foreign,,1600,225,1100,12.5,10,15,2.4,0.36,0.2,0.6,\"?,4\","
				     "n1 n2,,,,,\r\n"),
			 1);
	assert_int_equal(count(text, "kworker"), 1); /* it is of no state */
	free(text);
	assert_null(svg__choose(&report, NULL, err, sizeof(err)));
	assert_non_null(strstr(err, "several jobs, as j and j of uid 5"));
	assert_null(svg__choose(&report, "io", err, sizeof(err)));
	assert_non_null(strstr(err, "no heat map of io"));
	out = open_memstream(&text, &size);
	assert_int_equal(svg__write(&report, &report.view.maps[0], out), 0);
	fclose(out);
	assert_int_equal(count(text, ">4.1<"), 1);
	free(text);
	run_report__free(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_utf8),	   cmocka_unit_test(test_fields), cmocka_unit_test(test_slices),
	    cmocka_unit_test(test_too_many_lanes), cmocka_unit_test(test_rows),	  cmocka_unit_test(test_scales),
	    cmocka_unit_test(test_unknown_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

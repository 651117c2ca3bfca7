/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of bounded length: rows of heat maps in parts, lists without their ends; what a view makes of parts. */
#include "parsed.h"
#include "report/record.h"
#include "report/view_model.h"
#include "report/window_json.h"
#include "sample.h"

#define RANKS 4096
#define LONG_BINS 9000 /* as after half an hour in which vaprod was stopped */

static double values[RANKS][SAMPLE_BINS], long_values[2][LONG_BINS];
static struct result_row rows[RANKS];

static double value_of(uint32_t row, uint32_t bin)
{
	return (row + bin) % 7 ? (double)((row * 31 + bin) % 101) / 100 : NAN;
}

static struct job_result job_of(const struct result_heatmap *map)
{
	return (struct job_result){.job = "slurm:1.0", .heatmaps = map, .heatmap_count = 1, .end_ns = SAMPLE_UTC};
}

static void put_map(const struct result_heatmap *map)
{
	struct json_context context = {.host = "n1"};
	struct job_result result = job_of(map);

	assert_int_equal(window_json__put_heatmaps(&result, &context, keep, NULL), 0);
}

static struct result_heatmap many_ranks(void)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		for (uint32_t bin = 0; bin < SAMPLE_BINS; bin++)
			values[i][bin] = value_of(i, bin);
		rows[i] = (struct result_row){
		    .rank = (int32_t)i, .thread = -1, .pid = i + 1, .host = i % 2 ? "n2" : "n1", .values = values[i]};
	}
	return (struct result_heatmap){.begin_ns = SAMPLE_UTC, .bins = SAMPLE_BINS, .rows = rows, .row_count = RANKS};
}

/* Each row is in one part, in order, and the parts know how many they are. */
static void test_many_ranks(void **state)
{
	struct result_heatmap map = many_ranks();
	int64_t next = 0;

	(void)state;
	put_map(&map);
	assert_true(line_count > 10 && line_count < 60);
	for (size_t i = 0; i < line_count; i++) {
		cJSON *object = parsed(i);
		const cJSON *row;

		assert_true(strlen(lines[i]) + 1 < RECORD_LINE_MOST);
		is_number(object, "part", (double)i);
		is_number(object, "parts", (double)line_count);
		cJSON_ArrayForEach(row, at(object, "rows"))
		{
			is_number(row, "rank", (double)next++);
			assert_int_equal(cJSON_GetArraySize(at(row, "values")), SAMPLE_BINS);
		}
		cJSON_Delete(object);
	}
	assert_int_equal(next, RANKS);
}

/* A map that fits into one line has no part. */
static void test_few_ranks(void **state)
{
	struct result_heatmap map = many_ranks();
	cJSON *object;

	(void)state;
	map.row_count = 64;
	put_map(&map);
	assert_int_equal(line_count, 1);
	object = parsed(0);
	assert_null(cJSON_GetObjectItemCaseSensitive(object, "part"));
	assert_null(cJSON_GetObjectItemCaseSensitive(object, "parts"));
	assert_int_equal(cJSON_GetArraySize(at(object, "rows")), 64);
	cJSON_Delete(object);
	clear(NULL);
	map.row_count = 0;
	put_map(&map);
	assert_int_equal(line_count, 1);
}

/* Bins of a long time become several maps, one behind the other. */
static void test_long_time(void **state)
{
	struct result_row two[2];
	struct result_heatmap map = {.begin_ns = SAMPLE_UTC, .bins = LONG_BINS, .rows = two, .row_count = 2};
	int bins = 0;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t bin = 0; bin < LONG_BINS; bin++)
			long_values[i][bin] = 0.99;
		two[i] = (struct result_row){.rank = (int32_t)i, .thread = -1, .values = long_values[i]};
	}
	put_map(&map);
	for (size_t i = 0; i < line_count; i++) {
		cJSON *object = parsed(i);
		uint64_t begin_ns;

		assert_true(strlen(lines[i]) + 1 < RECORD_LINE_MOST);
		assert_true(record__time(object, KEY(heatmap, begin), &begin_ns));
		assert_int_equal(begin_ns, SAMPLE_UTC + (uint64_t)bins * VAPRO_BIN_NS);
		assert_int_equal(cJSON_GetArraySize(at(object, "rows")), 2);
		bins += cJSON_GetArraySize(at(object, "rows/1/values"));
		cJSON_Delete(object);
	}
	assert_int_equal(bins, LONG_BINS);
}

static void read_lines(struct view_model *model)
{
	assert_int_equal(view_model__init(model), 0);
	for (size_t i = 0; i < line_count; i++) {
		cJSON *object = parsed(i);
		const char *why = NULL;

		assert_int_equal(view_model__add_map(model, object, &why), 0);
		cJSON_Delete(object);
	}
	view_model__sort(model);
}

/* A view joins the parts, also where they come in another order. */
static void test_joined(void **state)
{
	struct result_heatmap map = many_ranks();
	struct view_model model;

	(void)state;
	put_map(&map);
	for (int order = 0; order < 2; order++) {
		read_lines(&model);
		assert_int_equal(model.map_count, 1);
		assert_int_equal(model.maps[0].row_count, RANKS);
		for (uint32_t i = 0; i < RANKS; i++) {
			const struct view_row *row = &model.maps[0].rows[i];

			assert_int_equal(row->rank, i);
			assert_int_equal(row->piece_count, 1);
			assert_int_equal(row->pieces[0].count, SAMPLE_BINS);
			for (uint32_t bin = 0; bin < SAMPLE_BINS; bin++) {
				double wanted = value_of(i, bin);
				float got = row->pieces[0].values[bin];

				assert_true(isnan(wanted) ? isnan(got) : fabs(wanted - got) < 1e-6);
			}
		}
		view_model__free(&model);
		for (size_t i = 0; i < line_count / 2; i++) {
			char *line = lines[i];

			lines[i] = lines[line_count - 1 - i];
			lines[line_count - 1 - i] = line;
		}
	}
}

/* Lists of other records lose their last items, and the record says how many. */
static void test_long_lists(void **state)
{
	cJSON *object = record__begin(RECORD_OBJECT_variance, SAMPLE_UTC, "n1"), *list, *short_list;

	(void)state;
	list = record__put_list(object, KEY(variance, threads));
	for (int i = 0; i < 9000; i++)
		assert_true(record__put_uint(record__append(list), KEY(thread, tid), (uint64_t)i));
	short_list = record__put_list(object, KEY(variance, culprits));
	for (int i = 0; i < 3; i++)
		assert_true(record__put_uint(record__append(short_list), KEY(late_rank, rank), (uint64_t)i));
	assert_int_equal(record__emit(RECORD_OBJECT_variance, object, true, keep, NULL), 0);
	assert_true(strlen(lines[0]) + 1 < RECORD_LINE_MOST);
	object = parsed(0);
	is_number(object, "threads/0/tid", 0);
	assert_int_equal(cJSON_GetArraySize(at(object, "culprits")), 3);
	is_number(object, "omitted", 9000 - cJSON_GetArraySize(at(object, "threads")));
	cJSON_Delete(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_many_ranks, clear), cmocka_unit_test_teardown(test_few_ranks, clear),
	    cmocka_unit_test_teardown(test_long_time, clear),  cmocka_unit_test_teardown(test_joined, clear),
	    cmocka_unit_test_teardown(test_long_lists, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

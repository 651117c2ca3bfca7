/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What slow cells of simulated jobs lost is in the records: in variances, or counted as small. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/cases.h"
#include "analysis/analysis_private.h"

#define LISTED_LEAST 0.9 /* of the loss of all slow cells */

/* An analysis of one job, and what it counts as small. */
struct losses {
	struct stream_sink sink;
	struct analysis *analysis;
	double small_ns;
};

static uint64_t utc(uint64_t mono_ns)
{
	return mono_ns - JOB_MONO_NS + JOB_BEGIN_NS;
}

static int end_window(struct losses *losses, const struct stream_window *window)
{
	const struct job_result *results;
	uint32_t count;
	int error =
	    analysis__end_window(losses->analysis, window->begin_ns, window->end_ns, window->last, &results, &count);

	for (uint32_t i = 0; !error && i < count; i++)
		losses->small_ns += results[i].small_seconds * 1e9;
	return error;
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct losses *losses = (struct losses *)sink;
	struct vapro_bundle bundle;

	switch (event->type) {
	case STREAM_THREAD:
		return analysis__add_thread(losses->analysis, &event->thread);
	case STREAM_STATE:
		return analysis__add_state(losses->analysis, &event->state);
	case STREAM_PLACE:
		return analysis__place(losses->analysis, &event->place);
	case STREAM_SEEN:
		return analysis__thread_seen(losses->analysis, event->seen.thread, utc(event->seen.from_ns),
					     event->seen.to_ns ? utc(event->seen.to_ns) : 0);
	case STREAM_BUNDLE:
		bundle = event->bundle;
		bundle.start_ns = utc(bundle.start_ns);
		bundle.end_ns = utc(bundle.end_ns);
		return analysis__add_bundle(losses->analysis, &bundle);
	case STREAM_INTERFERENCE:
		return analysis__add_interference(losses->analysis, &event->interference);
	case STREAM_WINDOW:
		return end_window(losses, &event->window);
	default:
		return 0;
	}
}

/* Adds up the loss of the slow cells of a job, ns, and what of it belongs to variances. */
static void sum_up(const struct analysis *analysis, double *slow, double *listed)
{
	const struct vapro_config *config = &analysis->context.config;
	const struct heatmap *map = &analysis->jobs[0].map;

	*slow = *listed = 0;
	for (uint64_t bin = map->begin; bin < map->end; bin++) {
		for (uint32_t row = 0; row < stg__job(analysis->context.stg, 0)->row_count; row++) {
			for (int class = 0; class < VAPRO_CLASSES; class ++) {
				struct cell cell = heatmap__cell(map, row, bin, (enum vapro_class) class);
				bool calls = class == VAPRO_COMMUNICATION;

				if (!(cell__performance(&cell, config) < config->threshold))
					continue;
				*slow += cell__lost(&cell);
				if (heatmap__owner(map, row, bin, (enum vapro_class) class) ||
				    (calls && heatmap__owner(map, row, bin, HEATMAP_TRANSFERS)))
					*listed += cell__lost(&cell);
			}
		}
	}
}

/* Whatever grows beside whatever, and is cut off or divided: no loss is in no record. */
static void test_losses_are_listed(void **state)
{
	(void)state;
	for (size_t i = 0; i < shape_call_cases.count; i++) {
		struct losses losses = {.sink.put = put};
		enum vapro_workload_source source = i % 2 ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS;
		struct vapro_config config;
		struct job_totals totals;
		struct truths truths;
		struct job job;
		double slow, listed;

		if (shape_call_cases.cases[i].type & CASE_LARGE)
			continue;
		config__init(&config);
		cases__make(&shape_call_cases.cases[i], shape_call_cases.cases[i].lengths_ms[0], 1, &job);
		losses.analysis = analysis__new(&config, source);
		assert_non_null(losses.analysis);
		assert_int_equal(job__run(&job, source, config.window_s, &losses.sink, &truths, &totals), 0);
		sum_up(losses.analysis, &slow, &listed);
		if (listed + losses.small_ns < LISTED_LEAST * slow)
			fail_msg("%s: slow cells lost %.2f s, of which variances have %.2f s, and %.2f s are small",
				 shape_call_cases.cases[i].kind, slow / 1e9, listed / 1e9, losses.small_ns / 1e9);
		assert_true(slow > 0);
		truths__free(&truths);
		analysis__free(losses.analysis);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_losses_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

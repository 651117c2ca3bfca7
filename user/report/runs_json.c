// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/runs_report.h"

#include "base/clock.h"
#include "model/state_id.h"
#include "report/json.h"
#include "report/record.h"

static const char *const what_names[RUNS_WHATS] = {[RUNS_HOST] = "host", [RUNS_RANK] = "rank", [RUNS_STATE] = "state"};

static const char *const use_names[] = {[RUNS_COMPARED] = NULL,
					[RUNS_OTHER_PROGRAM] = "program",
					[RUNS_OTHER_RANKS] = "ranks",
					[RUNS_INCOMPARABLE] = "incomparable"};

/* Begins a record; its host is the first one of a run. NULL when out of memory. */
static cJSON *head(const struct runs_run *run, const char *what)
{
	cJSON *object = record__begin(RECORD_OBJECT_runs, utc_now(), run->host ? run->host : "unknown");

	if (!object || record__put_text(object, KEY(runs, what), what))
		return object;
	cJSON_Delete(object);
	return NULL;
}

static int put_all(const struct runs *found, bool from_records, FILE *out)
{
	cJSON *object = head(&found->runs[found->base], "all");

	return json__put_line(object,
			      object && record__put_uint(object, KEY(runs, read), found->count) &&
				  record__put_uint(object, KEY(runs, compared), found->compared) &&
				  record__put_number(object, KEY(runs, median_seconds), found->median_s) &&
				  record__put_number(object, KEY(runs, spread), found->spread) &&
				  record__put_number(object, KEY(runs, threshold), found->threshold) &&
				  record__put_text(object, KEY(runs, workload_source),
						   from_records		    ? NULL
						   : found->by_instructions ? "instructions"
									    : "arguments"),
			      out);
}

static int put_run(const struct runs_run *run, FILE *out)
{
	cJSON *object = head(run, "run");
	const char *use = use_names[run->use];

	return json__put_line(object,
			      object && record__put_text(object, KEY(runs, run), run->name) &&
				  record__put_text(object, KEY(runs, program), *run->program ? run->program : NULL) &&
				  (!use || record__put_text(object, KEY(runs, not_compared), use)) &&
				  record__put_number(object, KEY(runs, run_seconds), run->seconds) &&
				  record__put_uint(object, KEY(runs, ranks), run->ranks) &&
				  record__put_uint(object, KEY(runs, hosts), run->hosts) &&
				  record__put_number(object, KEY(runs, time_ratio), run->time_ratio) &&
				  record__put_bool(object, KEY(runs, time_outlying), run->time_outlying) &&
				  record__put_number(object, KEY(runs, time_p), run->time_p) &&
				  record__put_number(object, KEY(runs, work_ratio), run->work_ratio) &&
				  record__put_bool(object, KEY(runs, work_outlying), run->work_outlying) &&
				  record__put_number(object, KEY(runs, work_p), run->work_p) &&
				  record__put_number(object, KEY(runs, calls_ratio), run->calls_ratio),
			      out);
}

static bool add_state(cJSON *object, const struct runs_row *row)
{
	char id[STATE_ID_SIZE];

	return record__put_uint(object, KEY(runs, states), row->states) &&
	       record__put_uint(object, KEY(runs, of_states), row->of_states) &&
	       record__put_number(object, KEY(runs, state_ratio), row->state_ratio) &&
	       record__put_text(object, KEY(runs, state_id), state_id__text(row->state, id)) &&
	       record__put_text(object, KEY(runs, class), vapro_class_name[row->state->class]) &&
	       record__put_text(object, KEY(runs, from), row->state->from) &&
	       record__put_text(object, KEY(runs, to), row->state->to);
}

static int put_row(const struct runs *found, const struct runs_row *row, FILE *out)
{
	const struct runs_run *run = &found->runs[row->run];
	cJSON *object = head(run, what_names[row->what]);

	return json__put_line(object,
			      object && record__put_text(object, KEY(runs, run), run->name) &&
				  (!row->host || record__put_text(object, KEY(runs, on_host), row->host)) &&
				  (row->rank < 0 || record__put_uint(object, KEY(runs, rank), (uint64_t)row->rank)) &&
				  record__put_number(object, KEY(runs, ratio), row->ratio) &&
				  record__put_number(object, KEY(runs, p), row->p) &&
				  record__put_number(object, KEY(runs, seconds), row->seconds) &&
				  record__put_uint(object, KEY(runs, in_runs), row->in_runs) &&
				  record__put_uint(object, KEY(runs, of_runs), row->of_runs) && add_state(object, row),
			      out);
}

int runs_report__json(const struct runs *found, bool from_records, FILE *out)
{
	int error = put_all(found, from_records, out);

	for (uint32_t i = 0; !error && i < found->count; i++)
		error = put_run(&found->runs[i], out);
	for (size_t i = 0; !error && i < found->row_count; i++)
		error = put_row(found, &found->rows[i], out);
	return error;
}

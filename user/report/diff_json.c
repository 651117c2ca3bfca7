// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/diff_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/state_id.h"
#include "report/json.h"
#include "report/record.h"

#define TEXT_MOST 2048

static const char *const what_names[COMPARE_WHATS] = {[COMPARE_JOB] = "job",
						      [COMPARE_HOST] = "host",
						      [COMPARE_RANK] = "rank",
						      [COMPARE_STATE] = "state",
						      [COMPARE_CAUSE] = "cause"};

static const enum record_row unit_keys[] = {
    [COMPARE_RANKS] = KEY(diff, rank), [COMPARE_PROCESSES] = KEY(diff, process), [COMPARE_THREADS] = KEY(diff, thread)};

static cJSON *head(const struct diff_report *report, const char *what)
{
	cJSON *object = record__begin(RECORD_OBJECT_diff, utc_now(),
				      report->host[1] && *report->host[1] ? report->host[1] : "unknown");

	if (!object || record__put_text(object, KEY(diff, what), what))
		return object;
	cJSON_Delete(object);
	return NULL;
}

static cJSON *causes_of(const struct diff_records *records)
{
	cJSON *object = cJSON_CreateObject();

	for (size_t i = 0; object && i < records->cause_count; i++)
		if (!record__put_named(object, KEY(diff_run, causes), records->causes[i].name,
				       records->causes[i].seconds))
			break;
	return object;
}

static bool add_records(cJSON *object, const struct diff_records *records)
{
	cJSON *lost = cJSON_CreateObject();

	for (int i = 0; lost && i < VAPRO_CLASSES; i++)
		if (!record__put_named(lost, KEY(diff_run, lost_seconds), vapro_class_name[i], records->lost_s[i]))
			break;
	return record__put(object, KEY(diff_run, lost_seconds), lost) &&
	       record__put(object, KEY(diff_run, causes), causes_of(records)) &&
	       record__put_number(object, KEY(diff_run, coverage), records->coverage) &&
	       record__put_number(object, KEY(diff_run, performance), records->performance) &&
	       record__put_uint(object, KEY(diff_run, variances), records->variances) &&
	       record__put_uint(object, KEY(diff_run, alarms), records->alarms);
}

/* Makes the description of one run. */
static cJSON *side_of(const struct diff_report *report, int side)
{
	const struct compare_side *run = &report->found->side[side];
	cJSON *object = cJSON_CreateObject();

	if (object && record__put_text(object, KEY(diff_run, input), report->name[side]) &&
	    record__put_text(object, KEY(diff_run, job), run->job) &&
	    record__put_uint(object, KEY(diff_run, units), run->units) &&
	    record__put_uint(object, KEY(diff_run, hosts), run->hosts) &&
	    record__put_uint(object, KEY(diff_run, world_size), run->world_size) &&
	    record__put_number(object, KEY(diff_run, seconds), run->length_s) &&
	    record__put_text(object, KEY(diff_run, workload_source),
			     report->records[side]			     ? NULL
			     : report->found->profile[side]->by_instructions ? "instructions"
									     : "arguments") &&
	    (!report->records[side] || add_records(object, report->records[side])))
		return object;
	cJSON_Delete(object);
	return NULL;
}

static cJSON *notes_of(const struct diff_report *report)
{
	cJSON *notes = cJSON_CreateArray();
	char text[TEXT_MOST];

	for (unsigned i = 0; notes && diff_report__note(report, i, text, sizeof(text)); i++)
		cJSON_AddItemToArray(notes, json__text(text));
	return notes;
}

static int put_run(const struct diff_report *report, FILE *out)
{
	cJSON *object = head(report, "run");
	char text[TEXT_MOST];
	bool ok;

	diff_report__verdict(report, text, sizeof(text));
	ok = object && record__put(object, KEY(diff, a), side_of(report, 0)) &&
	     record__put(object, KEY(diff, b), side_of(report, 1)) &&
	     record__put_number(object, KEY(diff, threshold), report->threshold) &&
	     record__put_text(object, KEY(diff, verdict), text) &&
	     record__put(object, KEY(diff, notes), notes_of(report));
	return json__put_line(object, ok, out);
}

static bool add_state(cJSON *object, const struct diff_report *report, const struct compare_row *row)
{
	const struct profile *profile = report->found->profile[1];
	const struct vapro_state *state = &stg__state(profile->stg, profile->kinds[row->kind].state)->about;
	char id[STATE_ID_SIZE];

	return record__put_text(object, KEY(diff, state_id), state_id__text(state, id)) &&
	       record__put_text(object, KEY(diff, class), vapro_class_name[state->class]) &&
	       record__put_text(object, KEY(diff, from), state->from) &&
	       record__put_text(object, KEY(diff, to), state->to) &&
	       record__put_text(object, KEY(diff, labels), state->common) &&
	       record__put_number(object, KEY(diff, call_a_us), row->call_a_ns / 1e3) &&
	       record__put_number(object, KEY(diff, call_b_us), row->call_b_ns / 1e3) &&
	       record__put_number(object, KEY(diff, work_ratio), row->work);
}

static bool add_place(cJSON *object, const struct diff_report *report, const struct compare_row *row)
{
	const struct compare_unit *unit = row->unit == COMPARE_ALL ? NULL : &report->found->units[row->unit];

	if (row->what == COMPARE_HOST)
		return record__put_text(object, KEY(diff, on_host), row->host);
	if (!unit)
		return true;
	return record__put_uint(object, unit_keys[report->found->unit_kind], (uint64_t)unit->number) &&
	       record__put_text(object, KEY(diff, on_host), unit->host_b);
}

static int put_row(const struct diff_report *report, const struct compare_row *row, FILE *out)
{
	cJSON *object = head(report, what_names[row->what]);
	bool ok = object && add_place(object, report, row) &&
		  record__put_text(object, KEY(diff, change), row->seconds > 0 ? "slower" : "faster") &&
		  record__put_bool(object, KEY(diff, significant), row->named) &&
		  record__put_number(object, KEY(diff, p), row->p) &&
		  record__put_number(object, KEY(diff, seconds), row->seconds);

	if (ok && row->what == COMPARE_CAUSE)
		ok = record__put_text(object, KEY(diff, cause), vapro_factor_name[profile_causes[row->cause]]) &&
		     record__put_number(object, KEY(diff, share_a), row->share_a) &&
		     record__put_number(object, KEY(diff, share_b), row->share_b);
	else if (ok)
		ok = record__put_number(object, KEY(diff, ratio), row->ratio) &&
		     record__put_number(object, KEY(diff, ratio_low), row->low) &&
		     record__put_number(object, KEY(diff, ratio_high), row->high);
	if (ok && row->what == COMPARE_STATE)
		ok = add_state(object, report, row);
	return json__put_line(object, ok, out);
}

int diff_report__json(const struct diff_report *report, FILE *out)
{
	int error = put_run(report, out);

	for (size_t i = 0; !error && i < report->found->row_count; i++)
		if (diff_report__shows(report, &report->found->rows[i]))
			error = put_row(report, &report->found->rows[i], out);
	return error;
}

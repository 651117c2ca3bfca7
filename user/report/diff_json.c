// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/diff_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "report/json.h"

#define TEXT_MOST 2048

static const char *const what_names[COMPARE_WHATS] = {[COMPARE_JOB] = "job",
						      [COMPARE_HOST] = "host",
						      [COMPARE_RANK] = "rank",
						      [COMPARE_STATE] = "state",
						      [COMPARE_CAUSE] = "cause"};

static cJSON *head(const struct diff_report *report, const char *what)
{
	cJSON *object =
	    json__head("diff", utc_now(), report->host[1] && *report->host[1] ? report->host[1] : "unknown");

	if (!object || json__add_text(object, "what", what))
		return object;
	cJSON_Delete(object);
	return NULL;
}

static cJSON *causes_of(const struct diff_records *records)
{
	cJSON *object = cJSON_CreateObject();

	for (size_t i = 0; object && i < records->cause_count; i++)
		if (!json__add_number(object, records->causes[i].name, records->causes[i].seconds, 6))
			break;
	return object;
}

static bool add_records(cJSON *object, const struct diff_records *records)
{
	cJSON *lost = cJSON_CreateObject();

	for (int i = 0; lost && i < VAPRO_CLASSES; i++)
		if (!json__add_number(lost, vapro_class_name[i], records->lost_s[i], 6))
			break;
	return json__add(object, "lost_seconds", lost) && json__add(object, "causes", causes_of(records)) &&
	       json__add_number(object, "coverage", records->coverage, 6) &&
	       json__add_number(object, "performance", records->performance, 6) &&
	       json__add_uint(object, "variances", records->variances) &&
	       json__add_uint(object, "alarms", records->alarms);
}

/* Makes the description of one run. */
static cJSON *side_of(const struct diff_report *report, int side)
{
	const struct compare_side *run = &report->found->side[side];
	cJSON *object = cJSON_CreateObject();
	double all = run->own_s + run->least_s + run->none_s;

	if (object && json__add_text(object, "input", report->name[side]) && json__add_text(object, "job", run->job) &&
	    json__add_uint(object, "units", run->units) && json__add_uint(object, "hosts", run->hosts) &&
	    json__add_uint(object, "world_size", run->world_size) &&
	    json__add_number(object, "seconds", run->length_s, 3) &&
	    json__add_number(object, "compared", all > 0 ? report->found->compared_s[side] / all : NAN, 4) &&
	    json__add_number(object, "work_share", all > 0 ? run->own_s / all : NAN, 4) &&
	    json__add_text(object, "workload_source",
			   report->records[side]			   ? NULL
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

static int put(cJSON *object, bool ok, FILE *out)
{
	char *line = NULL;

	if (ok)
		line = json__finish(object);
	else
		cJSON_Delete(object);
	if (!line)
		return -ENOMEM;
	fprintf(out, "%s\n", line);
	free(line);
	return 0;
}

static int put_run(const struct diff_report *report, FILE *out)
{
	const struct comparison *found = report->found;
	cJSON *object = head(report, "run");
	char text[TEXT_MOST];
	bool ok;

	diff_report__verdict(report, text, sizeof(text));
	ok = object && json__add(object, "a", side_of(report, 0)) && json__add(object, "b", side_of(report, 1)) &&
	     json__add_text(object, "units_are", diff_report__unit_word(found)) &&
	     json__add_uint(object, "units_compared", found->unit_count) &&
	     json__add_number(object, "threshold", report->threshold, 6) &&
	     cJSON_AddBoolToObject(object, "program_changed", found->match.changed_count > 0) &&
	     json__add_uint(object, "states_compared", found->match.count) &&
	     json__add_uint(object, "states_only_a", found->match.only_a) &&
	     json__add_uint(object, "states_only_b", found->match.only_b) &&
	     json__add_uint(object, "slower", diff_report__slower(report)) &&
	     json__add_uint(object, "faster", diff_report__faster(report)) && json__add_text(object, "verdict", text) &&
	     json__add(object, "notes", notes_of(report));
	return put(object, ok, out);
}

static bool add_state(cJSON *object, const struct diff_report *report, const struct compare_row *row)
{
	const struct profile *profile = report->found->profile[1];
	const struct vapro_state *state = &stg__state(profile->stg, profile->kinds[row->kind].state)->about;
	char *symbols = json__symbols(state);
	bool ok = json__add_text(object, "class", vapro_class_name[state->class]) &&
		  json__add_text(object, "from", state->from) && json__add_text(object, "to", state->to) &&
		  json__add_text(object, "state", state->common) && json__add_text(object, "symbols", symbols) &&
		  cJSON_AddBoolToObject(object, "own_part", row->least) &&
		  json__add_number(object, "call_a_us", row->call_a_ns / 1e3, 3) &&
		  json__add_number(object, "call_b_us", row->call_b_ns / 1e3, 3) &&
		  json__add_number(object, "spread_a", row->spread_a, 6) &&
		  json__add_number(object, "spread_b", row->spread_b, 6) &&
		  json__add_uint(object, "calls_a", row->calls_a) && json__add_uint(object, "calls_b", row->calls_b) &&
		  json__add_number(object, "work_ratio", row->work, 6);

	free(symbols);
	return ok;
}

static bool add_place(cJSON *object, const struct diff_report *report, const struct compare_row *row)
{
	const struct compare_unit *unit = row->unit == COMPARE_ALL ? NULL : &report->found->units[row->unit];

	if (row->what == COMPARE_HOST)
		return json__add_text(object, "on_host", row->host);
	if (!unit)
		return true;
	return json__add_uint(object, diff_report__unit_word(report->found), (uint64_t)unit->number) &&
	       json__add_text(object, "on_host", unit->host_b);
}

static int put_row(const struct diff_report *report, const struct compare_row *row, FILE *out)
{
	cJSON *object = head(report, what_names[row->what]);
	bool cause = row->what == COMPARE_CAUSE;
	bool ok = object && add_place(object, report, row) &&
		  json__add_text(object, "change", row->seconds > 0 ? "slower" : "faster") &&
		  cJSON_AddBoolToObject(object, "significant", row->named) &&
		  json__add_number(object, cause ? "share_change" : "ratio", row->ratio, 6) &&
		  json__add_number(object, cause ? "share_change_beyond_job" : "ratio_beyond_job", row->beyond, 6) &&
		  json__add(object, "p", cJSON_CreateNumber(row->p)) &&
		  json__add_number(object, "seconds", row->seconds, 6) &&
		  json__add_number(object, "base_seconds", row->base_s, 6);

	if (ok && cause)
		ok = json__add_text(object, "cause", vapro_factor_name[profile_causes[row->cause]]) &&
		     json__add_number(object, "share_a", row->share_a, 6) &&
		     json__add_number(object, "share_b", row->share_b, 6);
	else if (ok)
		ok = json__add_number(object, "ratio_low", row->low, 6) &&
		     json__add_number(object, "ratio_high", row->high, 6);
	if (ok && row->what == COMPARE_STATE)
		ok = add_state(object, report, row);
	return put(object, ok, out);
}

int diff_report__json(const struct diff_report *report, FILE *out)
{
	int error = put_run(report, out);

	for (size_t i = 0; !error && i < report->found->row_count; i++)
		if (diff_report__shows(report, &report->found->rows[i]))
			error = put_row(report, &report->found->rows[i], out);
	return error;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is known of states: how often they occurred and how long they took, where the input has bundles; and what
 * records say of them: the loss in slow regions, the time that was not evaluated, and findings. A state about which
 * nothing was said is not in the records.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/job_names.h"

#include "base/grow.h"
#include "base/table.h"
#include "page/page_json.h"
#include "page/page_json_private.h"
#include "report/json.h"
#include "report/record.h"

#define STATES_MOST 2000

struct state_row {
	const char *job, *class;
	char *text; /* owned */
	double lost_seconds, unknown_seconds;
	double ratio; /* greatest of its regions; 0: none */
	unsigned regions;
	const char *reason, *finding;
	uint64_t fragments; /* 0: not known */
	double seconds, least_s, most_s;
};

struct state_rows {
	struct state_row *items;
	size_t count, capacity;
	struct table *places; /* by text and job */
};

/* Finds or makes the row of a state, and owns the text. Returns NULL when out of memory. */
static struct state_row *find_row(struct state_rows *rows, const char *job, char *text)
{
	uint64_t number = text ? regions__job_number(text) : 0, its_job = regions__job_number(job);
	uint32_t at;

	if (text && table__get(rows->places, number, its_job, &at)) {
		free(text);
		return &rows->items[at];
	}
	if (!text || grow(&rows->items, &rows->capacity, rows->count + 1, sizeof(*rows->items)) ||
	    table__put(rows->places, number, its_job, (uint32_t)rows->count)) {
		free(text);
		return NULL;
	}
	rows->items[rows->count] = (struct state_row){.job = job, .text = text};
	return &rows->items[rows->count++];
}

/* Returns whether a job is the selected one, by its name with or without its user; NULL selects all jobs. */
static bool is_wanted(const char *wanted, const struct state_total *total)
{
	char name[512];

	snprintf(name, sizeof(name), "%s of uid %u", total->job, total->user - 1);
	return job_names__match(wanted, total->job) || (total->user && !strcmp(wanted, name));
}

static bool collect_totals(struct state_rows *rows, const struct run_report *report)
{
	size_t count = 0;
	const struct state_total *totals = report->states ? state_totals__items(report->states, &count) : NULL;

	for (size_t i = 0; i < count; i++) {
		const struct state_total *total = &totals[i];
		struct state_row *row;

		if (!is_wanted(report->view.job, total))
			continue;
		row = find_row(rows, total->job, strdup(total->text));
		if (!row)
			return false;
		row->class = vapro_class_name[total->class];
		row->least_s = row->fragments ? fmin(row->least_s, total->least_s) : total->least_s;
		row->most_s = fmax(row->most_s, total->most_s);
		row->fragments += total->fragments;
		row->seconds += total->seconds;
	}
	return true;
}

static bool collect_regions(struct state_rows *rows, const struct run_report *report)
{
	for (size_t i = 0; i < report->region_count; i++) {
		const cJSON *site;

		cJSON_ArrayForEach(site, record__item(report->regions[i].variance, KEY(variance, call_sites)))
		{
			struct state_row *row =
			    find_row(rows, report->regions[i].region->job, summary__describe_item(site));

			if (!row)
				return false;
			row->class = record__text(site, KEY(state, class));
			row->lost_seconds += record__number(site, KEY(call_site, lost_seconds), 0);
			row->ratio = fmax(row->ratio, record__number(site, KEY(call_site, ratio), 0));
			row->regions++;
		}
	}
	return true;
}

static bool collect_gaps(struct state_rows *rows, const struct summary *summary)
{
	for (size_t i = 0; i < summary->job_count; i++) {
		const struct job_summary *job = &summary->jobs[i];

		for (size_t k = 0; k < job->gap_count; k++) {
			const struct gap *gap = &job->gaps[k];
			struct state_row *row;

			if (!*gap->state)
				continue;
			row = find_row(rows, job->said, strdup(gap->state));
			if (!row)
				return false;
			if (!row->reason || gap->rank_seconds > row->unknown_seconds)
				row->reason = summary_reason_text[gap->reason];
			row->unknown_seconds += gap->rank_seconds;
		}
	}
	return true;
}

static bool collect_findings(struct state_rows *rows, const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];
		struct state_row *row;

		if (finding->kind == FINDING_NOISE)
			continue; /* of no state */
		row = find_row(rows, finding->job, strdup(finding->state));
		if (!row)
			return false;
		row->finding = findings__kind(finding->kind);
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct state_row *x = a, *y = b;

	if (x->lost_seconds != y->lost_seconds)
		return x->lost_seconds > y->lost_seconds ? -1 : 1;
	if (x->unknown_seconds != y->unknown_seconds)
		return x->unknown_seconds > y->unknown_seconds ? -1 : 1;
	if (x->seconds != y->seconds)
		return x->seconds > y->seconds ? -1 : 1;
	return strcmp(x->text, y->text);
}

static bool list_rows(cJSON *list, const struct state_rows *rows)
{
	bool ok = true;

	for (size_t i = 0; ok && i < rows->count && i < STATES_MOST; i++) {
		const struct state_row *row = &rows->items[i];
		cJSON *item = page_json__append(list);

		ok = item && json__add_text(item, "text", row->text) && json__add_text(item, "job", row->job) &&
		     json__add_text(item, "class", row->class) &&
		     (!row->fragments || (json__add_uint(item, "fragments", row->fragments) &&
					  json__add_number(item, "seconds", row->seconds, 6) &&
					  json__add_number(item, "least", row->least_s, 9) &&
					  json__add_number(item, "most", row->most_s, 9))) &&
		     json__add_number(item, "lost", row->lost_seconds, 6) &&
		     json__add_number(item, "ratio", row->ratio > 0 ? row->ratio : NAN, 4) &&
		     json__add_number(item, "regions", row->regions, 0) &&
		     json__add_number(item, "unknown", row->unknown_seconds, 6) &&
		     json__add_text(item, "reason", row->reason) && json__add_text(item, "finding", row->finding);
	}
	return ok;
}

bool page_json__add_states(cJSON *page, const struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);
	struct state_rows rows = {.places = table__new()};
	cJSON *list = cJSON_AddArrayToObject(page, "states");
	bool ok = list && rows.places && collect_totals(&rows, report) && collect_regions(&rows, report) &&
		  collect_gaps(&rows, summary) && collect_findings(&rows, &summary->findings);

	if (ok && rows.count)
		qsort(rows.items, rows.count, sizeof(*rows.items), compare);
	ok =
	    ok && list_rows(list, &rows) && cJSON_AddBoolToObject(page, "states_all", report->states != NULL) &&
	    json__add_number(page, "states_more", rows.count > STATES_MOST ? (double)(rows.count - STATES_MOST) : 0, 0);
	for (size_t i = 0; i < rows.count; i++)
		free(rows.items[i].text);
	free(rows.items);
	table__free(rows.places);
	return ok;
}

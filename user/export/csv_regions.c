// SPDX-License-Identifier: GPL-2.0-or-later
/* The tables of slow regions, of what they are rolled up to, and of states. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/csv.h"
#include "model/state_id.h"
#include "report/cause_text.h"
#include "report/json.h"
#include "report/record.h"

static const char *filled(const char *text)
{
	return text && *text ? text : NULL;
}

static void write_ranks(struct csv_row *row, const int32_t *ranks, uint32_t count)
{
	char *text = json__ranks(ranks, count);

	row->out_of_memory |= !text;
	csv__text(row, filled(text));
	csv__integer(row, count);
	free(text);
}

static void write_variance(const struct run_report *report, const struct run_region *run_region, struct csv_row *row)
{
	const struct region *region = run_region->region;
	const char *confidence = record__text(run_region->variance, KEY(variance, confidence));

	csv__text(row, csv__job(report, region->job, region->user));
	csv__text(row, run_region->number);
	csv__integer(row, (int64_t)region->id);
	csv__text(row, region->class);
	csv__text(row, filled(region->severity));
	csv__text(row, confidence ? confidence : region->confirmed ? "confirmed" : "unconfirmed");
	csv__flag(row, region->alarm);
	csv__number(row, csv__seconds(report, region->begin_ns));
	csv__number(row, csv__seconds(report, region->end_ns));
	write_ranks(row, region->ranks, region->rank_count);
	csv__list(row, (const char *const *)region->hosts, region->host_count);
	csv__number(row, region->performance);
	csv__number(row, region->lost_seconds);
	csv__number(row, region->caused_seconds);
	csv__text(row, region->cause);
	csv__text(row, filled(region->culprit.comm));
	csv__number(row, region->culprit.pid ? region->culprit.pid : NAN);
	csv__text(row, region->place);
	csv__number(row, region->effect_of ? (double)region->effect_of : NAN);
	csv__text(row, region->site);
	csv__text(row, region->inside);
	csv__text(row, region->verdict);
	csv__text(row, region->advice);
	csv__end(row);
}

int csv__variances(const struct run_report *report, FILE *out)
{
	struct csv_row row = {.out = out};

	for (size_t i = 0; i < report->region_count; i++)
		write_variance(report, &report->regions[i], &row);
	return row.out_of_memory ? -ENOMEM : 0;
}

int csv__causes(const struct run_report *report, FILE *out)
{
	struct csv_row row = {.out = out};
	char text[CAUSE_TEXT_SIZE];

	for (uint32_t i = 0; i < report->cause_list.count; i++) {
		const struct cause *cause = &report->cause_list.items[i];

		csv__text(&row, csv__job(report, cause->job, cause->user));
		csv__integer(&row, (int64_t)i + 1);
		csv__text(&row, cause->cause);
		csv__text(&row, cause->culprit);
		csv__number(&row, cause->pid ? cause->pid : NAN);
		csv__text(&row, cause->place);
		csv__text(&row, vapro_class_name[cause->class]);
		csv__text(&row, json_severity_name[cause->severity]);
		csv__flag(&row, cause->confirmed);
		csv__flag(&row, cause->alarm);
		csv__number(&row, csv__seconds(report, cause->begin_ns));
		csv__number(&row, csv__seconds(report, cause->end_ns));
		csv__number(&row, cause->lost_seconds);
		csv__number(&row, cause->caused_seconds);
		csv__number(&row, 100 * cause->lost_share);
		csv__number(&row, 100 * cause->share);
		csv__integer(&row, (int64_t)cause->regions);
		write_ranks(&row, cause->ranks, cause->rank_count);
		csv__list(&row, cause->hosts, cause->host_count);
		csv__text(&row, cause_text__write(cause, text));
		csv__end(&row);
	}
	return row.out_of_memory ? -ENOMEM : 0;
}

/* What a row of states.csv says of a state. */
struct said {
	const char *job, *kind, *state, *class, *variance;
	uint64_t state_id;     /* 0: time that belongs to no state */
	double seconds, ratio; /* NAN: none */
	const char *reason, *labels;
};

static void write_said(struct csv_row *row, const struct said *said)
{
	char id[STATE_ID_SIZE];

	snprintf(id, sizeof(id), "%016" PRIx64, said->state_id);
	csv__text(row, said->job);
	csv__text(row, said->kind);
	csv__text(row, filled(said->state));
	csv__text(row, said->state_id ? id : NULL);
	csv__text(row, said->class);
	csv__text(row, said->variance);
	csv__number(row, said->seconds);
	csv__number(row, said->ratio);
	csv__text(row, said->reason);
	csv__text(row, said->labels);
	csv__end(row);
}

static void write_call_sites(const struct run_report *report, const struct run_region *region, struct csv_row *row)
{
	const cJSON *site;

	cJSON_ArrayForEach(site, record__item(region->variance, KEY(variance, call_sites)))
	{
		char *text = summary__describe_item(site);

		row->out_of_memory |= !text;
		write_said(row, &(struct said){.job = csv__job(report, region->region->job, region->region->user),
					       .kind = "slow",
					       .state = text,
					       .class = record__text(site, KEY(state, class)),
					       .variance = region->number,
					       .seconds = record__number(site, KEY(call_site, lost_seconds), NAN),
					       .ratio = record__number(site, KEY(call_site, ratio), NAN),
					       .state_id = state_id__parse(record__text(site, KEY(state, state_id))),
					       .labels = record__text(site, KEY(state, labels))});
		free(text);
	}
}

static void write_finding(const struct finding *finding, struct csv_row *row)
{
	char text[2048];

	write_said(row, &(struct said){.job = finding->job,
				       .kind = findings__kind(finding->kind),
				       .state = finding->state,
				       .state_id = finding->state_id,
				       .seconds = finding->seconds > 0 ? finding->seconds : NAN,
				       .ratio = finding->ratio > 0 ? finding->ratio : NAN,
				       .reason = findings__text(finding, text, sizeof(text))});
}

int csv__states(const struct run_report *report, FILE *out)
{
	const struct summary *summary = run_report__summary(report);
	struct csv_row row = {.out = out};

	for (size_t i = 0; i < report->region_count; i++)
		write_call_sites(report, &report->regions[i], &row);
	for (size_t i = 0; i < summary->job_count; i++) {
		const struct job_summary *job = &summary->jobs[i];

		for (size_t k = 0; k < job->gap_count; k++)
			write_said(&row, &(struct said){.job = job->name,
							.kind = "not_evaluated",
							.state = job->gaps[k].state,
							.state_id = job->gaps[k].state_id,
							.seconds = job->gaps[k].rank_seconds,
							.ratio = NAN,
							.reason = summary_reason_text[job->gaps[k].reason]});
	}
	for (size_t i = 0; i < summary->findings.count; i++) {
		if (summary->findings.items[i].kind != FINDING_NOISE)
			write_finding(&summary->findings.items[i], &row);
	}
	return row.out_of_memory ? -ENOMEM : 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/report_text.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/printable.h"
#include "base/text.h"
#include "report/cause_text.h"
#include "report/json.h"

#define CAUSES_MOST 4 /* of the text */

/* Returns the share of the ranks' time that could be evaluated, 0..1, over all jobs; negative: there was no window. */
static double evaluated(const struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);
	double covered = 0, all = 0;

	for (size_t i = 0; i < summary->job_count; i++) {
		covered += summary->jobs[i].covered_total;
		all += summary->jobs[i].rank_seconds;
	}
	return all > 0 ? covered / all : -1;
}

/* Leaves what a shell, a terminal and a field of a database take as it is. */
static void plain(char *text)
{
	for (unsigned char *at = (unsigned char *)text; *at; at++) {
		if (*at < ' ' || *at > '~')
			*at = '?';
		else if (*at == '"' || *at == '\'' || *at == '`' || *at == '$' || *at == '\\')
			*at = ' ';
	}
}

char *report_text__line(const struct run_report *report, const char *job, char *buf)
{
	char verdict[RUN_REPORT_VERDICT_SIZE], more[128] = "", judged[48] = "";
	const char *level = run_report__verdict(report, verdict);
	double share = evaluated(report);
	size_t room;

	if (share >= 0)
		snprintf(judged, sizeof(judged), "; %.0f %% evaluated", 100 * share);
	if (job)
		snprintf(more, sizeof(more), "; vapro report --job %.64s", job);
	room = REPORT_LINE_SIZE - sizeof("vapro: : ") - strlen(level) - strlen(judged) - strlen(more);
	if (strlen(verdict) > room)
		strcpy(verdict + room - 3, "...");
	snprintf(buf, REPORT_LINE_SIZE, "vapro: %s: %s%s%s", level, verdict, judged, more);
	plain(buf);
	return buf;
}

/* Writes a line, cut where it is too long. */
static void put(FILE *out, char *text)
{
	size_t length = strlen(text);

	printable(text);
	fprintf(out, "%.*s%s\n", length > REPORT_TEXT_WIDTH ? REPORT_TEXT_WIDTH - 4 : (int)length, text,
		length > REPORT_TEXT_WIDTH ? "..." : "");
}

/* Writes whose job it is. */
static void put_job(const struct run_report *report, FILE *out)
{
	const struct summary *summary = run_report__summary(report);
	const struct job_summary *job = summary->job_count ? &summary->jobs[0] : NULL;
	char title[SUMMARY_JOB_NAME], text[SUMMARY_JOB_NAME + 256], begin[JSON_TIME_SIZE], lasted[40];

	if (!job) {
		fputs("no job was watched\n", out);
		return;
	}
	snprintf(text, sizeof(text), "%s", summary__job_title(summary, job, title));
	if (job->end_ns) {
		json__time(job->begin_ns, begin);
		begin[19] = '\0'; /* whole seconds */
		begin[10] = ' ';
		duration__text((double)(job->end_ns - job->begin_ns) / 1e9, lasted, sizeof(lasted));
		text__append(text, sizeof(text), ": %u rank%s", job->ranks, job->ranks == 1 ? "" : "s");
		if (job->host_count)
			text__append(text, sizeof(text), " on %s%.64s",
				     job->host_count == 1 ? "host " : "several hosts",
				     job->host_count == 1 ? job->hosts[0] : "");
		text__append(text, sizeof(text), ", watched for %s from %s UTC", lasted, begin);
	}
	if (summary->job_count > 1)
		text__append(text, sizeof(text), "; and %zu more", summary->job_count - 1);
	put(out, text);
}

/* Writes the causes behind the first one, which is the verdict. Returns the number of lines. */
static size_t put_causes(const struct run_report *report, FILE *out)
{
	const struct cause_list *list = &report->cause_list;
	size_t lines = 0;

	for (uint32_t i = 1; i < list->count && lines < CAUSES_MOST; i++, lines++) {
		const struct cause *cause = &list->items[i];
		char words[CAUSE_TEXT_SIZE], text[CAUSE_TEXT_SIZE + 64];

		snprintf(text, sizeof(text), "  %s: %s",
			 cause->confirmed ? json_severity_name[cause->severity] : "unconfirmed",
			 cause_text__write(cause, words));
		put(out, text);
	}
	if (list->count > CAUSES_MOST + 1) {
		fprintf(out, "  and %u more\n", list->count - CAUSES_MOST - 1);
		lines++;
	}
	return lines;
}

int report_text__write(const struct run_report *report, const char *more, FILE *out)
{
	char verdict[RUN_REPORT_VERDICT_SIZE], text[RUN_REPORT_VERDICT_SIZE + 64];
	const char *level = run_report__verdict(report, verdict);
	double share = evaluated(report);

	put_job(report, out);
	snprintf(text, sizeof(text), "%s: %s", level, verdict);
	put(out, text);
	put_causes(report, out);
	if (share >= 0)
		fprintf(out, "%.1f %% of the ranks' time could be evaluated.\n", 100 * share);
	if (more) {
		snprintf(text, sizeof(text), "%s", more);
		put(out, text);
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}

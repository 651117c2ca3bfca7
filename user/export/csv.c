// SPDX-License-Identifier: GPL-2.0-or-later
#include "export/csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "export/row_order.h"
#include "report/json.h"

static void next(struct csv_row *row)
{
	if (row->begun)
		putc(',', row->out);
	row->begun = true;
}

void csv__text(struct csv_row *row, const char *text)
{
	bool quoted;

	next(row);
	if (!text)
		return;
	/* the empty text is quoted, for it is no missing value */
	quoted = !*text || text[strcspn(text, ",\"\r\n")];
	if (quoted)
		putc('"', row->out);
	while (*text) {
		size_t length = utf8__length(text);

		if (*text == '"')
			putc('"', row->out);
		if (length)
			fwrite(text, 1, length, row->out);
		else
			putc('?', row->out);
		text += length ? length : 1;
	}
	if (quoted)
		putc('"', row->out);
}

void csv__number(struct csv_row *row, double value)
{
	next(row);
	if (isfinite(value))
		fprintf(row->out, "%.9g", value);
}

void csv__integer(struct csv_row *row, int64_t value)
{
	next(row);
	fprintf(row->out, "%lld", (long long)value);
}

void csv__flag(struct csv_row *row, bool value)
{
	csv__text(row, value ? "true" : "false");
}

void csv__time(struct csv_row *row, uint64_t utc_ns)
{
	char text[JSON_TIME_SIZE];

	csv__text(row, utc_ns ? json__time(utc_ns, text) : NULL);
}

void csv__list(struct csv_row *row, const char *const *items, size_t count)
{
	char *text = NULL;
	size_t size;
	FILE *list = open_memstream(&text, &size);

	for (size_t i = 0; list && i < count; i++)
		fprintf(list, "%s%s", i ? " " : "", items[i]);
	if (!list || fclose(list))
		row->out_of_memory = true;
	csv__text(row, count ? text : NULL);
	free(text);
}

void csv__end(struct csv_row *row)
{
	fputs("\r\n", row->out);
	row->begun = false;
}

const char *csv__job(const struct run_report *report, const char *said, uint32_t user)
{
	const struct summary *summary = run_report__summary(report);

	for (size_t i = 0; i < summary->job_count; i++) {
		if (summary->jobs[i].user == user && !strcmp(summary->jobs[i].said, said))
			return summary->jobs[i].name;
	}
	return said;
}

double csv__seconds(const struct run_report *report, uint64_t utc_ns)
{
	return (double)(int64_t)(utc_ns - report->start_ns) / 1e9;
}

#define BIN_TEXT 32

/* Writes what all cells of a row begin with. malloc'ed; NULL when out of memory. */
static char *cells_head(const struct view_map *map, const struct view_row *view_row)
{
	char *head = NULL;
	size_t size;
	struct csv_row row = {.out = open_memstream(&head, &size)};

	if (!row.out)
		return NULL;
	csv__text(&row, map->job);
	csv__text(&row, map->class);
	csv__text(&row, view_row->host);
	csv__number(&row, view_row->rank < 0 ? NAN : (double)view_row->rank);
	csv__integer(&row, (int64_t)view_row->pid);
	csv__number(&row, view_row->thread < 0 ? NAN : (double)view_row->thread);
	if (!fclose(row.out))
		return head;
	free(head);
	return NULL;
}

/* Writes the begin and the length of a bin, with the commas around them. */
static void write_bin(const struct run_report *report, const struct view_map *map, size_t bin, char *text)
{
	snprintf(text, BIN_TEXT, ",%.9g,%.4g,", csv__seconds(report, (map->first + bin) * map->bin_ns),
		 (double)map->bin_ns / 1e9);
}

/* There are millions of cells, so that what many of them have in common is made once: the head of a row, and bins. */
static int write_map(const struct run_report *report, const struct view_map *map, FILE *out)
{
	size_t bins = (size_t)(map->end - map->first);
	char(*texts)[BIN_TEXT] = malloc((bins + 1) * sizeof(*texts)), *head;
	double *values = malloc((bins + 1) * sizeof(*values));
	int ret = texts && values ? 0 : -ENOMEM;

	for (size_t bin = 0; !ret && bin < bins; bin++)
		write_bin(report, map, bin, texts[bin]);
	for (size_t row = 0; !ret && row < map->row_count; row++) {
		head = cells_head(map, &map->rows[row]);
		ret = head ? view_model__cells(map, row, row + 1, 1, bins, values) : -ENOMEM;
		for (size_t bin = 0; !ret && bin < bins; bin++) {
			if (!isfinite(values[bin]))
				continue;
			fputs(head, out);
			fputs(texts[bin], out);
			fprintf(out, "%.4g\r\n", values[bin]);
		}
		free(head);
	}
	free(texts);
	free(values);
	return ret;
}

static int write_cells(const struct run_report *report, FILE *out)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < report->view.map_count; i++) {
		if (report->view.maps[i].end)
			ret = write_map(report, &report->view.maps[i], out);
	}
	return ret;
}

/* Returns a mean over the time of a job's ranks, or NAN where there is none. */
static double mean(double sum, double weight)
{
	return weight > 0 ? sum / weight : NAN;
}

void csv__time_of(const struct run_report *report, struct csv_row *row, const cJSON *object, enum record_row key)
{
	uint64_t time;

	csv__number(row, record__time(object, key, &time) ? csv__seconds(report, time) : NAN);
}

const char *csv__job_of(const struct run_report *report, const cJSON *record)
{
	const char *job = record__text(record, KEY(of_job, job));
	double uid = record__number(record, KEY(of_job, uid), NAN);

	return csv__job(report, job ? job : "", uid >= 0 && uid < UINT32_MAX ? (uint32_t)uid + 1 : 0);
}

static int write_jobs(const struct run_report *report, FILE *out)
{
	const struct summary *summary = run_report__summary(report);
	struct csv_row row = {.out = out};

	for (size_t i = 0; i < summary->job_count; i++) {
		const struct job_summary *job = &summary->jobs[i];

		csv__text(&row, job->name);
		if (job->user)
			csv__integer(&row, (int64_t)job->user - 1);
		else
			csv__text(&row, NULL);
		csv__text(&row, job->program);
		csv__time(&row, report->start_ns);
		csv__time(&row, job->begin_ns);
		csv__time(&row, job->end_ns);
		csv__integer(&row, job->ranks);
		csv__number(&row, job->world_size ? (double)job->world_size : NAN);
		csv__list(&row, (const char *const *)job->hosts, job->host_count);
		csv__number(&row, job->rank_seconds);
		csv__number(&row, 100 * mean(job->covered_total, job->rank_seconds));
		for (int class = 0; class < VAPRO_CLASSES; class ++)
			csv__number(&row, 100 * mean(job->covered[class], job->rank_seconds));
		for (int class = 0; class < VAPRO_CLASSES; class ++)
			csv__number(&row, mean(job->performed[class], job->performed_weight[class]));
		csv__number(&row, mean(job->overhead, job->overhead_weight));
		csv__number(&row, job->overhead_weight > 0 ? job->overhead_max : NAN);
		csv__end(&row);
	}
	return row.out_of_memory ? -ENOMEM : 0;
}

/* Columns of a class are in the order of enum vapro_class. */
const struct csv_table csv_tables[CSV_TABLES] = {
    {"jobs.csv",
     "job,uid,program,run_begin,begin,end,ranks,world_size,hosts,rank_seconds,evaluated_pct,evaluated_computation_pct,"
     "evaluated_communication_pct,evaluated_io_pct,performance_computation,performance_communication,performance_io,"
     "overhead_mean_pct,overhead_max_pct",
     write_jobs},
    {"causes.csv",
     "job,number,cause,culprit,pid,place,class,severity,confirmed,alarm,begin_s,end_s,lost_seconds,caused_seconds,lost_"
     "pct,share_pct,variances,ranks,rank_count,hosts,text",
     csv__causes},
    {"variances.csv",
     "job,number,id,class,severity,confidence,alarm,begin_s,end_s,ranks,rank_count,hosts,performance,lost_seconds,"
     "caused_"
     "seconds,cause,culprit,culprit_pid,place,effect_of,where,inside,verdict,advice",
     csv__variances},
    {"states.csv", "job,kind,state,state_id,class,variance,seconds,ratio,reason,labels", csv__states},
    {"hangs.csv",
     "job,id,kind,outcome,alarm,severity,begin_s,end_s,seconds,ranks,condition,since_s,call,labels,waits_for,did_not_"
     "enter,"
     "text",
     csv__hangs},
    {"noise.csv",
     "job,id,source,what,relation,pid,n,mean_us,longest_us,period_ms,period_least_ms,period_most_ms,time_pct_of_ranks,"
     "lost_seconds,begin_s,end_s,ranks,hosts,class,waited_seconds,regularity,together,second",
     csv__noise},
    {"variability.csv",
     "job,state,class,kind,origin,work,seconds,ranks,batches,fragments_per_batch,temporal_median_pct,temporal_worst_"
     "pct,"
     "temporal_worst_rank,range_over_mean_pct,spread_pct,slowest_pct,slowest_over_fastest_pct,between_pct,slow_ranks,"
     "rv,"
     "rv_error,software_pct,frequency_pct,stalls_pct,call_p50_us,call_p95_us,calls_above_p50_seconds,state_id",
     csv__variability},
    {"profile.csv", "job,rank,pid,host,rank_seconds,class,function,calls,seconds,waiting_seconds,covered_seconds",
     csv__profile},
    {"cells.csv", "job,class,host,rank,pid,thread,begin_s,seconds,performance", write_cells},
};

int csv__write(const struct csv_table *table, const struct run_report *report, FILE *out)
{
	fprintf(out, "%s\r\n", table->begin);
	return table->write_rows(report, out);
}

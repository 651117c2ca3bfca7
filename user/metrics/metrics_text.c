// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Metrics as text. The collector of node_exporter reads the older text format, in which the TYPE of a counter names its
 * samples, with _total; names, units and the last line are those of OpenMetrics, in which node_exporter passes them on.
 */
#include "metrics/metrics_private.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0644 /* the collector is another user */

static void print_head(FILE *out, const char *name, const char *type, const char *unit, const char *help)
{
	int base = (int)strlen(name) - (strcmp(type, "counter") ? 0 : (int)strlen("_total"));

	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
	if (unit)
		fprintf(out, "# UNIT %.*s %s\n", base, name, unit);
}

/* Prints a text inside the quotes of a label. */
static void print_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if ((unsigned char)*text < ' ')
			putc('?', out);
		else
			fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
}

static void print_node(struct metrics *metrics, const struct metrics_counts *counts, bool up, FILE *out)
{
	double overhead = isnan(counts->overhead_pct) ? metrics->overhead_pct : counts->overhead_pct;

	print_head(out, "vapro_up", "gauge", NULL, "1 while it watches, 0 once it has ended.");
	fprintf(out, "vapro_up %d\n", up);
	if (!isnan(overhead)) {
		print_head(out, "vapro_overhead_ratio", "gauge", "ratio",
			   "Overhead of the job that pays most, of its time in the last window.");
		fprintf(out, "vapro_overhead_ratio %.6g\n", overhead / 100);
	}
	if (!(metrics->rank_seconds > 0))
		return;
	print_head(out, "vapro_coverage_ratio", "gauge", "ratio",
		   "Share of the time of all ranks in the last window that was judged, by class.");
	for (int i = 0; i < VAPRO_CLASSES; i++)
		fprintf(out, "vapro_coverage_ratio{class=\"%s\"} %.6g\n", vapro_class_name[i],
			metrics->covered[i] / metrics->rank_seconds);
}

static void print_performance(const struct metrics_job *job, FILE *out)
{
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		for (int stat = 0; stat < JOB_STATS; stat++) {
			if (isnan(job->performance[class][stat]))
				continue;
			fputs("vapro_job_performance_ratio{cluster=\"", out);
			print_text(out, job->cluster);
			fputs("\",job_id=\"", out);
			print_text(out, job->label);
			fprintf(out, "\",class=\"%s\",stat=\"%s\"} %.6g\n", vapro_class_name[class],
				metrics__stat[stat], job->performance[class][stat]);
		}
	}
}

static void print_lost(const char *label, const double *lost, FILE *out)
{
	for (int cause = 0; cause < JOB_CAUSES; cause++) {
		fputs("vapro_job_lost_seconds_total{job_id=\"", out);
		print_text(out, label);
		fprintf(out, "\",cause=\"%s\"} %.9g\n", metrics__job_cause[cause], lost[cause]);
	}
}

static void print_jobs(const struct metrics *metrics, uint64_t now_ns, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < metrics->count; i++) {
		const struct metrics_job *job = &metrics->jobs[i];

		if (!metrics__is_shown(job, now_ns) || now_ns > job->current_ns)
			continue;
		if (!any)
			print_head(out, "vapro_job_performance_ratio", "gauge", "ratio",
				   "Performance of the ranks of a job in its last window, against their own best: "
				   "least, 5th percentile, median.");
		any = true;
		print_performance(job, out);
	}
	print_head(out, "vapro_job_lost_seconds_total", "counter", "seconds",
		   "Seconds that ranks of a job lost by confirmed causes, without waiting for others.");
	for (size_t i = 0; i < metrics->count; i++) {
		const struct metrics_job *job = &metrics->jobs[i];
		double lost[JOB_CAUSES] = {0};

		if (!metrics__is_shown(job, now_ns))
			continue;
		for (int cause = 0; cause < NODE_CAUSES; cause++)
			lost[metrics__fold((enum node_cause)cause)] += job->lost[cause];
		print_lost(job->label, lost, out);
	}
	print_lost("other", metrics->other, out);
}

static void print_counters(const struct metrics *metrics, const struct metrics_counts *counts, FILE *out)
{
	static const char *const severity[VAPRO_SEVERITIES] = {
	    [VAPRO_WARNING] = "warning", [VAPRO_CRITICAL] = "critical"};
	const struct {
		const char *why;
		uint64_t count;
	} lost[] = {{"output", counts->lost_lines},
		    {"output_max", counts->over_lines},
		    {"publish", counts->discarded_blocks},
		    {"events", metrics->lost_fragments}};

	print_head(out, "vapro_node_lost_seconds_total", "counter", "seconds",
		   "Seconds that ranks of all jobs lost by confirmed causes, without waiting for others.");
	for (int cause = 0; cause < NODE_CAUSES; cause++)
		fprintf(out, "vapro_node_lost_seconds_total{cause=\"%s\"} %.9g\n", metrics__node_cause[cause],
			metrics->lost[cause]);
	print_head(out, "vapro_alarms_total", "counter", NULL,
		   "Slow regions and hangs that became alarms, once for each severity that they reached.");
	for (int i = 0; i < VAPRO_SEVERITIES; i++) {
		if (severity[i])
			fprintf(out, "vapro_alarms_total{severity=\"%s\"} %llu\n", severity[i],
				(unsigned long long)metrics->alarm_count[i]);
	}
	print_head(out, "vapro_lost_records_total", "counter", NULL,
		   "Lines, blocks and fragments that are missing: lines that an output did not take, or beyond "
		   "--output-max, blocks that no broker took, fragments of which the kernel side has no event.");
	for (size_t i = 0; i < sizeof(lost) / sizeof(*lost); i++)
		fprintf(out, "vapro_lost_records_total{why=\"%s\"} %llu\n", lost[i].why,
			(unsigned long long)lost[i].count);
	print_head(out, "vapro_published_blocks_total", "counter", NULL, "Blocks that a broker has stored.");
	fprintf(out, "vapro_published_blocks_total %llu\n", (unsigned long long)counts->published_blocks);
}

int metrics__print(struct metrics *metrics, const struct metrics_counts *counts, bool up, uint64_t now_ns, char **text)
{
	size_t size;
	FILE *out;

	*text = NULL;
	out = open_memstream(text, &size);
	if (!out)
		return -ENOMEM;
	print_node(metrics, counts, up, out);
	print_jobs(metrics, now_ns, out);
	print_counters(metrics, counts, out);
	fputs("# EOF\n", out);
	if (fclose(out)) {
		free(*text);
		*text = NULL;
		return -ENOMEM;
	}
	if (metrics->judged) {
		metrics->rank_seconds = 0;
		metrics->overhead_pct = NAN;
		memset(metrics->covered, 0, sizeof(metrics->covered));
		metrics->judged = false;
	}
	return 0;
}

/* Writes a new file, whatever the umask is. Returns 0 or a negative errno. */
static int write_fresh(const char *path, const char *text)
{
	size_t left = strlen(text);
	int fd, error = 0;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, MODE))
		error = errno;
	while (!error && left) {
		ssize_t written = write(fd, text, left);

		if (written < 0 && errno != EINTR)
			error = errno;
		text += written > 0 ? written : 0;
		left -= written > 0 ? (size_t)written : 0;
	}
	if (close(fd) && !error)
		error = errno;
	return -error;
}

int metrics__write(struct metrics *metrics, const struct metrics_counts *counts, bool up, uint64_t now_ns)
{
	char *text;
	int ret = metrics__print(metrics, counts, up, now_ns, &text);

	if (ret)
		return ret;
	ret = write_fresh(metrics->fresh, text);
	if (!ret && rename(metrics->fresh, metrics->path))
		ret = -errno;
	if (ret)
		unlink(metrics->fresh);
	free(text);
	return ret;
}

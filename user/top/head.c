// SPDX-License-Identifier: GPL-2.0-or-later
/* What is said of the node, the daemon and all jobs together, above the lists. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/duration.h"
#include "top/layout_private.h"

/* Sums over the jobs that are shown. */
struct sums {
	size_t jobs, processes, closed, regions, alarms, hangs;
	double lost_s, overhead_pct,
	    overhead_most_pct; /* overhead: now, mean and most of the processes; NAN: unknown */
	uint64_t lost;	       /* fragments */
	int loss;	       /* cause of most of them */
	uint64_t left_out;     /* regions */
};

static void add_job(struct sums *sums, const struct top_job *job, double *overhead, size_t *known, uint64_t *most)
{
	sums->jobs++;
	sums->processes += job->process_count;
	sums->regions += job->region_count;
	sums->alarms += job->alarm_count;
	sums->hangs += top_job__hangs(job);
	sums->lost_s += job->lost_s;
	sums->left_out += job->regions_left_out;
	for (int i = 0; i < VAPRO_LOSSES; i++) {
		sums->lost += job->lost[i];
		if (job->lost[i] <= *most)
			continue;
		*most = job->lost[i];
		sums->loss = i;
	}
	for (size_t i = 0; i < job->process_count; i++) {
		const struct top_process *process = &job->processes[i];

		sums->closed += !strcmp(process->probes, "closed") || !strcmp(process->probes, "reduced");
		if (isnan(process->overhead_pct))
			continue;
		*overhead += process->overhead_pct;
		sums->overhead_most_pct = fmax(sums->overhead_most_pct, process->overhead_pct);
		++*known;
	}
}

static struct sums sums_of(const struct top_model *model)
{
	struct sums sums = {.overhead_pct = NAN, .overhead_most_pct = NAN};
	double overhead = 0;
	size_t known = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < model->snapshot->job_count; i++) {
		const struct top_job *job = &model->snapshot->jobs[i];

		if (!model->only_user || job->user == model->only_user)
			add_job(&sums, job, &overhead, &known, &most);
	}
	if (known)
		sums.overhead_pct = overhead / (double)known;
	return sums;
}

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* Appends a part to a sentence, after a semicolon where there is one before. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	if (used + 3 >= size)
		return;
	if (used)
		used += (size_t)snprintf(text + used, size - used, "; ");
	va_start(arguments, format);
	vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

static void say_work(const struct top_model *model, const struct sums *sums, char *text, size_t size)
{
	const struct top_snapshot *snapshot = model->snapshot;
	char lost[40];

	*text = 0;
	if (!sums->jobs) {
		add(text, size,
		    !snapshot->pid  ? "no job has a result of the last minutes"
		    : snapshot->all ? "no process is watched"
				    : "no process of yours is watched");
		return;
	}
	if (sums->hangs)
		add(text, size, "%zu job%s no progress", sums->hangs, sums->hangs == 1 ? " makes" : "s make");
	add(text, size, "%zu job%s, %zu process%s, %zu slow region%s (%zu alarm%s)", sums->jobs, plural(sums->jobs),
	    sums->processes, sums->processes == 1 ? "" : "es", sums->regions, plural(sums->regions), sums->alarms,
	    plural(sums->alarms));
	if (sums->lost_s > 0)
		add(text, size, "%s lost so far", duration__text(sums->lost_s, lost, sizeof(lost)));
}

static void say_costs(const struct top_model *model, const struct sums *sums, char *text, size_t size)
{
	const struct top_snapshot *snapshot = model->snapshot;
	char lost[40];

	*text = 0;
	if (!snapshot->window_end_ns && snapshot->pid)
		add(text, size, "the first window of %s is not over yet",
		    duration__text(snapshot->window_s, lost, sizeof(lost)));
	else if (sums->jobs && snapshot->window_end_ns && snapshot->utc_ns > snapshot->window_end_ns)
		add(text, size, "speeds %.0f s old", (double)(snapshot->utc_ns - snapshot->window_end_ns) * 1e-9);
	if (!isnan(sums->overhead_pct))
		add(text, size, "overhead %.1f %% (most %.1f %%)", sums->overhead_pct, sums->overhead_most_pct);
	if (sums->closed)
		add(text, size, "probes reduced in %zu process%s", sums->closed, sums->closed == 1 ? "" : "es");
	if (!isnan(snapshot->daemon_cpu_pct))
		add(text, size, "vaprod %.1f %% CPU", snapshot->daemon_cpu_pct);
	if (sums->lost)
		add(text, size, "%llu fragments lost, most %s", (unsigned long long)sums->lost,
		    vapro_loss_name[sums->loss]);
	else if (sums->jobs && snapshot->window_end_ns)
		add(text, size, "no fragments lost");
	if (snapshot->lost_lines)
		add(text, size, "%llu lines of output lost", (unsigned long long)snapshot->lost_lines);
	if (sums->left_out + snapshot->jobs_left_out)
		add(text, size, "%llu regions and jobs are not shown",
		    (unsigned long long)(sums->left_out + snapshot->jobs_left_out));
	if (snapshot->bad_lines)
		add(text, size, "%zu records could not be read", snapshot->bad_lines);
	if (snapshot->stage)
		add(text, size, "counting parts of %s", snapshot->stage);
}

void top_head__say(const struct top_model *model, struct top_head *head)
{
	struct sums sums = sums_of(model);

	say_work(model, &sums, head->work, sizeof(head->work));
	say_costs(model, &sums, head->costs, sizeof(head->costs));
	head->alarm = sums.alarms || sums.hangs;
}

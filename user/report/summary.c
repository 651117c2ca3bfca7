/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/advice.h"
#include "diagnose/interferers.h"
#include "diagnose/verdict.h"
#include "base/grow.h"
#include "base/table.h"
#include "model/state_id.h"
#include "report/hang_text.h"
#include "report/inside_words.h"
#include "report/json.h"
#include "report/noise_text.h"
#include "report/program_name.h"
#include "report/record.h"
#include "report/summary.h"
#include "report/summary_parts.h"

#define OVERHEAD_WINDOW_S 5 /* of a shorter window the overhead counts where there is no other */

struct summary *summary__new(void)
{
	struct summary *summary = calloc(1, sizeof(*summary));

	if (!summary)
		return NULL;
	config__init(&summary->config);
	summary->obstacles = obstacles__new();
	if (summary->obstacles)
		return summary;
	free(summary);
	return NULL;
}

void summary__configure(struct summary *summary, const struct vapro_config *config)
{
	summary->config = *config;
}

static void free_gap(struct gap *gap)
{
	free(gap->state);
}

void summary__name(struct summary *summary, const struct source_names *names)
{
	summary->names = names;
}

void summary__free(struct summary *summary)
{
	if (!summary)
		return;
	for (size_t i = 0; i < summary->job_count; i++) {
		for (size_t k = 0; k < summary->jobs[i].gap_count; k++)
			free_gap(&summary->jobs[i].gaps[k]);
		for (size_t k = 0; k < summary->jobs[i].host_count; k++)
			free(summary->jobs[i].hosts[k]);
		free(summary->jobs[i].hosts);
		free(summary->jobs[i].program);
		free(summary->jobs[i].called);
		free(summary->jobs[i].gaps);
		free(summary->jobs[i].spans);
		free(summary->jobs[i].name);
		free(summary->jobs[i].said);
	}
	for (size_t i = 0; i < summary->trouble_count; i++)
		free(summary->troubles[i]);
	free(summary->troubles);
	for (size_t i = 0; i < summary->chosen_count; i++)
		free(summary->chosen[i]);
	free(summary->chosen);
	for (size_t i = 0; i < summary->host_count; i++)
		free(summary->hosts[i]);
	free(summary->hosts);
	free(summary->jobs);
	regions__free(&summary->regions);
	findings__free(&summary->findings);
	for (size_t i = 0; i < summary->hang_count; i++) {
		free(summary->hangs[i].job);
		free(summary->hangs[i].text);
	}
	free(summary->hangs);
	for (size_t i = 0; i < summary->variability_count; i++)
		cJSON_Delete(summary->variability[i]);
	free(summary->variability);
	for (size_t i = 0; i < summary->profile_count; i++)
		cJSON_Delete(summary->profiles[i]);
	free(summary->profiles);
	for (size_t i = 0; i < summary->earlier_count; i++)
		free(summary->earlier[i]);
	free(summary->earlier);
	obstacles__free(summary->obstacles);
	table__free(summary->processes);
	free(summary);
}

/* Finds or makes a job. Where users have jobs of one name, all but the first are named with their user. */
static struct job_summary *find_job(struct summary *summary, const char *said, uint32_t user)
{
	struct job_summary *job;
	char name[256];

	snprintf(name, sizeof(name), "%s", said);
	for (size_t i = 0; i < summary->job_count; i++) {
		if (strcmp(summary->jobs[i].said, said))
			continue;
		if (summary->jobs[i].user == user)
			return &summary->jobs[i];
		if (user)
			snprintf(name, sizeof(name), "%s of uid %u", said, user - 1);
	}
	if (grow(&summary->jobs, &summary->job_capacity, summary->job_count + 1, sizeof(*job)))
		return NULL;
	job = &summary->jobs[summary->job_count];
	job->user = user;
	job->said = strdup(said);
	job->name = regions__defuse(strdup(name));
	if (!job->name || !job->said) {
		free(job->name);
		free(job->said);
		return NULL;
	}
	summary->job_count++;
	return job;
}

static int add_host(struct job_summary *job, const char *host)
{
	char *copy;

	/* rows come by host, in the same order each time: the one of the last call or the next one is the most likely
	 */
	for (size_t i = 0; i < job->host_count; i++) {
		size_t at = (job->host_guess + i) % job->host_count;

		if (strcmp(job->hosts[at], host))
			continue;
		job->host_guess = at;
		return 0;
	}
	copy = regions__defuse(strdup(host));
	if (!copy || grow(&job->hosts, &job->host_capacity, job->host_count + 1, sizeof(copy))) {
		free(copy);
		return -ENOMEM;
	}
	job->hosts[job->host_count++] = copy;
	return 0;
}

int summary__add_host(struct summary *summary, const char *name, uint32_t user, const char *host)
{
	struct job_summary *job = find_job(summary, name, user);

	return job && (!*host || !add_host(job, host)) ? 0 : -ENOMEM;
}

uint64_t summary__region_id(struct summary *summary, const char *host, uint64_t id)
{
	size_t at = summary->host_count;
	char *copy;

	/* records of one host follow each other closely */
	while (at > 0 && strcmp(summary->hosts[at - 1], host))
		at--;
	if (!id)
		return 0;
	if (!at) {
		copy = strdup(host);
		if (!copy || grow(&summary->hosts, &summary->host_capacity, summary->host_count + 1, sizeof(copy))) {
			free(copy);
			return 0;
		}
		summary->hosts[summary->host_count++] = copy;
		at = summary->host_count;
	}
	return id + ((uint64_t)(at - 1) << SUMMARY_HOST_SHIFT);
}

const struct regions *summary__regions(const struct summary *summary)
{
	return &summary->regions;
}

struct regions *summary__regions_of(struct summary *summary)
{
	return &summary->regions;
}

void summary__start(struct summary *summary, uint64_t start_ns)
{
	summary->start_ns = start_ns;
}

static uint64_t host_key(const char *host)
{
	return table__hash(regions__job_number(host), 1);
}

static uint64_t job_key(const char *job, uint32_t user)
{
	return table__hash(regions__job_number(job), (uint64_t)user + 2);
}

/* Returns whether the rank of a process is watched: its children have its environment, and are refused. */
static bool is_rank_watched(const struct summary *summary, const struct summary_process *process)
{
	uint32_t at;

	return summary->processes && process->rank >= 0 &&
	       table__get(summary->processes, (uint64_t)process->rank, job_key(process->job, process->user), &at);
}

/* Notes that a process is watched, as one of a job. Returns 0 or -ENOMEM. */
static int note_watched(struct summary *summary, const struct summary_process *process, const struct job_summary *job)
{
	uint32_t place = (uint32_t)(job - summary->jobs);

	obstacles__watched(summary->obstacles, process->job, process->user, process->pid, process->rank);
	if (!summary->processes)
		summary->processes = table__new();
	if (!summary->processes ||
	    table__put(summary->processes, process->pid, host_key(process->host ? process->host : ""), place) ||
	    (process->rank >= 0 &&
	     table__put(summary->processes, (uint64_t)process->rank, job_key(process->job, process->user), place)))
		return -ENOMEM;
	return 0;
}

/* Adds what keeps a process from being seen. Returns 0 or -ENOMEM. */
static int add_unseen(struct summary *summary, const struct summary_process *process)
{
	char text[1536], program[PROGRAM_NAME_MAX];

	if (process->refused && is_rank_watched(summary, process))
		return 0;
	snprintf(text, sizeof(text), "process %u (%s)%s%s", process->pid,
		 program_name(process->exe ? process->exe : "?", process->command, program),
		 process->refused ? " is not watched: " : ": ",
		 process->reason ? process->reason : "no reason is known");
	return obstacles__add(summary->obstacles, process->refused ? OBSTACLE_REFUSED : OBSTACLE_PARTLY, process->job,
			      process->user, process->pid, process->rank, text);
}

int summary__add_process(struct summary *summary, const struct summary_process *process)
{
	char program[PROGRAM_NAME_MAX];
	struct job_summary *job;

	/* what was refused is no part of a job */
	if (process->refused)
		return add_unseen(summary, process);
	job = find_job(summary, process->job, process->user);
	if (!job || (process->host && add_host(job, process->host)) || note_watched(summary, process, job))
		return -ENOMEM;
	if (process->attached && process->reason && add_unseen(summary, process))
		return -ENOMEM;
	if (process->called && *process->called && !job->called && !regions__set_text(&job->called, process->called))
		return -ENOMEM;
	if (!process->exe || (job->program && !process->attached)) /* the command is known at the attachment only */
		return 0;
	program_name(process->exe, process->command, program);
	if (job->program)
		job->programs |= strcmp(job->program, program) != 0;
	else if (!regions__set_text(&job->program, program))
		return -ENOMEM;
	return 0;
}

int summary__add_warning(struct summary *summary, const char *code, uint32_t pid, const char *host, const char *text)
{
	enum obstacle_kind kind = code ? obstacles__of_warning(code) : OBSTACLE_KINDS;
	const struct job_summary *job = NULL;
	uint32_t place;

	if (kind == OBSTACLE_KINDS || !text)
		return 0;
	if (summary->processes && table__get(summary->processes, pid, host_key(host), &place))
		job = &summary->jobs[place];
	return obstacles__add(summary->obstacles, kind, job ? job->said : NULL, job ? job->user : 0, pid, -1, text);
}

char *summary__describe(const struct vapro_state *state, const struct source_names *names)
{
	return regions__defuse(source_names__call(names, state));
}

static struct gap *find_gap(struct job_summary *job, uint64_t state_id, enum vapro_uncovered_reason reason)
{
	struct gap *gap;

	for (size_t i = 0; i < job->gap_count; i++)
		if (job->gaps[i].reason == reason && job->gaps[i].state_id == state_id)
			return &job->gaps[i];
	if (grow(&job->gaps, &job->gap_capacity, job->gap_count + 1, sizeof(*gap)))
		return NULL;
	gap = &job->gaps[job->gap_count++];
	*gap = (struct gap){.state_id = state_id, .reason = reason};
	return gap;
}

static int add_gap(struct job_summary *job, const struct result_uncovered *uncovered, double rank_seconds,
		   const struct source_names *names)
{
	const struct vapro_state *state = uncovered->state;
	char *text = state ? summary__describe(state, names) : strdup("");
	uint64_t id = uncovered->state_id ? uncovered->state_id : state_id__of(state);
	struct gap *gap = text ? find_gap(job, id, uncovered->reason) : NULL;

	if (!gap) {
		free(text);
		return -ENOMEM;
	}
	gap->rank_seconds += uncovered->share * rank_seconds;
	free(gap->state);
	gap->state = text; /* lines may be known by now */
	return 0;
}

static int add_variance(struct summary *summary, const char *job, uint32_t user, const struct result_variance *variance)
{
	struct region *region = regions__get(&summary->regions, job, variance->id);

	if (!region)
		return -ENOMEM;
	region->user = user;
	return summary__fill_region(region, variance, summary->names);
}

int summary__add_hang(struct summary *summary, const char *job, const struct result_hang *hang, const char *text)
{
	struct hang_said *said = NULL;

	for (size_t i = 0; i < summary->hang_count && !said; i++) {
		if (summary->hangs[i].id == hang->id && !strcmp(summary->hangs[i].job, job))
			said = &summary->hangs[i];
	}
	if (!said) {
		if (grow(&summary->hangs, &summary->hang_capacity, summary->hang_count + 1, sizeof(*said)))
			return -ENOMEM;
		said = &summary->hangs[summary->hang_count];
		*said = (struct hang_said){.job = strdup(job), .id = hang->id};
		if (!said->job)
			return -ENOMEM;
		summary->hang_count++;
	}
	said->alarm = hang->alarm;
	said->severity = hang->severity;
	return regions__set_text(&said->text, text) ? 0 : -ENOMEM;
}

static int add_result_hang(struct summary *summary, const char *job, const struct result_hang *hang)
{
	char *text = hang_text__write(hang, summary->names);
	int ret = text ? summary__add_hang(summary, job, hang, text) : -ENOMEM;

	free(text);
	return ret;
}

static int add_chosen(struct summary *summary, const struct result_variance *region)
{
	char *text = NULL;

	if (asprintf(&text, "%s: %s", vapro_class_name[region->class], region->diagnosis.verdict) < 0)
		return -ENOMEM;
	regions__defuse(text);
	if (grow(&summary->chosen, &summary->chosen_capacity, summary->chosen_count + 1, sizeof(text))) {
		free(text);
		return -ENOMEM;
	}
	summary->chosen[summary->chosen_count++] = text;
	return 0;
}

static int add_finding(struct summary *summary, const char *job, const struct finding *finding,
		       const struct vapro_state *about)
{
	char *state = summary__describe(about, summary->names);
	struct finding own = *finding;
	int ret;

	own.state_id = state_id__of(about);
	ret = state ? findings__add(&summary->findings, &own, job, state) : -ENOMEM;

	free(state);
	return ret;
}

static int add_imbalance(struct summary *summary, const char *job, const struct result_imbalance *imbalance)
{
	const struct result_variance set = {.ranks = imbalance->ranks, .rank_count = imbalance->rank_count};
	char who[256], place[512];

	advice__who(&set, false, who, sizeof(who));
	verdict__place(imbalance->shared, imbalance->shared_count, imbalance->rank_count, place, sizeof(place));
	return add_finding(summary, job,
			   &(struct finding){.kind = FINDING_IMBALANCE,
					     .who = who,
					     .place = place,
					     .many = imbalance->rank_count > 1,
					     .certain = imbalance->certain,
					     .ratio = imbalance->ratio,
					     .least = imbalance->ratio_least,
					     .most = imbalance->ratio_most,
					     .slow = imbalance->ratio_slow,
					     .count = imbalance->states,
					     .seconds = imbalance->lost_seconds,
					     .share = imbalance->share},
			   imbalance->state);
}

static int add_noise(struct summary *summary, const char *job, const struct result_noise *noise)
{
	const struct result_variance hit = {.ranks = noise->ranks, .rank_count = noise->rank_count};
	char who[256], task[NOISE_TASK_SIZE];

	advice__who(&hit, false, who, sizeof(who));
	noise_text__task(noise->what,
			 noise->source == VAPRO_NOISE_SCHEDULER ? interferers__relation[noise->relation] : NULL,
			 noise->pid, task);
	return findings__add(&summary->findings,
			     &(struct finding){.kind = FINDING_NOISE,
					       .source = noise->source,
					       .together = noise->together,
					       .cluster = noise->id,
					       .who = who,
					       .many = noise->rank_count > 1,
					       .count = noise->slices,
					       .seconds = noise->lost_s,
					       .share = fmin(1, noise->share),
					       .waited_s = noise->waited_s,
					       .longest_s = noise->longest_s,
					       .period_s = noise->period_s},
			     job, task);
}

/* Adds findings that are no variances, and must not be mistaken for one. */
static int add_findings(struct summary *summary, const char *job, const struct job_result *result)
{
	int ret = result->hang ? add_result_hang(summary, job, result->hang) : 0;

	for (uint32_t i = 0; !ret && i < result->noise_count; i++)
		ret = add_noise(summary, job, &result->noise[i]);
	for (uint32_t i = 0; !ret && i < result->rare_count; i++) {
		const struct result_rare *rare = &result->rares[i];

		ret = add_finding(summary, job,
				  &(struct finding){.kind = FINDING_RARE,
						    .cluster = rare->cluster,
						    .rank = rare->rank,
						    .count = rare->members,
						    .seconds = rare->seconds},
				  rare->state);
	}
	for (uint32_t i = 0; !ret && i < result->drift_count; i++) {
		const struct result_drift *drift = &result->drifts[i];

		ret = add_finding(
		    summary, job,
		    &(struct finding){.kind = FINDING_DRIFT, .ratio = drift->ratio, .count = drift->windows},
		    drift->state);
	}
	for (uint32_t i = 0; !ret && i < result->imbalance_count; i++)
		ret = add_imbalance(summary, job, &result->imbalances[i]);
	return ret;
}

/* Notes the time of a window's ranks. Returns 0 or -ENOMEM. */
static int add_span(struct job_summary *job, const struct job_result *result, double rank_seconds)
{
	struct job_span *last = job->span_count ? &job->spans[job->span_count - 1] : NULL;

	if (last && last->end_ns == result->begin_ns && last->ranks == result->rank_count) {
		last->end_ns = result->end_ns;
		last->rank_seconds += rank_seconds;
		return 0;
	}
	if (grow(&job->spans, &job->span_capacity, job->span_count + 1, sizeof(*job->spans)))
		return -ENOMEM;
	job->spans[job->span_count++] =
	    (struct job_span){result->begin_ns, result->end_ns, rank_seconds, result->rank_count};
	return 0;
}

/* Adds how much of a window was judged, and how well. weight: seconds of its ranks. */
static void add_judged(struct job_summary *job, const struct job_result *result, double weight)
{
	job->covered_total += weight * result->coverage_total + result->covered_before_s;
	for (int i = 0; i < VAPRO_CLASSES; i++) {
		job->covered[i] +=
		    weight * result->coverage[i] + (i == VAPRO_COMPUTATION ? result->covered_before_s : 0);
		if (isnan(result->performance[i]))
			continue;
		job->performed[i] += weight * result->coverage[i] * result->performance[i];
		job->performed_weight[i] += weight * result->coverage[i];
	}
	if (result->sensing.unseen_s > job->unseen_s) {
		job->unseen_s = result->sensing.unseen_s;
		job->unseen_rank = result->sensing.rank;
	}
}

/* Notes the worst process of a window: in a short one, as the last of a job is, a few calls are a great share. */
static void note_overhead(struct job_summary *job, const struct job_result *result, bool is_long)
{
	if (is_long < job->overhead_long ||
	    (is_long == job->overhead_long && result->overhead_pct_max <= job->overhead_max))
		return;
	job->overhead_long = is_long;
	job->overhead_max = result->overhead_pct_max;
	job->overhead_pid = result->overhead_pid_max;
}

int summary__add(struct summary *summary, const struct job_result *result, double daemon_cpu_pct)
{
	const char *name = result->job ? result->job : "";
	struct job_summary *job = find_job(summary, name, result->user);
	double seconds = (double)(result->end_ns - result->begin_ns) / 1e9, weight = seconds * result->rank_count;
	int ret = 0;

	if (!job)
		return -ENOMEM;
	if (!job->begin_ns)
		job->begin_ns = result->begin_ns;
	job->end_ns = result->end_ns;
	if (result->rank_count > job->ranks)
		job->ranks = result->rank_count;
	if (result->world_size > job->world_size)
		job->world_size = result->world_size;
	job->partial |= result->partial;
	for (uint32_t i = 0; i < result->heatmap_count; i++) {
		for (uint32_t k = 0; k < result->heatmaps[i].row_count; k++) {
			const char *host = result->heatmaps[i].rows[k].host;

			if (host && *host && add_host(job, host))
				return -ENOMEM;
		}
	}
	job->rank_seconds += weight;
	if (add_span(job, result, weight))
		return -ENOMEM;
	add_judged(job, result, weight);
	if (!isnan(result->overhead_pct_mean)) {
		job->overhead += weight * result->overhead_pct_mean;
		job->overhead_weight += weight;
	}
	note_overhead(job, result, seconds >= OVERHEAD_WINDOW_S);
	job->fragments += result->fragments;
	job->small_count += result->small_count;
	job->small_seconds += result->small_seconds;
	for (int i = 0; i < VAPRO_LOSSES; i++)
		job->lost[i] += result->lost[i];
	if (!isnan(daemon_cpu_pct) && result->end_ns > summary->cpu_end_ns) {
		summary->cpu_pct_seconds += daemon_cpu_pct * seconds;
		summary->cpu_seconds += seconds;
		summary->cpu_end_ns = result->end_ns;
	}
	for (uint32_t i = 0; !ret && i < result->uncovered_count; i++)
		ret = add_gap(job, &result->uncovered[i], weight, summary->names);
	for (uint32_t i = 0; !ret && i < result->variance_count; i++)
		ret = add_variance(summary, name, result->user, &result->variances[i]);
	for (uint32_t i = 0; !ret && i < result->selection_count; i++)
		ret = add_chosen(summary, &result->selections[i]);
	return ret ? ret : add_findings(summary, name, result);
}

int summary__add_trouble(struct summary *summary, const char *text)
{
	char *copy = strdup(text);

	if (!copy || grow(&summary->troubles, &summary->trouble_capacity, summary->trouble_count + 1, sizeof(copy))) {
		free(copy);
		return -ENOMEM;
	}
	summary->troubles[summary->trouble_count++] = copy;
	return 0;
}

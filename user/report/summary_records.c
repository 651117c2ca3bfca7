/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fills a summary from records: each becomes the result that it was written from, as far as a summary needs it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/printable.h"
#include "base/table.h"
#include "diagnose/interferers.h"
#include "diagnose/root_cause.h"
#include "diagnose/verdict.h"
#include "diagnose/where.h"
#include "model/state_id.h"
#include "report/inside_words.h"
#include "report/json.h"
#include "report/noise_text.h"
#include "report/record.h"
#include "report/summary.h"
#include "report/summary_parts.h"
#include "report/profile_text.h"
#include "report/variability_text.h"

#define UNCOVERED_MOST 256
#define FACTORS_MOST REGION_CAUSES
#define HOSTS_MOST 1024

static const char *job_of(const cJSON *line)
{
	const char *job = record__text(line, KEY(of_job, job));

	return job ? job : "";
}

/* Returns the user of a record as in struct vapro_thread. */
static uint32_t user_of(const cJSON *line)
{
	double uid = record__number(line, KEY(of_job, uid), -1);

	return uid >= 0 && uid < UINT32_MAX ? (uint32_t)uid + 1 : 0;
}

/* Returns the state of a record's item: its source stands for both ends. */
static struct vapro_state state_of(const cJSON *item)
{
	const char *source = record__text(item, KEY(state, source)), *to = record__text(item, KEY(state, to));
	const char *labels = record__text(item, KEY(state, labels));

	return (struct vapro_state){.from = source ? NULL : record__text(item, KEY(state, from)),
				    .to = to ? to : "",
				    .to_symbol = source,
				    .labels = labels ? labels : ""};
}

char *summary__describe_item(const cJSON *item)
{
	const struct vapro_state state = state_of(item);

	return summary__describe(&state, NULL);
}

/* Returns the region that a member of a record names; 0: none. */
static uint64_t region_of(struct summary *summary, const cJSON *line, enum record_row key)
{
	const char *host = record__text(line, KEY(head, host));

	return summary__region_id(summary, host ? host : "", record__uint(line, key));
}

/* Reads the members of an object that has one number for each class. */
static void read_classes(const cJSON *object, double *values, double missing)
{
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		values[class] = record__member_number(object, vapro_class_name[class], missing);
}

static int add_window(struct summary *summary, const cJSON *line, const char **why)
{
	const cJSON *coverage = record__item(line, KEY(window, coverage)),
		    *overhead = record__item(line, KEY(window, overhead_pct)), *item;
	const cJSON *lost = record__item(line, KEY(window, lost)), *small = record__item(line, KEY(window, small)),
		    *sensing = record__item(line, KEY(window, sensing));
	struct vapro_state states[UNCOVERED_MOST];
	struct result_uncovered uncovered[UNCOVERED_MOST];
	struct job_result result = {.job = job_of(line),
				    .user = user_of(line),
				    .world_size = (uint32_t)record__uint(line, KEY(window, world_size)),
				    .partial = record__true(line, KEY(window, partial)),
				    .coverage_total = record__member_number(coverage, "total", 0),
				    .covered_before_s = record__number(line, KEY(window, covered_before_seconds), 0),
				    .fragments = record__uint(line, KEY(window, fragments)),
				    .overhead_pct_mean = record__number(overhead, KEY(overhead, mean), NAN),
				    .overhead_pct_max = record__number(overhead, KEY(overhead, max), 0),
				    .overhead_pid_max = (uint32_t)record__uint(overhead, KEY(overhead, max_pid)),
				    .uncovered = uncovered,
				    .sensing = {.unseen_s = record__number(sensing, KEY(sensing, unseen_seconds), 0),
						.rank = (int32_t)record__number(sensing, KEY(sensing, rank), -1)},
				    .small_count = record__uint(small, KEY(small_regions, count)),
				    .small_seconds = record__number(small, KEY(small_regions, lost_seconds), 0)};
	int32_t *ranks;
	int ret;

	*why = "a window without begin or end";
	if (!record__time(line, KEY(window, begin), &result.begin_ns) ||
	    !record__time(line, KEY(window, end), &result.end_ns) || result.end_ns < result.begin_ns)
		return -EINVAL;
	read_classes(coverage, result.coverage, 0);
	read_classes(record__item(line, KEY(window, performance)), result.performance, NAN);
	for (int i = 0; i < VAPRO_LOSSES; i++)
		result.lost[i] = record__member_uint(lost, vapro_loss_name[i]);
	cJSON_ArrayForEach(item, record__item(line, KEY(window, uncovered)))
	{
		uint32_t at = result.uncovered_count;
		int reason = record__word(record__text(item, KEY(uncovered, reason)), vapro_uncovered_name,
					  VAPRO_UNCOVERED_REASONS);

		if (at == UNCOVERED_MOST || reason == VAPRO_UNCOVERED_REASONS)
			continue;
		states[at] = state_of(item);
		uncovered[at] =
		    (struct result_uncovered){.state = record__text(item, KEY(state, to)) ? &states[at] : NULL,
					      .state_id = state_id__parse(record__text(item, KEY(state, state_id))),
					      .share = record__number(item, KEY(uncovered, time_pct_of_job), 0) / 100,
					      .reason = (enum vapro_uncovered_reason)reason};
		result.uncovered_count++;
	}
	ret = record__ranks(record__text(line, KEY(window, ranks)), &ranks, &result.rank_count);
	if (!ret)
		ret = summary__add(summary, &result, record__number(line, KEY(window, daemon_cpu_pct), NAN));
	free(ranks);
	return ret;
}

/*
 * Reads the causes of a variance, and of their culprits the names; the ranks are to be freed. Returns how many there
 * are, or -ENOMEM.
 */
static int read_causes(const cJSON *list, struct result_cause *causes, struct result_interferer *culprits)
{
	const cJSON *item;
	int count = 0;

	cJSON_ArrayForEach(item, list)
	{
		struct result_cause *cause = &causes[count];
		const char *culprit = record__text(item, KEY(region_cause, culprit)),
			   *name = record__text(item, KEY(region_cause, cause));
		int32_t *ranks;

		if (count == RESULT_CAUSES || !name)
			break;
		*cause = (struct result_cause){
		    .cause = name,
		    .explained = strcmp(name, CAUSE_UNKNOWN) != 0,
		    .culprit = culprit ? &culprits[count] : NULL,
		    .culprit_seconds = record__number(item, KEY(region_cause, culprit_seconds), -1),
		    .lost_seconds = record__number(item, KEY(region_cause, lost_seconds), 0),
		    .caused_seconds = record__number(item, KEY(region_cause, caused_seconds), 0)};
		culprits[count] = (struct result_interferer){.rank = -1};
		snprintf(culprits[count].comm, sizeof(culprits[count].comm), "%s", culprit ? culprit : "");
		if (!record__time(item, KEY(region_cause, begin), &cause->begin_ns) ||
		    !record__time(item, KEY(region_cause, end), &cause->end_ns) || cause->end_ns < cause->begin_ns)
			break;
		count++;
		if (record__ranks(record__text(item, KEY(region_cause, ranks)), &ranks, &cause->rank_count)) {
			free(ranks);
			return -ENOMEM;
		}
		cause->ranks = ranks;
	}
	return count;
}

static void free_causes(struct result_cause *causes)
{
	for (int i = 0; i < RESULT_CAUSES; i++)
		free((int32_t *)causes[i].ranks);
}

static const cJSON *site_at(const cJSON *line, int at)
{
	return cJSON_GetArrayItem(record__item(line, KEY(variance, call_sites)), at);
}

static bool is_named(const struct vapro_state *state)
{
	return state->to_symbol || *state->to;
}

static int add_variance(struct summary *summary, const cJSON *line, const char **why)
{
	const char *severity = record__text(line, KEY(variance, severity)),
		   *ranks_text = record__text(line, KEY(variance, ranks));
	struct vapro_state states[] = {state_of(site_at(line, 0)), state_of(site_at(line, 1))};
	const struct result_site sites[] = {{.state = &states[0]}, {.state = &states[1]}};
	struct result_variance variance = {
	    .id = region_of(summary, line, KEY(variance, id)),
	    .effect_of = region_of(summary, line, KEY(variance, effect_of)),
	    .performance = record__number(line, KEY(variance, performance), NAN),
	    .lost_seconds = record__number(line, KEY(variance, lost_seconds), 0),
	    .observed = record__number(line, KEY(variance, observed_pct_of_region), NAN) / 100,
	    .whole_lost_seconds = record__number(line, KEY(variance, whole_lost_seconds), 0),
	    .unseen_before_seconds = record__number(line, KEY(variance, unseen_before_seconds), 0),
	    .unseen_after_seconds = record__number(line, KEY(variance, unseen_after_seconds), 0),
	    .caused_seconds = record__number(line, KEY(variance, caused_seconds), 0),
	    .work_unknown = record__true(line, KEY(variance, work_unknown)),
	    .alarm = record__true(line, KEY(variance, alarm)),
	    .evidence = record__text(line, KEY(variance, evidence)),
	    .who = record__text(line, KEY(variance, who)),
	    .sites = sites,
	    .site_count = !is_named(&states[0])	 ? 0
			  : is_named(&states[1]) ? 2
						 : 1,
	    .diagnosis = {.verdict = record__text(line, KEY(variance, verdict))},
	};
	int class = record__word(record__text(line, KEY(variance, class)), vapro_class_name, VAPRO_CLASSES), word, ret,
	    count;
	struct result_interferer culprits[RESULT_CAUSES];
	struct result_cause causes[RESULT_CAUSES] = {0};
	const char *shown = record__text(line, KEY(variance, state));
	struct region *region;
	char who[160], *inside;
	int32_t *ranks;

	*why = "a variance without id, class, begin or end";
	if (!variance.id || class == VAPRO_CLASSES || !record__time(line, KEY(variance, begin), &variance.begin_ns) ||
	    !record__time(line, KEY(variance, end), &variance.end_ns) || variance.end_ns < variance.begin_ns)
		return -EINVAL;
	variance.class = (enum vapro_class) class;
	variance.state = shown && !strcmp(shown, "closed") ? VAPRO_REGION_CLOSED : VAPRO_REGION_OPEN;
	word = record__word(severity, json_severity_name, VAPRO_SEVERITIES);
	variance.severity = word < VAPRO_SEVERITIES ? (enum vapro_severity)word : VAPRO_INFO;
	word = record__word(record__text(line, KEY(variance, confidence)), json_confidence_name, VAPRO_CONFIRMED + 1);
	variance.confidence = word <= VAPRO_CONFIRMED ? (enum vapro_confidence)word : VAPRO_UNCONFIRMED;
	variance.confirmed = variance.confidence == VAPRO_CONFIRMED;
	if (!variance.who) {
		snprintf(who, sizeof(who), "rank%s %s", ranks_text && strpbrk(ranks_text, "-,") ? "s" : "",
			 ranks_text ? ranks_text : "?");
		variance.who = who;
	}
	if (record__ranks(ranks_text, &ranks, &variance.rank_count)) {
		free(ranks);
		return -ENOMEM;
	}
	variance.ranks = ranks;
	count = read_causes(record__item(line, KEY(variance, causes)), causes, culprits);
	variance.causes = causes;
	variance.cause_count = count > 0 ? (uint32_t)count : 0;
	region = count >= 0 ? regions__get(&summary->regions, job_of(line), variance.id) : NULL;
	ret = region ? summary__fill_region(region, &variance, NULL) : -ENOMEM;
	inside = inside_words__of_record(line);
	if (!ret && inside && !regions__set_text(&region->inside, inside))
		ret = -ENOMEM;
	free(inside);
	if (!ret)
		region->user = user_of(line);
	free_causes(causes);
	free(ranks);
	return ret;
}

static void read_factors(const cJSON *list, struct result_factor *factors, uint32_t *count)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		const char *name = record__text(item, KEY(factor, name));

		if (!name || *count == FACTORS_MOST)
			continue;
		factors[(*count)++] = (struct result_factor){
		    .name = name,
		    .stage = (int)record__uint(item, KEY(factor, stage)),
		    .parent = record__text(item, KEY(factor, parent)),
		    .contribution = record__number(item, KEY(factor, contribution_pct_of_level), 0) / 100,
		    .impact_seconds = record__number(item, KEY(factor, impact_seconds), 0),
		    .major = record__true(item, KEY(factor, major))};
	}
}

static void read_interferers(const cJSON *list, struct result_interferer *interferers, uint32_t *count)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		const char *comm = record__text(item, KEY(interferer, comm));
		int relation =
		    record__word(record__text(item, KEY(interferer, relation)), interferers__relation, VAPRO_RELATIONS);
		struct result_interferer *task;

		if (!comm || *count == REGION_INTERFERERS)
			continue;
		task = &interferers[(*count)++];
		*task = (struct result_interferer){
		    .pid = (uint32_t)record__uint(item, KEY(interferer, pid)),
		    .relation = relation < VAPRO_RELATIONS ? (enum vapro_relation)relation : VAPRO_FOREIGN,
		    .rank = (int32_t)record__number(item, KEY(interferer, rank), -1),
		    .job = record__text(item, KEY(interferer, job)),
		    .seconds = record__number(item, KEY(interferer, seconds), 0)};
		snprintf(task->comm, sizeof(task->comm), "%s", comm);
	}
}

static uint32_t read_shared(const cJSON *list, struct result_shared *shared)
{
	const cJSON *item;
	uint32_t count = 0;

	cJSON_ArrayForEach(item, list)
	{
		const char *fact = record__text(item, KEY(shared_fact, fact)),
			   *value = record__text(item, KEY(shared_fact, value));

		if (fact && value && count < WHERE_FACTS)
			shared[count++] = (struct result_shared){
			    .fact = fact, .value = value, .host = record__text(item, KEY(shared_fact, host))};
	}
	return count;
}

static int add_diagnosis(struct summary *summary, const cJSON *line, const char **why)
{
	const cJSON *where = record__item(line, KEY(diagnosis, where)), *item;
	struct result_interferer interferers[REGION_INTERFERERS];
	struct result_factor factors[FACTORS_MOST];
	struct result_shared shared[WHERE_FACTS];
	const char *hosts[HOSTS_MOST], *culprit = record__text(line, KEY(diagnosis, culprit));
	struct result_diagnosis diagnosis = {.stage = 1,
					     .factors = factors,
					     .interferers = interferers,
					     .shared = shared,
					     .hosts = hosts,
					     .cause = record__text(line, KEY(diagnosis, cause)),
					     .advice = record__text(line, KEY(diagnosis, advice)),
					     .verdict = record__text(line, KEY(diagnosis, verdict))};
	struct region *region;

	*why = "a diagnosis without its variance";
	if (record__item(line, KEY(diagnosis, region)))
		return 0; /* a region chosen by hand is no finding */
	if (!record__uint(line, KEY(diagnosis, variance)))
		return -EINVAL;
	read_factors(record__item(line, KEY(diagnosis, factors)), factors, &diagnosis.factor_count);
	read_interferers(record__item(line, KEY(diagnosis, interferers)), interferers, &diagnosis.interferer_count);
	diagnosis.shared_count = read_shared(record__item(where, KEY(place, shared)), shared);
	cJSON_ArrayForEach(item, record__item(where, KEY(place, hosts)))
	{
		if (cJSON_IsString(item) && diagnosis.host_count < HOSTS_MOST)
			hosts[diagnosis.host_count++] = item->valuestring;
	}
	for (uint32_t i = 0; culprit && !diagnosis.culprit && i < diagnosis.interferer_count; i++) {
		if (!strcmp(interferers[i].comm, culprit))
			diagnosis.culprit = &interferers[i];
	}
	region = regions__get(&summary->regions, job_of(line), region_of(summary, line, KEY(diagnosis, variance)));
	return region ? summary__fill_diagnosis(region, &diagnosis) : -ENOMEM;
}

/* Fills a set of ranks that always takes longer. */
static void read_set(const cJSON *line, struct finding *finding, char *who, size_t who_size, char *place,
		     size_t place_size)
{
	const char *ranks = record__text(line, KEY(imbalance, ranks));
	struct result_shared shared[WHERE_FACTS];

	finding->many = ranks && strpbrk(ranks, "-,");
	snprintf(who, who_size, "rank%s %s", finding->many ? "s" : "", ranks ? ranks : "?");
	verdict__place(shared, read_shared(record__item(line, KEY(imbalance, shared)), shared), finding->many ? 2 : 1,
		       place, place_size);
	finding->who = who;
	finding->place = place;
	finding->certain = record__true(line, KEY(imbalance, certain));
	finding->least = record__number(line, KEY(imbalance, ratio_least), finding->ratio);
	finding->most = record__number(line, KEY(imbalance, ratio_most), finding->ratio);
	finding->slow = record__number(line, KEY(imbalance, ratio_slow), finding->ratio);
	finding->count = record__uint(line, KEY(imbalance, states));
	finding->seconds = record__number(line, KEY(imbalance, lost_seconds), 0);
}

/* Adds rare work, drift or imbalance: records about a state. */
static int add_finding(struct summary *summary, const cJSON *line, enum finding_kind kind, const char **why)
{
	struct vapro_state state = state_of(line);
	char who[256], place[512], *text;
	struct finding finding = {
	    .kind = kind,
	    .state_id = state_id__parse(record__text(line, KEY(state, state_id))),
	    .cluster = record__uint(line, KEY(rare, cluster)),
	    .rank = (int64_t)record__number(line, KEY(rare, rank), -1),
	    .count = record__uint(line, kind == FINDING_RARE ? KEY(rare, fragments) : KEY(drift, windows)),
	    .seconds = record__number(line, KEY(rare, seconds), 0),
	    .ratio = record__number(line, KEY(imbalance, ratio), 1),
	    .share = record__number(line, KEY(imbalance, time_pct_of_job), 0) / 100,
	};
	int ret;

	*why = "neither source nor call-site";
	if (!state.to_symbol && !*state.to)
		return -EINVAL;
	if (kind == FINDING_IMBALANCE)
		read_set(line, &finding, who, sizeof(who), place, sizeof(place));
	text = summary__describe(&state, NULL);
	ret = text ? findings__add(&summary->findings, &finding, job_of(line), text) : -ENOMEM;
	free(text);
	return ret;
}

static int add_noise(struct summary *summary, const cJSON *line, const char **why)
{
	const char *host = record__text(line, KEY(head, host)), *ranks = record__text(line, KEY(noise, ranks));
	char who[256], task[NOISE_TASK_SIZE];
	struct finding finding = {
	    .kind = FINDING_NOISE,
	    /* each host's vaprod counts its own */
	    .cluster = table__hash(regions__job_number(host), record__uint(line, KEY(noise, id))),
	    .who = who,
	    .many = ranks && strpbrk(ranks, "-,"),
	    .count = record__uint(line, KEY(noise, n)),
	    .seconds = record__number(line, KEY(noise, lost_seconds), 0),
	    .share = record__number(line, KEY(noise, time_pct_of_ranks), 0) / 100,
	    .waited_s = record__number(line, KEY(noise, waited_seconds), 0),
	    .longest_s = record__number(line, KEY(noise, longest_us), 0) / 1e6,
	    .period_s = record__number(line, KEY(noise, period_ms), 0) / 1e3,
	};
	int source = record__word(record__text(line, KEY(noise, source)), vapro_noise_source_name, VAPRO_NOISE_SOURCES);
	int together =
	    record__word(record__text(line, KEY(noise, together)), vapro_noise_together_name, VAPRO_NOISE_TOGETHER);

	finding.source = source < VAPRO_NOISE_SOURCES ? (enum vapro_noise_source)source : VAPRO_NOISE_SCHEDULER;
	finding.together = together < VAPRO_NOISE_TOGETHER ? (enum vapro_noise_together)together : VAPRO_NOISE_APART;
	*why = "noise without number of slices or ranks";
	if (!finding.count || !ranks)
		return -EINVAL;
	if (*ranks == '?')
		snprintf(who, sizeof(who), "%s", finding.many ? "these processes" : "this process");
	else
		snprintf(who, sizeof(who), "rank%s %s", finding.many ? "s" : "", ranks);
	noise_text__task(record__text(line, KEY(noise, what)), record__text(line, KEY(noise, relation)),
			 record__uint(line, KEY(noise, pid)), task);
	return findings__add(&summary->findings, &finding, job_of(line), task);
}

static int add_hang(struct summary *summary, const cJSON *line, const char **why)
{
	const char *text = record__text(line, KEY(hang, text));
	int severity = record__word(record__text(line, KEY(hang, severity)), json_severity_name, VAPRO_SEVERITIES);
	struct result_hang hang = {.id = region_of(summary, line, KEY(hang, id)),
				   .alarm = record__true(line, KEY(hang, alarm)),
				   .severity =
				       severity < VAPRO_SEVERITIES ? (enum vapro_severity)severity : VAPRO_INFO};

	*why = "a hang without id or text";
	return hang.id && text ? summary__add_hang(summary, job_of(line), &hang, text) : -EINVAL;
}

static int add_variability(struct summary *summary, const cJSON *line)
{
	cJSON *copy;

	if (summary->variability_count >= VARIABILITY_RECORDS)
		return 0;
	if (grow(&summary->variability, &summary->variability_capacity, summary->variability_count + 1,
		 sizeof(*summary->variability)))
		return -ENOMEM;
	copy = cJSON_Duplicate(line, true);
	if (!copy)
		return -ENOMEM;
	summary->variability[summary->variability_count++] = copy;
	qsort(summary->variability, summary->variability_count, sizeof(cJSON *), variability_text__compare);
	return 0;
}

static int add_earlier(struct summary *summary, const cJSON *line)
{
	const char *text = record__text(line, KEY(earlier, text));
	char *copy;

	if (!text || summary->earlier_count >= EARLIER_TEXTS)
		return 0;
	if (grow(&summary->earlier, &summary->earlier_capacity, summary->earlier_count + 1, sizeof(*summary->earlier)))
		return -ENOMEM;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	summary->earlier[summary->earlier_count++] = printable(copy);
	return 0;
}

static int add_profile(struct summary *summary, const cJSON *line)
{
	size_t at = summary->profile_count;
	cJSON *copy;

	if (at >= PROFILE_RECORDS)
		return 0;
	if (grow(&summary->profiles, &summary->profile_capacity, at + 1, sizeof(*summary->profiles)))
		return -ENOMEM;
	copy = cJSON_Duplicate(line, true);
	if (!copy)
		return -ENOMEM;
	/* records of a job come in the order of ranks */
	for (; at && profile_text__compare(&summary->profiles[at - 1], &copy) > 0; at--)
		summary->profiles[at] = summary->profiles[at - 1];
	summary->profiles[at] = copy;
	summary->profile_count++;
	return 0;
}

static int add_process(struct summary *summary, const cJSON *line)
{
	const cJSON *job = record__item(line, KEY(process, job));
	const char *identity = record__text(job, KEY(process_job, identity)),
		   *state = record__text(line, KEY(process, state));
	const struct summary_process process = {
	    .job = identity ? identity : "",
	    .user = user_of(job),
	    .pid = (uint32_t)record__uint(line, KEY(process, pid)),
	    .rank = (int64_t)record__number(line, KEY(process, rank), -1),
	    .exe = record__text(line, KEY(process, exe)),
	    .command = record__text(line, KEY(process, command)),
	    .called = record__text(record__item(job, KEY(process_job, names)), KEY(job_names, name)),
	    .host = record__text(line, KEY(head, host)),
	    .refused = state && !strcmp(state, "refused"),
	    .attached = state && !strcmp(state, "attached"),
	    .reason = record__text(line, KEY(process, reason))};

	return state ? summary__add_process(summary, &process) : 0;
}

/* Adds the processes of a job, from the status of a running vaprod. */
static int add_job_status(struct summary *summary, const cJSON *line)
{
	const cJSON *process;
	int ret = 0;

	cJSON_ArrayForEach(process, record__item(line, KEY(job_status, processes)))
	{
		const struct summary_process seen = {
		    .job = job_of(line),
		    .user = user_of(line),
		    .pid = (uint32_t)record__uint(process, KEY(job_process, pid)),
		    .rank = (int64_t)record__number(process, KEY(job_process, rank), -1),
		    .exe = record__text(process, KEY(job_process, exe)),
		    .called = record__text(record__item(line, KEY(job_status, names)), KEY(job_names, name)),
		    .host = record__text(line, KEY(head, host))};

		if (!ret)
			ret = summary__add_process(summary, &seen);
	}
	return ret;
}

static int add_warning(struct summary *summary, const cJSON *line)
{
	const char *host = record__text(line, KEY(head, host));

	return summary__add_warning(summary, record__text(line, KEY(warning, code)),
				    (uint32_t)record__uint(line, KEY(warning, pid)), host ? host : "",
				    record__text(line, KEY(warning, text)));
}

static void read_tunables(struct summary *summary, const cJSON *tunables)
{
	struct vapro_config *config = &summary->config;

	config->critical_share = record__member_number(tunables, "critical-share", config->critical_share);
	config->warning_share = record__member_number(tunables, "warning-share", config->warning_share);
	config->min_lost_s = record__member_number(tunables, "min-lost", config->min_lost_s);
}

int summary__add_record(struct summary *summary, const cJSON *line, const char **why)
{
	switch (record__type(line)) {
	case RECORD_OBJECT_window:
		return add_window(summary, line, why);
	case RECORD_OBJECT_variance:
		return add_variance(summary, line, why);
	case RECORD_OBJECT_diagnosis:
		return add_diagnosis(summary, line, why);
	case RECORD_OBJECT_rare:
		return add_finding(summary, line, FINDING_RARE, why);
	case RECORD_OBJECT_drift:
		return add_finding(summary, line, FINDING_DRIFT, why);
	case RECORD_OBJECT_imbalance:
		return add_finding(summary, line, FINDING_IMBALANCE, why);
	case RECORD_OBJECT_noise:
		return add_noise(summary, line, why);
	case RECORD_OBJECT_hang:
		return add_hang(summary, line, why);
	case RECORD_OBJECT_variability:
		return add_variability(summary, line);
	case RECORD_OBJECT_earlier:
		return add_earlier(summary, line);
	case RECORD_OBJECT_rank_profile:
		return add_profile(summary, line);
	case RECORD_OBJECT_process:
		return add_process(summary, line);
	case RECORD_OBJECT_warning:
		return add_warning(summary, line);
	case RECORD_OBJECT_job_status:
		return add_job_status(summary, line);
	case RECORD_OBJECT_hello:
		read_tunables(summary, record__item(line, KEY(hello, tunables)));
		return 0;
	default:
		return 0;
	}
}

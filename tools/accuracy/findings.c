/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "findings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct judge {
	struct stream_sink sink;
	struct analysis *analysis;
	struct findings *findings;
};

static double seconds(uint64_t utc_ns)
{
	return ((double)utc_ns - (double)JOB_BEGIN_NS) / 1e9;
}

static uint64_t utc(uint64_t mono_ns)
{
	return mono_ns - JOB_MONO_NS + JOB_BEGIN_NS;
}

static int grow_by_one(void **items, size_t *capacity, size_t count, size_t size)
{
	size_t fresh = *capacity ? 2 * *capacity : 16;
	void *larger;

	if (count < *capacity)
		return 0;
	larger = realloc(*items, fresh * size);
	if (!larger)
		return -ENOMEM;
	*items = larger;
	*capacity = fresh;
	return 0;
}

static int copy_ranks(int32_t **to, uint32_t *to_count, const int32_t *ranks, uint32_t count)
{
	int32_t *copy = realloc(*to, (count ? count : 1) * sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (count)
		memcpy(copy, ranks, count * sizeof(*copy));
	*to = copy;
	*to_count = count;
	return 0;
}

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static void copy_place(char *to, size_t size, const struct result_shared *shared, uint32_t count)
{
	size_t used = 0;

	*to = '\0';
	for (uint32_t i = 0; i < count && used < size; i++)
		used +=
		    (size_t)snprintf(to + used, size - used, "%s%s %s", i ? ", " : "", shared[i].fact, shared[i].value);
}

static const char *major_cause(const struct result_diagnosis *diagnosis)
{
	const struct result_factor *best = NULL;

	for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
		const struct result_factor *at = &diagnosis->factors[i];

		if (at->major && (!best || at->stage > best->stage ||
				  (at->stage == best->stage && at->impact_seconds > best->impact_seconds)))
			best = at;
	}
	return best ? best->name : NULL;
}

static struct found_variance *variance_of(struct findings *findings, uint64_t id)
{
	void *items = findings->variances;
	struct found_variance *found;

	for (size_t i = findings->variance_count; i-- > 0;) {
		if (findings->variances[i].id == id)
			return &findings->variances[i];
	}
	if (grow_by_one(&items, &findings->variance_capacity, findings->variance_count, sizeof(*found)))
		return NULL;
	findings->variances = items;
	found = &findings->variances[findings->variance_count++];
	*found = (struct found_variance){.id = id, .raised = NAN, .dropped = NAN};
	return found;
}

static int read_variance(struct findings *findings, const struct result_variance *result, double window_end)
{
	struct found_variance *found = variance_of(findings, result->id);
	bool counts;

	if (!found || copy_ranks(&found->ranks, &found->rank_count, result->ranks, result->rank_count) ||
	    copy_ranks(&found->last, &found->last_count, result->entered_last.ranks, result->entered_last.rank_count))
		return -ENOMEM;
	found->effect_of = result->effect_of;
	found->class = result->class;
	memcpy(found->also, result->also, sizeof(found->also));
	memcpy(found->lost_by_class, result->lost_by_class, sizeof(found->lost_by_class));
	found->begin = seconds(result->begin_ns);
	found->end = seconds(result->end_ns);
	found->lost = result->lost_seconds;
	found->caused = result->caused_seconds;
	found->share = result->share;
	found->performance = result->performance;
	found->ratio_slow = result->ratio_slow;
	found->severity = result->severity;
	found->confidence = result->confidence;
	found->state = result->state;
	found->slow_path = result->slow_path;
	found->revisions++;
	copy_text(found->cause, sizeof(found->cause), major_cause(&result->diagnosis));
	copy_place(found->place, sizeof(found->place), result->diagnosis.shared, result->diagnosis.shared_count);
	copy_text(found->evidence, sizeof(found->evidence), result->evidence);
	copy_text(found->verdict, sizeof(found->verdict), result->diagnosis.verdict);
	counts = result->alarm && !result->effect_of && result->severity >= VAPRO_WARNING;
	if (counts && isnan(found->raised))
		found->raised = window_end;
	if (counts)
		found->dropped = NAN;
	else if (found->alarm)
		found->dropped = window_end;
	found->alarm = counts;
	return 0;
}

static int read_imbalance(struct findings *findings, const struct result_imbalance *result, double window_end)
{
	struct found_imbalance *found = NULL;
	void *items = findings->imbalances;

	for (size_t i = 0; i < findings->imbalance_count && !found; i++) {
		struct found_imbalance *at = &findings->imbalances[i];

		if (at->class == result->state->class && at->rank_count == result->rank_count &&
		    (!at->rank_count || !memcmp(at->ranks, result->ranks, at->rank_count * sizeof(*at->ranks))))
			found = at;
	}
	if (!found) {
		if (grow_by_one(&items, &findings->imbalance_capacity, findings->imbalance_count, sizeof(*found)))
			return -ENOMEM;
		findings->imbalances = items;
		found = &findings->imbalances[findings->imbalance_count++];
		*found = (struct found_imbalance){.class = result->state->class, .first = window_end};
		if (copy_ranks(&found->ranks, &found->rank_count, result->ranks, result->rank_count))
			return -ENOMEM;
	}
	found->ratio = result->ratio;
	found->ratio_slow = result->ratio_slow;
	found->lost += result->lost_seconds;
	copy_place(found->place, sizeof(found->place), result->shared, result->shared_count);
	found->certain = result->certain;
	found->variance = result->variance;
	found->last = window_end;
	found->windows++;
	return 0;
}

static void read_clocks(struct findings *findings, const struct job_result *result)
{
	findings->clock_count = 0;
	for (uint32_t i = 0; i < result->clock_count && i < FOUND_CLOCKS; i++) {
		struct found_clock *clock = &findings->clocks[findings->clock_count++];

		*clock = (struct found_clock){.known = result->clocks[i].known,
					      .offset = result->clocks[i].offset_s,
					      .spread = result->clocks[i].spread_s,
					      .corrected = result->clocks[i].corrected_s};
		snprintf(clock->host, sizeof(clock->host), "%s", result->clocks[i].host);
	}
}

static void read_variability(struct findings *findings, const struct result_variability *result)
{
	struct found_variability *found;

	if (findings->variability_count == FOUND_VARIABILITY)
		return;
	found = &findings->variability[findings->variability_count++];
	*found = (struct found_variability){.class = result->state->class,
					    .work = result->work,
					    .figures = result->figures,
					    .seconds = result->seconds,
					    .call_p50_s = result->call_p50_s,
					    .call_p95_s = result->call_p95_s,
					    .call_above_s = result->call_above_s,
					    .temporal_rank = result->temporal_rank};
	copy_text(found->labels, sizeof(found->labels), result->state->labels);
	copy_place(found->place, sizeof(found->place), result->shared, result->shared_count);
	findings__ranks(result->slow_ranks, result->slow_count, found->ranks, sizeof(found->ranks));
}

static void read_noise(struct findings *findings, const struct result_noise *result)
{
	struct found_noise *found = NULL;

	for (uint32_t i = 0; i < findings->noise_count && !found; i++)
		found = findings->noise[i].id == result->id ? &findings->noise[i] : NULL;
	if (!found && findings->noise_count == FOUND_NOISE)
		return;
	found = found ? found : &findings->noise[findings->noise_count++];
	*found = (struct found_noise){.id = result->id,
				      .source = result->source,
				      .class = result->class,
				      .n = (double)result->slices,
				      .lost = result->lost_s,
				      .period = result->period_s,
				      .share = result->share,
				      .regularity = result->regularity,
				      .together = result->together};
	copy_text(found->what, sizeof(found->what), result->what);
	findings__ranks(result->ranks, result->rank_count, found->ranks, sizeof(found->ranks));
}

int findings__read(struct findings *findings, const struct job_result *result)
{
	double window_end = seconds(result->end_ns);
	double rank_seconds = (double)(result->end_ns - result->begin_ns) * 1e-9 * result->rank_count;
	int error = 0;

	findings->windows++;
	read_clocks(findings, result);
	findings->rank_seconds += rank_seconds;
	findings->covered_seconds += rank_seconds * result->coverage_total + result->covered_before_s;
	findings->small_count += result->small_count;
	findings->small_seconds += result->small_seconds;
	for (uint32_t i = 0; !error && i < result->variance_count; i++)
		error = read_variance(findings, &result->variances[i], window_end);
	for (uint32_t i = 0; !error && i < result->imbalance_count; i++)
		error = read_imbalance(findings, &result->imbalances[i], window_end);
	for (uint32_t i = 0; i < result->drift_count; i++) {
		struct found_drift *drift = &findings->drift;

		if (!drift->windows)
			drift->first = window_end;
		drift->last = window_end;
		drift->ratio = fmax(drift->ratio, result->drifts[i].ratio);
		drift->windows++;
	}
	for (uint32_t i = 0; i < result->variability_count; i++)
		read_variability(findings, &result->variability[i]);
	for (uint32_t i = 0; i < result->noise_count; i++)
		read_noise(findings, &result->noise[i]);
	return error;
}

static double cpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int end_window(struct judge *judge, const struct stream_window *window)
{
	const struct job_result *results;
	double before = cpu_now();
	uint32_t count;
	int error =
	    analysis__end_window(judge->analysis, window->begin_ns, window->end_ns, window->last, &results, &count);

	judge->findings->window_cpu_max = fmax(judge->findings->window_cpu_max, cpu_now() - before);
	for (uint32_t i = 0; !error && i < count; i++)
		error = findings__read(judge->findings, &results[i]);
	return error;
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct judge *judge = (struct judge *)sink;
	struct analysis *analysis = judge->analysis;
	struct vapro_bundle bundle;

	switch (event->type) {
	case STREAM_THREAD:
		return analysis__add_thread(analysis, &event->thread);
	case STREAM_STATE:
		return analysis__add_state(analysis, &event->state);
	case STREAM_PLACE:
		return analysis__place(analysis, &event->place);
	case STREAM_SEEN:
		return analysis__thread_seen(analysis, event->seen.thread, utc(event->seen.from_ns),
					     event->seen.to_ns ? utc(event->seen.to_ns) : 0);
	case STREAM_BUNDLE:
		bundle = event->bundle;
		bundle.start_ns = utc(bundle.start_ns);
		bundle.end_ns = utc(bundle.end_ns);
		return analysis__add_bundle(analysis, &bundle);
	case STREAM_INTERFERENCE:
		return analysis__add_interference(analysis, &event->interference);
	case STREAM_HOST_CLOCK:
		return analysis__add_host_clock(analysis, &event->host_clock);
	case STREAM_FACTS:
		return analysis__add_facts(analysis, &event->facts);
	case STREAM_WINDOW:
		return end_window(judge, &event->window);
	default:
		return 0;
	}
}

static int close_judge(struct stream_sink *sink)
{
	struct judge *judge = (struct judge *)sink;

	analysis__free(judge->analysis);
	free(judge);
	return 0;
}

struct stream_sink *findings__sink(const struct vapro_config *config, enum vapro_workload_source source,
				   struct findings *findings)
{
	struct judge *judge = calloc(1, sizeof(*judge));

	if (!judge)
		return NULL;
	*findings = (struct findings){0};
	judge->sink = (struct stream_sink){.put = put, .close = close_judge};
	judge->findings = findings;
	judge->analysis = analysis__new(config, source);
	if (!judge->analysis) {
		free(judge);
		return NULL;
	}
	return &judge->sink;
}

void findings__free(struct findings *findings)
{
	for (size_t i = 0; i < findings->variance_count; i++) {
		free(findings->variances[i].ranks);
		free(findings->variances[i].last);
	}
	for (size_t i = 0; i < findings->imbalance_count; i++)
		free(findings->imbalances[i].ranks);
	free(findings->variances);
	free(findings->imbalances);
	*findings = (struct findings){0};
}

void findings__ranks(const int32_t *ranks, uint32_t count, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0, last; i < count; i = last + 1) {
		const char *comma = used ? "," : "";
		char piece[32];

		for (last = i; last + 1 < count && ranks[last + 1] == ranks[last] + 1;)
			last++;
		if (last > i)
			snprintf(piece, sizeof(piece), "%s%d-%d", comma, ranks[i], ranks[last]);
		else
			snprintf(piece, sizeof(piece), "%s%d", comma, ranks[i]);
		if (used + strlen(piece) + 4 > size) {
			snprintf(text + used, size - used, "...");
			return;
		}
		used += (size_t)snprintf(text + used, size - used, "%s", piece);
	}
}

void findings__print(const struct findings *findings, FILE *out)
{
	static const char *const severities[] = {"info", "warning", "critical"};
	static const char *const confidences[] = {"unconfirmed", "place", "confirmed"};
	char ranks[48];

	for (size_t i = 0; i < findings->variance_count; i++) {
		const struct found_variance *at = &findings->variances[i];

		findings__ranks(at->ranks, at->rank_count, ranks, sizeof(ranks));
		fprintf(out, "    %-8s %-13s %8.3f..%8.3f lost %8.3f ranks %s [%s %s%s] %s: %s",
			at->alarm ? "ALARM" : "variance", vapro_class_name[at->class], at->begin, at->end, at->lost,
			ranks, severities[at->severity], confidences[at->confidence], at->slow_path ? " slow path" : "",
			at->cause, at->evidence);
		if (at->effect_of)
			fprintf(out, " (effect of %llu)", (unsigned long long)at->effect_of);
		if (!isnan(at->dropped))
			fprintf(out, " (alarm withdrawn at %.1f)", at->dropped);
		fprintf(out, " #%llu\n", (unsigned long long)at->id);
	}
	for (uint32_t i = 0; i < findings->clock_count; i++) {
		const struct found_clock *clock = &findings->clocks[i];

		if (clock->known && clock->corrected != 0)
			fprintf(out, "    clock of %s %.1f ms ahead, +- %.1f ms\n", clock->host, 1e3 * clock->offset,
				1e3 * clock->spread);
	}
	for (size_t i = 0; i < findings->imbalance_count; i++) {
		const struct found_imbalance *at = &findings->imbalances[i];

		findings__ranks(at->ranks, at->rank_count, ranks, sizeof(ranks));
		fprintf(out, "    imbalance %-12s %5.1f..%5.1f lost %8.3f ranks %s ratio %.3f%s in %u windows\n",
			vapro_class_name[at->class], at->first, at->last, at->lost, ranks, at->ratio,
			at->certain ? " certain" : "", at->windows);
	}
	for (uint32_t i = 0; i < findings->noise_count; i++) {
		const struct found_noise *at = &findings->noise[i];

		fprintf(out, "    noise %s: %s, ranks %s, %.0f of %.3f ms, each %.3f ms, gaps %.2f, %s, lost %.3f\n",
			vapro_noise_source_name[at->source], at->what, at->ranks, at->n, 1e3 * at->lost / at->n,
			1e3 * at->period, at->regularity, vapro_noise_together_name[at->together], at->lost);
	}
	if (findings->drift.windows)
		fprintf(out, "    drift %5.1f..%5.1f ratio %.3f in %u records\n", findings->drift.first,
			findings->drift.last, findings->drift.ratio, findings->drift.windows);
	if (findings->small_count)
		fprintf(out, "    small: %llu, %.3f s\n", (unsigned long long)findings->small_count,
			findings->small_seconds);
}

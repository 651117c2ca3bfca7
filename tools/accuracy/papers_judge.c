/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "papers.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "score.h"

#define ALL_RANKS 0.999
#define LEAST_OVERLAP 0.5
#define FROM_START_S 0.5
#define RAISED_WITHIN_S 15 /* of lasting faults */
#define LASTS_S 60
#define STRIDE_S 11 /* of windows, and a little */

__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + used, PAPER_TEXT - used, format, arguments);
	va_end(arguments);
}

/* The finding of one fault; NULLs where there is none. */
struct match {
	const struct found_variance *variance;
	const struct found_imbalance *imbalance;
};

static bool all_ranks(const struct truth *truth, const int32_t *ranks, uint32_t count)
{
	return score__ranks(truth->ranks, truth->rank_count, ranks, count) >= ALL_RANKS;
}

static bool is_finding(const struct truth *truth, const struct found_variance *at)
{
	bool of_class = at->class == truth->class || at->also[truth->class];
	bool counts = at->alarm ||
		      (truth->expected == FINDING_PLACE && at->confidence >= VAPRO_PLACE && !at->effect_of) ||
		      (truth->expected == FINDING_REPORTED && !at->effect_of && !strstr(at->evidence, "late peers"));

	return counts && of_class && score__ranks(truth->ranks, truth->rank_count, at->ranks, at->rank_count) >= 0.5 &&
	       score__times(truth->begin, truth->end, at->begin, at->end) >= 0.3;
}

static struct match match_of(const struct truth *truth, const struct findings *findings)
{
	struct match match = {NULL, NULL};
	double best = 0;

	for (size_t i = 0; i < findings->variance_count; i++) {
		const struct found_variance *at = &findings->variances[i];
		double value = score__ranks(truth->ranks, truth->rank_count, at->ranks, at->rank_count) *
			       score__times(truth->begin, truth->end, at->begin, at->end);

		if (is_finding(truth, at) && value > best) {
			best = value;
			match.variance = at;
		}
	}
	best = 0;
	for (size_t i = 0; i < findings->imbalance_count; i++) {
		const struct found_imbalance *at = &findings->imbalances[i];
		double value = score__ranks(truth->ranks, truth->rank_count, at->ranks, at->rank_count);

		if (at->class == truth->class && at->last >= truth->begin && value >= 0.5 && value >= best) {
			best = value;
			match.imbalance = at;
		}
	}
	return match;
}

/* All parts between ';' occur, of each one of the words between '|'. Names the
 * first that is missing. */
static bool has_words(const char *verdict, const char *wanted, char *missing, size_t size)
{
	while (wanted && *wanted) {
		size_t part = strcspn(wanted, ";");
		bool found = false;

		for (size_t at = 0; at < part && !found;) {
			size_t length = strcspn(wanted + at, "|;");
			char word[64];

			snprintf(word, sizeof(word), "%.*s", (int)length, wanted + at);
			found = strstr(verdict, word);
			at += length + 1;
		}
		if (!found) {
			snprintf(missing, size, "%.*s", (int)part, wanted);
			return false;
		}
		wanted += part + (wanted[part] == ';');
	}
	return true;
}

/* "... take 3.0 times as long": 3.0; NAN where it does not say so. */
static double ratio_in(const char *verdict)
{
	const char *at = strstr(verdict, " times as long");

	while (at && at > verdict && strchr("0123456789.", at[-1]))
		at--;
	return at && strchr("0123456789", *at) ? strtod(at, NULL) : NAN;
}

static bool ratio_is(const struct paper *paper, double found)
{
	return fabs(found / paper->ratio - 1) <= paper->within ||
	       (paper->also_ratio > 0 && fabs(found / paper->also_ratio - 1) <= paper->within);
}

/* The ratio in the verdict, else the one of the set or the region. */
static void check_ratio(const struct paper *paper, const struct match *match, struct paper_result *result)
{
	double said = NAN, measured = NAN, set = NAN;
	bool good;

	if (match->variance) {
		said = ratio_in(match->variance->verdict);
		measured = match->variance->performance > 0 ? 1 / match->variance->performance : NAN;
	}
	if (match->imbalance)
		set = match->imbalance->ratio;
	add(result->found, " x %.3f", !isnan(said) ? said : !isnan(set) ? set : measured);
	good = isnan(said) ? ratio_is(paper, set) || ratio_is(paper, measured) : ratio_is(paper, said);
	if (paper->ratio > 0 && !good)
		add(result->missing, "; ratio %.3g", paper->ratio);
}

/* Whether the ranks that are said to have entered last are those of a fault. */
static bool names_late(const struct truths *truths, const struct found_variance *at)
{
	for (size_t k = 0; k < truths->count; k++) {
		if (score__ranks(truths->items[k].ranks, truths->items[k].rank_count, at->last, at->last_count) >=
		    ALL_RANKS)
			return true;
	}
	return false;
}

/*
 * Waiting for the ranks of an alarm is its effect, not a separate finding. Without counts the late ranks' work may not
 * be known: then they are named.
 */
static void check_waiting(const struct truths *truths, enum vapro_workload_source source,
			  const struct findings *findings, struct paper_result *result)
{
	unsigned unexplained = 0;

	for (size_t i = 0; i < findings->variance_count; i++) {
		const struct found_variance *at = &findings->variances[i];
		bool meets = false;

		for (size_t k = 0; k < truths->count; k++)
			meets |= at->begin < truths->items[k].end && at->end > truths->items[k].begin;
		unexplained += meets && at->class == VAPRO_COMMUNICATION && !at->effect_of &&
			       !(source == VAPRO_BY_ARGUMENTS && names_late(truths, at));
	}
	if (unexplained)
		add(result->missing, "; %u of waiting that are no effect", unexplained);
}

static void check_alarm(const struct paper *paper, enum vapro_workload_source source, const struct truth *truth,
			const struct found_variance *at, struct paper_result *result)
{
	char missing[64];

	if (!all_ranks(truth, at->ranks, at->rank_count))
		add(result->missing, "; ranks");
	if (score__times(truth->first, truth->last, at->begin, at->end) < LEAST_OVERLAP &&
	    score__times(truth->begin, truth->end, at->begin, at->end) < LEAST_OVERLAP)
		add(result->missing, "; time");
	if (paper->place && !strstr(at->place, paper->place) && !strstr(at->verdict, paper->place))
		add(result->missing, "; %s", paper->place);
	if (at->alarm && !has_words(at->verdict, paper->verdict[source], missing, sizeof(missing)))
		add(result->missing, "; \"%s\" in the verdict", missing);
	if (paper->lost_within > 0 && !(fabs(at->lost / truth->lost[truth->class] - 1) <= paper->lost_within))
		add(result->missing, "; loss %+.0f %%", 100 * (at->lost / truth->lost[truth->class] - 1));
	if (paper->raised_s > 0 && at->alarm && !(at->raised - truth->begin <= paper->raised_s))
		add(result->missing, "; raised after %.0f s", at->raised - truth->begin);
	if (truth->end - truth->begin > LASTS_S && at->alarm && truth->begin > FROM_START_S) {
		if (!(at->raised - truth->begin <= RAISED_WITHIN_S))
			add(result->missing, "; raised after %.0f s", at->raised - truth->begin);
		if (at->end < truth->end - 1)
			add(result->missing, "; ends %.0f s early", truth->end - at->end);
	}
}

static void judge_fault(const struct paper *paper, enum vapro_workload_source source, const struct truth *truth,
			const struct findings *findings, struct paper_result *result)
{
	struct match match = match_of(truth, findings);
	char ranks[40];

	if (match.variance) {
		findings__ranks(match.variance->ranks, match.variance->rank_count, ranks, sizeof(ranks));
		add(result->found, "%s%s of ranks %s", *result->found ? "; " : "",
		    match.variance->alarm ? "alarm" : "place", ranks);
		check_alarm(paper, source, truth, match.variance, result);
	} else if (truth->expected == FINDING_PLACE && match.imbalance) {
		findings__ranks(match.imbalance->ranks, match.imbalance->rank_count, ranks, sizeof(ranks));
		add(result->found, "%simbalance of ranks %s", *result->found ? "; " : "", ranks);
		if (!all_ranks(truth, match.imbalance->ranks, match.imbalance->rank_count))
			add(result->missing, "; ranks");
		if (paper->place && !strstr(match.imbalance->place, paper->place))
			add(result->missing, "; %s", paper->place);
		if (match.imbalance->last < truth->end - STRIDE_S)
			add(result->missing, "; ends %.0f s early", truth->end - match.imbalance->last);
	} else {
		add(result->missing, "; no %s",
		    truth->expected == FINDING_PLACE	  ? "place, no imbalance"
		    : truth->expected == FINDING_REPORTED ? "record but of late peers"
							  : "alarm");
		return;
	}
	check_ratio(paper, &match, result);
}

/* The stalls are one component, with their number, length and period, and the ranks of the fault. */
static void check_stalls(const struct paper *paper, const struct truth *truth, const struct findings *findings,
			 struct paper_result *result)
{
	const struct found_noise *found = NULL;
	double length, period = (truth->end - truth->begin) * truth->rank_count / truth->hits;
	char ranks[64];
	unsigned count = 0;

	for (uint32_t i = 0; i < findings->noise_count; i++) {
		if (findings->noise[i].source != VAPRO_NOISE_FRAGMENTS)
			continue;
		found = found && found->lost > findings->noise[i].lost ? found : &findings->noise[i];
		count++;
	}
	if (count != 1)
		add(result->missing, "; %u noise components", count);
	if (!found)
		return;
	length = found->lost / found->n;
	add(result->found, "; %.0f of %.0f stalls of %.2f ms each %.1f ms", found->n, truth->hits, 1e3 * length,
	    1e3 * found->period);
	findings__ranks(truth->ranks, truth->rank_count, ranks, sizeof(ranks));
	if (!(fabs(length / paper->stalls_s - 1) <= 0.02))
		add(result->missing, "; length %.2f ms", 1e3 * length);
	if (!(fabs(found->n / truth->hits - 1) <= 0.01))
		add(result->missing, "; %.0f stalls of %.0f", found->n, truth->hits);
	if (!(fabs(found->period / period - 1) <= 0.03))
		add(result->missing, "; period %.2f ms of %.2f", 1e3 * found->period, 1e3 * period);
	if (strcmp(found->ranks, ranks))
		add(result->missing, "; stalls of ranks %s", found->ranks);
}

void papers__judge(const struct paper *paper, enum vapro_workload_source source, const struct truths *truths,
		   const struct findings *findings, struct paper_result *result)
{
	unsigned alarms = 0, wanted = 0, demanded = 0, reported = 0, most;

	*result = (struct paper_result){.judged = true};
	for (size_t i = 0; i < findings->variance_count; i++)
		alarms += findings->variances[i].alarm;
	for (size_t i = 0; i < truths->count; i++) {
		wanted += truths->items[i].expected == FINDING_ALARM;
		demanded += truths->items[i].expected != FINDING_NONE;
		reported += truths->items[i].expected == FINDING_REPORTED;
	}
	snprintf(result->wanted, sizeof(result->wanted), "%s",
		 wanted > 1	  ? "an alarm each"
		 : wanted	  ? "an alarm"
		 : reported	  ? "a record"
		 : demanded	  ? "place or imbalance"
		 : !truths->count ? "no alarm"
				  : "");
	for (size_t i = 0; i < truths->count; i++) {
		if (truths->items[i].expected != FINDING_NONE)
			judge_fault(paper, source, &truths->items[i], findings, result);
		if (paper->stalls_s > 0)
			check_stalls(paper, &truths->items[i], findings, result);
	}
	/* what is found by place may be an alarm, too; what demands nothing may alarm
	 */
	most = demanded ? demanded : truths->count ? alarms : 0;
	if (alarms > most)
		add(result->missing, "; %u alarms", alarms);
	if (paper->coverage > 0 && source == VAPRO_BY_INSTRUCTIONS && findings__coverage(findings) < paper->coverage)
		add(result->missing, "; coverage %.0f %%", 100 * findings__coverage(findings));
	if (paper->waiting)
		check_waiting(truths, source, findings, result);
	if (!*result->found)
		add(result->found, "%u alarms, %zu variances", alarms, findings->variance_count);
	result->judged = demanded || !truths->count;
	result->good = !*result->missing;
}

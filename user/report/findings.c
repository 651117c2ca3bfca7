/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/duration.h"
#include "base/wrap.h"
#include "report/findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/regions.h"

#define PRINTED_MAX 5 /* findings printed of a kind */
#define INDENT 12
#define WAITED_LEAST 0.5 /* of the time of stalls, from which the waiting for them is said */

/*
 * Returns whether two findings are about the same. A rare cluster belongs to all ranks, a rare state to one rank. A
 * set of ranks stays the same where another state loses most now, and a state has one set.
 */
static bool same(const struct finding *a, const struct finding *b, const char *job, const char *state)
{
	if (a->kind != b->kind || strcmp(a->job, job))
		return false;
	if (a->kind == FINDING_NOISE)
		return a->cluster == b->cluster;
	if (a->kind == FINDING_IMBALANCE && a->who && b->who && !strcmp(a->who, b->who))
		return true;
	return a->cluster == b->cluster && !strcmp(a->state, state);
}

static void free_texts(struct finding *finding)
{
	free(finding->job);
	free(finding->state);
	free(finding->who);
	free(finding->place);
}

int findings__add(struct findings *findings, const struct finding *finding, const char *job, const char *state)
{
	struct finding *own = NULL, copy = *finding;

	copy.job = copy.state = copy.who = copy.place = NULL;
	if (!regions__set_text(&copy.job, job) || !regions__set_text(&copy.state, state) ||
	    !regions__set_text(&copy.who, finding->who) || !regions__set_text(&copy.place, finding->place))
		goto no_memory;
	for (size_t i = 0; i < findings->count && !own; i++) {
		if (same(&findings->items[i], &copy, copy.job, copy.state))
			own = &findings->items[i];
	}
	if (!own) {
		if (grow(&findings->items, &findings->capacity, findings->count + 1, sizeof(*findings->items)))
			goto no_memory;
		own = &findings->items[findings->count++];
		*own = (struct finding){0};
	}
	/* each window has its own loss */
	if (copy.kind == FINDING_IMBALANCE)
		copy.seconds += own->seconds;
	free_texts(own);
	*own = copy;
	return 0;
no_memory:
	free_texts(&copy);
	return -ENOMEM;
}

static double weight(const struct finding *finding)
{
	return finding->kind == FINDING_RARE	? finding->seconds
	       : finding->kind == FINDING_DRIFT ? finding->ratio
						: finding->share;
}

static int compare(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int order;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (weight(x) != weight(y))
		return weight(x) > weight(y) ? -1 : 1;
	order = strcmp(x->state, y->state);
	return order ? order : (x->cluster > y->cluster) - (x->cluster < y->cluster);
}

/*
 * Writes the range of a ratio that differs between states: such a set hardly has more of all work. If only some states
 * are slow, their ratio shows the fault, and the ratio over all states the cost.
 */
static void write_imbalance(const struct finding *finding, char *text, size_t size)
{
	bool some = finding->slow - finding->ratio >= 0.015;
	char range[80] = "", lost[40], cost[64] = "";

	if (some)
		snprintf(range, sizeof(range), ", in %llu state%s (%.0f %% over all)",
			 (unsigned long long)finding->count, finding->count == 1 ? "" : "s",
			 100 * (finding->ratio - 1));
	else if (finding->count > 1 && finding->most - finding->least >= 0.015)
		snprintf(range, sizeof(range), " (%.0f to %.0f %% in %llu states)", 100 * (finding->least - 1),
			 100 * (finding->most - 1), (unsigned long long)finding->count);
	if (finding->seconds > 0)
		snprintf(cost, sizeof(cost), ", %s lost", duration__text(finding->seconds, lost, sizeof(lost)));
	snprintf(text, size, "%s%s %s always %.0f %% slower than the others%s%s, most in %s: %s",
		 finding->who ? finding->who : "?", finding->place ? finding->place : "", finding->many ? "are" : "is",
		 100 * ((some ? finding->slow : finding->ratio) - 1), range, cost, finding->state,
		 finding->certain ? "slower hardware or system there"
				  : "more work, or a slower core; both look the same without counters");
}

static const char *times(uint64_t count, char *buf, size_t size)
{
	snprintf(buf, size, count == 1 ? "once" : "%llu times", (unsigned long long)count);
	return buf;
}

/* Fragments that take longer, for no reason that the kernel states. */
static void write_stalls(const struct finding *finding, char *text, size_t size)
{
	static const char *const together[VAPRO_NOISE_TOGETHER] = {
	    [VAPRO_NOISE_APART] = "",
	    [VAPRO_NOISE_HOST] = ", at the same moments on most ranks of a host",
	    [VAPRO_NOISE_JOB] = ", at the same moments on most ranks",
	};
	char mean[40], period[40], lost[40], waited[80] = "", seconds[40];

	if (finding->waited_s >= WAITED_LEAST * finding->seconds)
		snprintf(waited, sizeof(waited), ", and others waited %s for it",
			 duration__text(finding->waited_s, seconds, sizeof(seconds)));
	snprintf(text, size,
		 "%s took %s longer %llu times on %s%s: %sabout every %s, %.1f %% of %s time, %s in all%s; the kernel "
		 "states no cause",
		 finding->state, duration__text(finding->seconds / (double)finding->count, mean, sizeof(mean)),
		 (unsigned long long)finding->count, finding->who ? finding->who : "?", together[finding->together],
		 finding->many ? "each rank " : "", duration__text(finding->period_s, period, sizeof(period)),
		 100 * finding->share, finding->many ? "their" : "its",
		 duration__text(finding->seconds, lost, sizeof(lost)), waited);
}

static void write_noise(const struct finding *finding, char *text, size_t size)
{
	const char *who = finding->who ? finding->who : "?", *whose = finding->many ? "their" : "its";
	char mean[40], longest[40], period[40], lost[40];

	duration__text(finding->seconds, lost, sizeof(lost));
	if (finding->count == 1) {
		snprintf(text, size, "%s stalled %s once, for %s: %.1f %% of %s time", finding->state, who, lost,
			 100 * finding->share, whose);
		return;
	}
	duration__text(finding->seconds / (double)finding->count, mean, sizeof(mean));
	duration__text(finding->longest_s, longest, sizeof(longest));
	duration__text(finding->period_s, period, sizeof(period));
	snprintf(text, size,
		 "%s stalled %s %llu times: %s each, at most %s, %son average every %s over the job, %.1f %% of %s "
		 "time, %s in all",
		 finding->state, who, (unsigned long long)finding->count, mean, longest,
		 finding->many ? "each rank " : "", period, 100 * finding->share, whose, lost);
}

char *findings__text(const struct finding *finding, char *text, size_t size)
{
	char took[40], rank[40] = "", often[40];

	if (finding->kind == FINDING_RARE && finding->rank >= 0)
		snprintf(rank, sizeof(rank), ", longest on rank %lld", (long long)finding->rank);
	if (finding->kind == FINDING_NOISE && finding->source == VAPRO_NOISE_FRAGMENTS)
		write_stalls(finding, text, size);
	else if (finding->kind == FINDING_NOISE)
		write_noise(finding, text, size);
	else if (finding->kind == FINDING_RARE)
		snprintf(text, size, "%s: %s %s, %s in all%s: too rare to be judged", finding->state,
			 finding->cluster ? "other work" : "seen", times(finding->count, often, sizeof(often)),
			 duration__text(finding->seconds, took, sizeof(took)), rank);
	else if (finding->kind == FINDING_DRIFT)
		snprintf(text, size, "%s: slower on all ranks together, by %.0f %% over %llu windows", finding->state,
			 100 * (finding->ratio - 1), (unsigned long long)finding->count);
	else
		write_imbalance(finding, text, size);
	return text;
}

const char *findings__kind(enum finding_kind kind)
{
	static const char *const names[FINDING_KINDS] = {[FINDING_NOISE] = "noise",
							 [FINDING_RARE] = "rare",
							 [FINDING_DRIFT] = "drift",
							 [FINDING_IMBALANCE] = "imbalance"};

	return names[kind];
}

void findings__print(struct findings *findings, FILE *out, unsigned width)
{
	size_t printed[FINDING_KINDS] = {0}, all[FINDING_KINDS] = {0};
	char text[1024];

	if (!findings->count)
		return;
	qsort(findings->items, findings->count, sizeof(*findings->items), compare);
	for (size_t i = 0; i < findings->count; i++)
		all[findings->items[i].kind]++;
	putc('\n', out);
	for (size_t i = 0; i < findings->count; i++) {
		enum finding_kind kind = findings->items[i].kind;

		if (printed[kind] < PRINTED_MAX)
			wrap__print(out, printed[kind] ? "" : findings__kind(kind),
				    findings__text(&findings->items[i], text, sizeof(text)), INDENT, width);
		if (++printed[kind] == all[kind] && all[kind] > PRINTED_MAX)
			fprintf(out, "%*sand %zu more\n", INDENT, "", all[kind] - PRINTED_MAX);
	}
}

void findings__free(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		free_texts(&findings->items[i]);
	free(findings->items);
	*findings = (struct findings){0};
}

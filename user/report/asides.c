/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/duration.h"
#include "report/asides.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/regions.h"

#define PRINTED_MAX 5 /* findings printed of a kind */
#define INDENT 12

/*
 * Returns whether two findings are about the same. A rare cluster belongs to all ranks, a rare state to one rank. A
 * set of ranks stays the same where another state loses most now, and a state has one set.
 */
static bool same(const struct aside *a, const struct aside *b, const char *job, const char *state)
{
	if (a->kind != b->kind || strcmp(a->job, job))
		return false;
	if (a->kind == ASIDE_IMBALANCE && a->who && b->who && !strcmp(a->who, b->who))
		return true;
	return a->cluster == b->cluster && (a->kind != ASIDE_RARE || a->cluster || a->rank == b->rank) &&
	       !strcmp(a->state, state);
}

static void free_texts(struct aside *aside)
{
	free(aside->job);
	free(aside->state);
	free(aside->who);
	free(aside->place);
}

int asides__add(struct asides *asides, const struct aside *aside, const char *job, const char *state)
{
	struct aside *own = NULL, copy = *aside;

	copy.job = copy.state = copy.who = copy.place = NULL;
	if (!region__set_text(&copy.job, job) || !region__set_text(&copy.state, state) ||
	    !region__set_text(&copy.who, aside->who) || !region__set_text(&copy.place, aside->place))
		goto no_memory;
	for (size_t i = 0; i < asides->count && !own; i++) {
		if (same(&asides->items[i], &copy, copy.job, copy.state))
			own = &asides->items[i];
	}
	if (!own) {
		if (grow(&asides->items, &asides->capacity, asides->count + 1, sizeof(*asides->items)))
			goto no_memory;
		own = &asides->items[asides->count++];
		*own = (struct aside){0};
	}
	/* each window has its own loss */
	if (copy.kind == ASIDE_IMBALANCE)
		copy.seconds += own->seconds;
	free_texts(own);
	*own = copy;
	return 0;
no_memory:
	free_texts(&copy);
	return -ENOMEM;
}

static double weight(const struct aside *aside)
{
	return aside->kind == ASIDE_RARE ? aside->seconds : aside->kind == ASIDE_DRIFT ? aside->ratio : aside->share;
}

static int compare(const void *a, const void *b)
{
	const struct aside *x = a, *y = b;
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
static void write_imbalance(const struct aside *aside, char *text, size_t size)
{
	bool some = aside->slow - aside->ratio >= 0.015;
	char range[80] = "", lost[40], cost[64] = "";

	if (some)
		snprintf(range, sizeof(range), ", in %llu state%s (%.0f %% over all)", (unsigned long long)aside->count,
			 aside->count == 1 ? "" : "s", 100 * (aside->ratio - 1));
	else if (aside->count > 1 && aside->most - aside->least >= 0.015)
		snprintf(range, sizeof(range), " (%.0f to %.0f %% in %llu states)", 100 * (aside->least - 1),
			 100 * (aside->most - 1), (unsigned long long)aside->count);
	if (aside->seconds > 0)
		snprintf(cost, sizeof(cost), ", %s lost", duration__text(aside->seconds, lost, sizeof(lost)));
	snprintf(text, size, "%s%s %s always %.0f %% slower than the others%s%s, most in %s: %s",
		 aside->who ? aside->who : "?", aside->place ? aside->place : "", aside->many ? "are" : "is",
		 100 * ((some ? aside->slow : aside->ratio) - 1), range, cost, aside->state,
		 aside->certain ? "slower hardware or system there"
				: "more work, or a slower core; both look the same without counters");
}

static void print(const struct aside *aside, const char *head, FILE *out, unsigned width)
{
	char text[1024], took[40], rank[40] = "";

	if (aside->kind == ASIDE_RARE && aside->rank >= 0)
		snprintf(rank, sizeof(rank), ", longest on rank %lld", (long long)aside->rank);
	if (aside->kind == ASIDE_RARE)
		snprintf(text, sizeof(text), "%s: %s %llu time%s, %s in all%s: too seldom to be judged", aside->state,
			 aside->cluster ? "other work" : "seen", (unsigned long long)aside->count,
			 aside->count == 1 ? "" : "s", duration__text(aside->seconds, took, sizeof(took)), rank);
	else if (aside->kind == ASIDE_DRIFT)
		snprintf(text, sizeof(text), "%s: slower on all ranks together, by %.0f %% over %llu windows",
			 aside->state, 100 * (aside->ratio - 1), (unsigned long long)aside->count);
	else
		write_imbalance(aside, text, sizeof(text));
	regions__wrap(out, head, text, INDENT, width);
}

void asides__print(struct asides *asides, FILE *out, unsigned width)
{
	static const char *const heads[ASIDE_KINDS] = {
	    [ASIDE_RARE] = "rare", [ASIDE_DRIFT] = "drift", [ASIDE_IMBALANCE] = "imbalance"};
	size_t printed[ASIDE_KINDS] = {0}, all[ASIDE_KINDS] = {0};

	if (!asides->count)
		return;
	qsort(asides->items, asides->count, sizeof(*asides->items), compare);
	for (size_t i = 0; i < asides->count; i++)
		all[asides->items[i].kind]++;
	putc('\n', out);
	for (size_t i = 0; i < asides->count; i++) {
		enum aside_kind kind = asides->items[i].kind;

		if (printed[kind] < PRINTED_MAX)
			print(&asides->items[i], printed[kind] ? "" : heads[kind], out, width);
		if (++printed[kind] == all[kind] && all[kind] > PRINTED_MAX)
			fprintf(out, "%*sand %zu more\n", INDENT, "", all[kind] - PRINTED_MAX);
	}
}

void asides__free(struct asides *asides)
{
	for (size_t i = 0; i < asides->count; i++)
		free_texts(&asides->items[i]);
	free(asides->items);
	*asides = (struct asides){0};
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* A hang as it is reported: ranks that do the same are one group, and their calls say for whom they wait. */
#include "analysis/result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_NS 3600e9

/* A rank of a hang, and what its call says. */
struct waiter {
	const struct hang_member *member;
	const struct stg_state *state; /* NULL: none */
	int32_t rank;
	uint32_t kind; /* of its state; equal for equal calls of several ranks */
	char function[64], root[16], comm[16];
	int32_t peer; /* rank that the call names; PEER_... */
};

#define PEER_NONE (-1) /* none, or not known as a rank of the job */
#define PEER_ANY (-2)

static bool of_world(const struct waiter *waiter)
{
	return !*waiter->comm || !strcmp(waiter->comm, "0");
}

/* A call on another communicator names ranks of that one, whose ranks in the job are not known. */
static int32_t peer_of(const struct waiter *waiter, const char *labels)
{
	char peer[16], *end;
	long value;

	stg__label(labels, "peer", peer, sizeof(peer));
	value = strtol(peer, &end, 10);
	if (end == peer || *end || (value >= 0 && !of_world(waiter)) || value > INT32_MAX)
		return PEER_NONE;
	return value < 0 ? PEER_ANY : (int32_t)value;
}

static void read_waiter(const struct builder *builder, const struct hang_member *member, struct waiter *waiter)
{
	*waiter = (struct waiter){
	    .member = member, .rank = builder->about->rows[member->row].rank, .kind = UINT32_MAX, .peer = PEER_NONE};
	if (member->state == HANG_NO_STATE)
		return;
	waiter->state = stg__state(builder->context->stg, member->state);
	waiter->kind = waiter->state->kind;
	stg__label(waiter->state->about.labels, "function", waiter->function, sizeof(waiter->function));
	stg__label(waiter->state->about.labels, "root", waiter->root, sizeof(waiter->root));
	stg__label(waiter->state->about.labels, "comm", waiter->comm, sizeof(waiter->comm));
	waiter->peer = peer_of(waiter, waiter->state->about.labels);
}

static bool in_collective(const struct waiter *waiter)
{
	return waiter->member->condition == VAPRO_HANG_IN_CALL && of_world(waiter) &&
	       hang__is_collective(waiter->function);
}

static bool same_group(const struct waiter *a, const struct waiter *b)
{
	return a->member->condition == b->member->condition && a->kind == b->kind && !strcmp(a->comm, b->comm);
}

static int compare_waiters(const void *a, const void *b)
{
	const struct waiter *left = a, *right = b;
	int order;

	if (left->member->condition != right->member->condition)
		return left->member->condition < right->member->condition ? -1 : 1;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	order = strcmp(left->comm, right->comm);
	return order ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

static int compare_groups(const void *a, const void *b)
{
	const struct result_hang_group *left = a, *right = b;

	if (left->condition != right->condition)
		return left->condition < right->condition ? -1 : 1;
	if (left->rank_count != right->rank_count)
		return left->rank_count < right->rank_count ? -1 : 1;
	return (left->ranks[0] > right->ranks[0]) - (left->ranks[0] < right->ranks[0]);
}

static int compare_ranks(const void *a, const void *b)
{
	const int32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Sorts ranks and drops those that are there twice. Returns how many are left. */
static uint32_t order_ranks(int32_t *ranks, uint32_t count)
{
	uint32_t left = 0;

	if (count)
		qsort(ranks, count, sizeof(*ranks), compare_ranks);
	for (uint32_t i = 0; i < count; i++) {
		if (!left || ranks[left - 1] != ranks[i])
			ranks[left++] = ranks[i];
	}
	return left;
}

/* Lists the ranks that have not entered the collective that a waiter is in. */
static int list_missing(const struct builder *builder, const struct waiter *all, size_t count, const struct waiter *in,
			struct result_hang_group *group)
{
	int32_t *missing = result__take(builder, count, sizeof(*missing));

	if (!missing)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!in_collective(&all[i]) || strcmp(all[i].function, in->function) || strcmp(all[i].root, in->root))
			missing[group->did_not_enter_count++] = all[i].rank;
	}
	group->did_not_enter_count = order_ranks(missing, group->did_not_enter_count);
	group->did_not_enter = missing;
	return 0;
}

/* Builds the group of waiters [from, to). */
static int build_group(const struct builder *builder, const struct waiter *all, size_t count, size_t from, size_t to,
		       struct result_hang_group *group)
{
	const struct waiter *first = &all[from];
	int32_t *ranks = result__take(builder, to - from, sizeof(*ranks));
	int32_t *peers = result__take(builder, to - from, sizeof(*peers));
	bool calls = first->member->condition == VAPRO_HANG_IN_CALL;

	if (!ranks || !peers)
		return -ENOMEM;
	*group = (struct result_hang_group){.condition = (enum vapro_hang_condition)first->member->condition,
					    .state = first->state ? &first->state->about : NULL,
					    .since_ns = first->member->since_ns,
					    .ranks = ranks,
					    .waits_for = peers};
	for (size_t i = from; i < to; i++) {
		if (all[i].member->since_ns < group->since_ns)
			group->since_ns = all[i].member->since_ns;
		ranks[group->rank_count++] = all[i].rank;
		if (calls && all[i].peer >= 0)
			peers[group->waits_for_count++] = all[i].peer;
		group->any_source |= calls && all[i].peer == PEER_ANY;
	}
	group->rank_count = order_ranks(ranks, group->rank_count);
	group->waits_for_count = order_ranks(peers, group->waits_for_count);
	return in_collective(first) ? list_missing(builder, all, count, first, group) : 0;
}

static int build_groups(const struct builder *builder, const struct hang *hang, struct result_hang *out)
{
	struct waiter *all = result__take(builder, hang->count, sizeof(*all));
	struct result_hang_group *groups = result__take(builder, hang->count, sizeof(*groups));

	if (!all || !groups)
		return -ENOMEM;
	for (size_t i = 0; i < hang->count; i++)
		read_waiter(builder, &hang->members[i], &all[i]);
	if (hang->count)
		qsort(all, hang->count, sizeof(*all), compare_waiters);
	for (size_t from = 0, to; from < hang->count; from = to) {
		for (to = from + 1; to < hang->count && same_group(&all[from], &all[to]);)
			to++;
		if (build_group(builder, all, hang->count, from, to, &groups[out->group_count++]))
			return -ENOMEM;
	}
	if (out->group_count)
		qsort(groups, out->group_count, sizeof(*groups), compare_groups);
	if (out->group_count > RESULT_HANG_GROUPS)
		out->group_count = RESULT_HANG_GROUPS;
	out->groups = groups;
	return 0;
}

/* The share of the last hour of the job that is in the hang, or of all of its time. */
static double rated_share(const struct builder *builder, const struct hang *hang)
{
	uint64_t first = hang->begin_ns;
	double whole;

	for (size_t row = 0; row < builder->about->row_count; row++) {
		uint64_t from = builder->about->rows[row].from_ns;

		first = from && from < first ? from : first;
	}
	whole = fmin(HOUR_NS, (double)(hang->end_ns - first));
	return whole > 0 ? fmin(1, (double)(hang->end_ns - hang->begin_ns) / whole) : 0;
}

/* A job that does not go on is as bad as can be; what was over after a while is rated as other losses are. */
static enum vapro_severity severity_of(const struct builder *builder, const struct result_hang *out)
{
	if (!out->alarm)
		return VAPRO_INFO;
	if (out->kind == VAPRO_HANG_CALLS && out->outcome != VAPRO_HANG_RESUMED)
		return VAPRO_CRITICAL;
	return out->rated_share >= builder->context->config.critical_share ? VAPRO_CRITICAL : VAPRO_WARNING;
}

int result__hang(const struct builder *builder, struct job_result *result)
{
	const struct hang *hang = &builder->job->hang;
	struct result_hang *out;
	uint32_t seen = 0;

	if (!hang->changed)
		return 0;
	out = result__take(builder, 1, sizeof(*out));
	if (!out)
		return -ENOMEM;
	for (size_t row = 0; row < builder->about->row_count; row++)
		seen += builder->about->rows[row].rank >= 0 && !builder->about->rows[row].thread;
	*out = (struct result_hang){
	    .id = hang->id,
	    .revision = hang->revision,
	    .state = !hang->open      ? VAPRO_REGION_CLOSED
		     : hang->revision ? VAPRO_REGION_CHANGED
				      : VAPRO_REGION_OPEN,
	    .kind = (enum vapro_hang_kind)hang->kind,
	    .outcome = (enum vapro_hang_outcome)hang->outcome,
	    .alarm = hang->kind != VAPRO_HANG_INPUT && hang->kind != VAPRO_HANG_NOT_KNOWN,
	    .begin_ns = hang->begin_ns,
	    .end_ns = hang->end_ns,
	    .rated_share = rated_share(builder, hang),
	    .unseen_ranks = seen < builder->about->world_size ? builder->about->world_size - seen : 0,
	};
	out->severity = severity_of(builder, out);
	result->hang = out;
	return build_groups(builder, hang, out);
}

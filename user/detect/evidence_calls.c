// SPDX-License-Identifier: GPL-2.0-or-later
/* Evidence in calls: suspended, waiting, on a slow path, and IO. */
#include "detect/evidence_private.h"

#include "detect/chance.h"
#include "detect/effect.h"
#include "model/judgement.h"

#include <math.h>

void evidence__judge_suspended(struct variance *variance, const struct evidence_input *input)
{
	double lost = variance->total.lost[VAPRO_COMMUNICATION], attributed = variance->total.cpu[VAPRO_COMMUNICATION];
	double share = input->config->evidence_share, least = input->config->min_lost_s * 1e9;

	if (lost <= 0)
		evidence__say(variance, false, "no loss left");
	else if (attributed >= share * lost &&
		 evidence__by_others(&variance->total, VAPRO_COMMUNICATION) < SHARE_MOST * share * lost)
		evidence__say_oversubscribed(variance);
	else if (attributed < share * lost && !(variance->proven && attributed >= least))
		evidence__say(
		    variance, false,
		    "the kernel attributes only %.0f %% of the loss inside calls: the rest may be a late peer's",
		    100 * attributed / lost);
	/* the rest is waiting, as on the CPU: the attributed loss alone must be worth a report */
	else if (attributed < least)
		evidence__say(variance, false,
			      "the kernel attributes %.0f %% of the loss inside calls (off the CPU), less than %.2g s",
			      100 * attributed / lost, least * 1e-9);
	else {
		variance->proven = true;
		evidence__say(variance, true, "the kernel attributes %.0f %% of the loss inside calls (off the CPU)",
			      100 * fmin(1, attributed / lost));
	}
}

void evidence__judge_io(struct variance *variance, const struct evidence_input *input)
{
	const struct tally *tally = &variance->total;
	double lost = tally->lost[VAPRO_IO], share = input->config->evidence_share;
	double attributed = tally->cpu[VAPRO_IO] + tally->blocked[VAPRO_IO];
	double known = 0, peer = 0, slower = 0;

	for (size_t i = 0; i < tally->series_count; i++) {
		const struct tally_series *entry = &tally->series[i];
		const struct series *series = &input->series->series[entry->series];

		if (series->class != VAPRO_IO)
			continue;
		if (series->cpu.n >= (double)input->config->certify_fragments)
			known += entry->lost;
		if (stg__state(input->stg, series->state)->peer)
			peer += entry->lost;
		if (series->slower)
			slower += entry->lost;
	}
	if (lost <= 0)
		evidence__say(variance, false, "no loss left");
	else if (tally->cpu[VAPRO_IO] >= share * lost) /* whatever the calls wait for */
		evidence__say(variance, true, "the kernel attributes %.0f %% of the loss inside calls (off the CPU)",
			      100 * fmin(1, tally->cpu[VAPRO_IO] / lost));
	else if (tally->no_reference >= share * lost)
		evidence__say(variance, false, "nothing like it was seen before: there is no reference");
	else if (peer >= share * lost)
		evidence__say(variance, false,
			      "on a pipe, socket or terminal: the other end decides how long it takes");
	else if (tally->occurrence >= share * lost)
		evidence__say(variance, true, "other ranks write or read as much at the same time faster");
	else if (chance__explains(variance, input, VAPRO_IO))
		evidence__say(variance, false, "these calls scatter as much at other times");
	else if (slower >= share * lost)
		evidence__say(variance, true, "other ranks make the same calls faster");
	else if (evidence__strange_share(input, variance, VAPRO_IO) < share)
		evidence__say(variance, false, "these calls are as slow at other times");
	else if (attributed >= share * lost)
		evidence__say(variance, true, "the kernel attributes %.0f %% of the loss (asleep or off the CPU)",
			      100 * fmin(1, attributed / lost));
	else if (known >= share * lost)
		evidence__say(variance, true, "calls with a history of at least %llu were faster before",
			      (unsigned long long)input->config->certify_fragments);
	else
		evidence__say(variance, false, "too few calls seen to know what they usually take");
}

/* Whether computation of all ranks was certified and undisturbed while the region lasted. */
static bool computation_is_calm(const struct variance *variance, const struct evidence_input *input)
{
	double dur = 0, lost = 0, other = 0;

	for (size_t row = 0; row < input->job->row_count; row++) {
		for (uint64_t bin = variance->begin; bin < variance->end; bin++) {
			struct cell computation, communication;

			if (!heatmap__has(input->map, bin))
				continue;
			computation = heatmap__cell(input->map, (uint32_t)row, bin, VAPRO_COMPUTATION);
			communication = heatmap__cell(input->map, (uint32_t)row, bin, VAPRO_COMMUNICATION);
			dur += cell__dur(&computation);
			lost += cell__lost(&computation);
			other += fmax(0, (double)VAPRO_BIN_NS - communication.closed.seen - communication.open.seen);
		}
	}
	return dur >= SHARE_MOST * other && lost <= (1 - input->config->threshold) * dur;
}

/* The loss of all rows in computation while the region lasted, ns. */
static double computation_lost(const struct variance *variance, const struct evidence_input *input)
{
	double lost = 0;

	for (uint32_t row = 0; row < input->job->row_count; row++) {
		for (uint64_t bin = variance->begin; bin < variance->end; bin++) {
			struct cell cell;

			if (!heatmap__has(input->map, bin))
				continue;
			cell = heatmap__cell(input->map, row, bin, VAPRO_COMPUTATION);
			lost += fmax(0, cell__lost(&cell));
		}
	}
	return lost;
}

/* Counts bins in which calls of a row were on a slow path; a call of several bins counts once. */
static double slow_bins(const struct heatmap *map, uint32_t row, uint64_t begin, uint64_t end)
{
	bool goes_on = false;
	double count = 0;

	for (uint64_t bin = begin < map->begin ? map->begin : begin; bin < end && bin < map->end; bin++) {
		double path = heatmap__wait(map, HEATMAP_PATH, row, bin);

		count += path > 0 && !goes_on;
		goes_on = path >= SHARE_NEARLY_ALL * (double)VAPRO_BIN_NS;
	}
	return count;
}

/*
 * Whether delays that hit ranks at random would gather as much on as many ranks: whether a permutation of ranks gives
 * that once in a hundred times. The bound of a binomial tail by Chernoff, for any choice of the ranks.
 */
static bool is_anywhere(const struct variance *variance, const struct evidence_input *input)
{
	double rows = (double)input->job->row_count, part = (double)variance->row_count / rows;
	double own = 0, all = 0, share, divergence;

	if (variance->row_count >= input->job->row_count)
		return false;
	for (uint32_t row = 0; row < input->job->row_count; row++)
		all += slow_bins(input->map, row, input->map->begin, input->map->end);
	for (size_t i = 0; i < variance->row_count; i++) {
		own += slow_bins(input->map, variance->rows[i], variance->begin, variance->end);
		all -= slow_bins(input->map, variance->rows[i], input->map->begin, input->map->end);
	}
	all += own;
	if (!(all > 0) || own <= part * all)
		return all > 0;
	share = fmin(1, own / all);
	divergence = share * log(share / part);
	divergence += share < 1 ? (1 - share) * log((1 - share) / (1 - part)) : 0;
	return exp(-all * divergence) / part > CHANCE_MOST;
}

/*
 * Whether most ranks lose time in a few of their calls, while most calls are as fast as ever: where ranks do not wait
 * for each other, so that no other one can be compared with, what the others are is known from each rank's own calls.
 */
static bool is_of_few_calls(const struct variance *variance, const struct evidence_input *input)
{
	const struct tally *tally = &variance->total;
	double least = input->config->evidence_share * tally->lost[VAPRO_COMMUNICATION], lost = 0;

	if (tally->single_calls < least || (double)variance->row_count < SHARE_OF_RANKS * (double)input->job->row_count)
		return false;
	for (size_t i = 0; i < tally->series_count; i++) {
		const struct tally_series *entry = &tally->series[i];
		const struct series *series = &input->series->series[entry->series];
		double fast = 0;

		if (series->class != VAPRO_COMMUNICATION || entry->lost <= 0)
			continue;
		for (size_t b = 0; b < series->cpu.count; b++) {
			const struct histogram_bucket *bucket = &series->cpu.buckets[b];

			fast += bucket->sum_ns <= RATIO_APART * series->reference_ns * bucket->n ? bucket->n : 0;
		}
		lost += fast >= SHARE_MOST * series->cpu.n ? entry->lost : 0;
	}
	return lost >= least;
}

void evidence__judge_path(struct variance *variance, const struct evidence_input *input)
{
	double lost = variance->total.lost[VAPRO_COMMUNICATION];

	if (lost <= 0)
		evidence__say(variance, false, "no loss left");
	else if (input->partial)
		evidence__say(variance, false, "not all ranks of the job are seen: one of them may be late");
	else if (!computation_is_calm(variance, input))
		evidence__say(variance, false,
			      "the computation around it varies or is not certified: late peers cannot be excluded");
	else if (variance->total.provisional >= input->config->evidence_share * lost)
		evidence__say(variance, false, "too little was seen of these calls to know what they usually take");
	else if (is_anywhere(variance, input))
		evidence__say(variance, false, "delays hit other ranks as well: as many may be on these by chance");
	else if (is_of_few_calls(variance, input))
		evidence__say(variance, true,
			      "a few calls take much longer than most equal ones, while no rank was late for them");
	else if (evidence__proven_share(input, variance, VAPRO_COMMUNICATION) < input->config->evidence_share ||
		 chance__explains(variance, input, VAPRO_COMMUNICATION))
		evidence__say(variance, false, "these calls are as slow at other times");
	else
		evidence__say(variance, true, "equal calls take %.1f times as long as usual while no rank was late",
			      variance->total.dur[VAPRO_COMMUNICATION] /
				  fmax(1, variance->total.ref[VAPRO_COMMUNICATION]));
}

void evidence__unexplained(struct variance *variance)
{
	variance->effect_of = 0;
	evidence__say(variance, false, "waiting for late peers; what made them late costs too little to be listed");
}

/* What a variance's ranks lost to transfers in a bin, ns. */
static double transfer_in(const struct variance *variance, const struct heatmap *map, uint64_t bin)
{
	double sum = 0;

	for (size_t i = 0; i < variance->row_count; i++)
		sum += heatmap__wait(map, HEATMAP_TRANSFER, variance->rows[i], bin);
	return sum;
}

/* Whether all ranks of the job were observed from the begin of a variance on, to its end: another one may be late. */
static bool all_seen(const struct variance *variance, const struct stg_job *job, bool to_end)
{
	uint32_t seen = 0;

	for (size_t row = 0; row < job->row_count; row++) {
		const struct stg_row *at = &job->rows[row];

		seen += at->rank >= 0 && !at->thread && at->from_ns && at->from_ns / VAPRO_BIN_NS <= variance->begin &&
			(!to_end || !at->to_ns || at->to_ns >= (variance->end - 1) * VAPRO_BIN_NS);
	}
	return seen >= job->world_size;
}

/* Whether calls of some kind are part of a loss. */
static bool has(const struct tally *tally, const struct evidence_input *input, bool (*is)(const struct stg_state *))
{
	for (size_t i = 0; i < tally->series_count; i++) {
		const struct series *series = &input->series->series[tally->series[i].series];

		if (series->class == VAPRO_COMMUNICATION && is(stg__state(input->stg, series->state)))
			return true;
	}
	return false;
}

/* Threads of a process that wait for each other: nothing is transferred between them. */
static bool is_of_team(const struct stg_state *state)
{
	return state->group == STG_PROCESS;
}

/* Calls that need no call of another rank: there is no last one that shows what they take by themselves. */
static bool is_one_sided(const struct stg_state *state)
{
	return state->one_sided;
}

/*
 * Whether transfers are slow in a stretch of bins, and so slow nowhere else, that a row of slow bins is no chance: by
 * the share of the other bins in which transfers take half as much as in the stretch.
 */
static bool is_stretch(const struct variance *variance, const struct heatmap *map)
{
	double mean = 0, slow = 0, other = 0, others = 0;

	for (uint64_t bin = variance->begin; bin < variance->end; bin++)
		mean += heatmap__has(map, bin) ? transfer_in(variance, map, bin) : 0;
	mean /= fmax(1, (double)(variance->end - variance->begin));
	for (uint64_t bin = map->begin; bin < map->end; bin++) {
		bool is = transfer_in(variance, map, bin) >= SHARE_MOST * mean;

		if (bin >= variance->begin && bin < variance->end) {
			slow += is;
		} else {
			others++;
			other += is;
		}
	}
	return mean > 0 && others * pow((other + 1) / (others + 1), slow) <= CHANCE_MOST;
}

void evidence__judge_waiting(struct variance *variance, const struct evidence_input *input,
			     const struct variance_book *book)
{
	const struct tally *tally = &variance->total;
	double share = input->config->evidence_share, lost = tally->lost[VAPRO_COMMUNICATION];
	bool known = tally->no_reference < share * lost, exact;

	effect__waits(variance, input->map);
	/* each operation shows by itself that no rank was late */
	exact = variance->transfers && tally->single_calls >= share * lost && all_seen(variance, input->job, true) &&
		!has(tally, input, is_one_sided);
	if (variance->late >= variance->transfer) {
		variance->effect_of = effect__cause(variance, input->map, input->job, book);
		if (variance->effect_of)
			evidence__say(variance, false, "waiting for ranks that variance %llu holds up",
				      (unsigned long long)variance->effect_of);
		else
			evidence__say(variance, false,
				      "ranks waited for late peers, but no slow region explains the delay");
		return;
	}
	if (variance->transfers && has(tally, input, is_of_team))
		evidence__say(variance, false, "threads of a process waited for each other");
	else if (evidence__gave_way(variance, share))
		evidence__say_oversubscribed(variance);
	else if (input->partial || (variance->transfers && !all_seen(variance, input->job, false)))
		evidence__say(variance, false, "not all ranks of the job are seen: one of them may be late");
	else if (input->job->row_count < 2)
		evidence__say(variance, false, "only one rank is seen: a peer may be late");
	else if (exact && known && tally->provisional < share * lost &&
		 (variance->proven |= is_stretch(variance, input->map))) /* the map forgets what was before */
		evidence__say(variance, true, "in each operation even the last rank's call takes longer than usual");
	else if (exact && known && tally->provisional < share * lost)
		evidence__say(variance, false, "so few operations are slow, or others as well, that it may be chance");
	else if (!computation_is_calm(variance, input))
		evidence__say(variance, false,
			      "the computation around it varies or is not certified: late peers cannot be excluded");
	else if (known && evidence__two_states(input, variance))
		evidence__say(variance, true,
			      "different calls are slow in the same bins for all members, while computation is calm");
	else if (known && evidence__proven_share(input, variance, VAPRO_COMMUNICATION) >= share &&
		 computation_lost(variance, input) <= share * variance->transfer)
		evidence__say(variance, true,
			      "equal calls are slow for all members by far more than their scatter, while "
			      "computation is calm");
	else
		evidence__say(variance, false, "no second call-site is slow in the same bins");
}

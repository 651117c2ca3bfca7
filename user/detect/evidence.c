/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/evidence_private.h"

#include "detect/alone.h"
#include "detect/chance.h"
#include "model/judgement.h"
#include "model/scatter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIKE_PART 0.75	   /* part of a row's slowdown that a state must have, however short */
#define ALIKE 1.15	   /* ratio of performance between ranks that are slow alike */
#define FAR_SIGMAS 10	   /* of all others: a single fragment is far out of them, whatever their distribution */
enum { OTHERS_MOST = 64 }; /* other ranks examined */
#define GOES_ON 2.5	   /* fragments: a shorter slowdown is an outlier, as any state has some */

void evidence__say(struct variance *variance, bool confirmed, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(variance->evidence, sizeof(variance->evidence), format, arguments);
	va_end(arguments);
	variance->confirmed = confirmed;
}

bool evidence__beyond_others(const struct evidence_input *input, uint32_t series, double ns)
{
	const struct series_book *book = input->series;
	const struct series *own = &book->series[series];
	unsigned looked_at = 0, faster = 0;

	if (own->class != VAPRO_COMPUTATION || input->source == VAPRO_BY_INSTRUCTIONS)
		return true;
	for (uint32_t i = book->workloads[own->workload].series; i != SERIES_NONE && looked_at < OTHERS_MOST;
	     i = book->series[i].next) {
		const struct series *other = &book->series[i];
		double n = 0, sum = 0;

		for (int third = 0; third < SERIES_THIRDS; third++) {
			n += other->third_n[third];
			sum += other->third_ns[third];
		}
		if (other->row == own->row || !(n > 0))
			continue;
		looked_at++;
		faster += sum / n < input->config->threshold * ns;
	}
	return 2 * faster >= looked_at;
}

/*
 * Whether a series is slower than its reference, and than usual, both without attributed time. A slowdown that goes on
 * becomes usual: then the variance's part of the usual time is left out, but where work is not known most other ranks
 * must be faster at the same time, since all of them may have more work now.
 */
static bool witness(const struct evidence_input *input, const struct tally_series *entry)
{
	const struct series *series = &input->series->series[entry->series];

	if (entry->lost <= 0 || entry->ref >= input->config->threshold * entry->net)
		return false;
	return series__unusual(series, input->config, entry->n, entry->net, true, NULL) ||
	       (entry->own.n >= GOES_ON &&
		series__unusual(series, input->config, entry->n, entry->net, true, &entry->own) &&
		evidence__beyond_others(input, entry->series, entry->net / entry->n));
}

/*
 * Whether the longest fragment is far out of all others of its series: among few it would hide itself by its own
 * scatter.
 */
static bool far_out(const struct evidence_input *input, const struct tally_series *entry, const struct series *series)
{
	double n = series->usual.n + series->usual_live.n - 1, dur = series->usual.dur + series->usual_live.dur;
	double squares = series->usual.dur_sq + series->usual_live.dur_sq, mean, variance;

	if (n < (double)input->config->certify_fragments || entry->longest < input->config->min_lost_s * 1e9)
		return false;
	/* without its own part, unless alarms left it out */
	if (dur > entry->longest && squares > entry->longest * entry->longest) {
		dur -= entry->longest;
		squares -= entry->longest * entry->longest;
	}
	mean = dur / n;
	variance = fmax(squares / n - mean * mean, 0);
	return entry->longest > RATIO_STALL * mean && entry->longest - mean > FAR_SIGMAS * sqrt(variance);
}

/*
 * Whether a state takes longer than usual: the kernel attributes sleep, but programs sleep at will, so only
 * unusual sleep is evidence. One stuck fragment is judged against all others, since a single one can never
 * be far out among few.
 */
static bool strange(const struct evidence_input *input, const struct tally_series *entry)
{
	const struct series *series = &input->series->series[entry->series];
	double others = series->usual.n + series->usual_live.n - (entry->n - entry->open_n);
	double others_ns = series->usual.dur + series->usual_live.dur - (entry->dur - entry->open_dur);

	if (scatter__judges(series))
		return entry->longest > series->tail_ns;
	if (series__unusual(series, input->config, entry->n, entry->dur, false, NULL))
		return true;
	if (far_out(input, entry, series))
		return true;
	if (entry->longest < LONG_NS)
		return false;
	if (others >= (double)input->config->rare_members)
		return entry->longest > RATIO_STALL * others_ns / others;
	/* Only its labels are left to compare with. */
	return series->cpu.n < (double)input->config->certify_fragments;
}

double evidence__strange_share(const struct evidence_input *input, const struct variance *variance,
			       enum vapro_class class)
{
	const struct tally *tally = &variance->total;
	double lost = 0, all = 0;

	for (size_t i = 0; i < tally->series_count; i++) {
		if (input->series->series[tally->series[i].series].class != class)
			continue;
		all += tally->series[i].lost;
		lost += strange(input, &tally->series[i]) ? tally->series[i].lost : 0;
	}
	return all > 0 ? lost / all : 0;
}

struct row_loss {
	uint32_t row, workload;
	double lost, net, ref;
	bool witness;
};

static int compare_rows(const void *a, const void *b)
{
	const struct row_loss *left = a, *right = b;

	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->workload > right->workload) - (left->workload < right->workload);
}

double evidence__proven_share(const struct evidence_input *input, const struct variance *variance,
			      enum vapro_class class)
{
	const struct tally *tally = &variance->total;
	double lost = 0, all = 0;

	for (size_t i = 0; i < tally->series_count; i++) {
		const struct tally_series *entry = &tally->series[i];
		const struct series *series = &input->series->series[entry->series];

		if (series->class != class || entry->lost <= 0)
			continue;
		all += entry->lost;
		lost += series->slower || witness(input, entry) ? entry->lost : 0;
	}
	return all > 0 ? lost / all : 0;
}

/* Whether a state is a witness by its part of a row's loss, or since it is slow by nearly as much as the row. */
static bool weighs(const struct row_loss *state, const struct row_loss *row)
{
	return state->lost >= SHARE_MEANINGFUL * row->lost ||
	       (row->ref > 0 && state->net - state->ref >= ALIKE_PART * state->ref * (row->net / row->ref - 1));
}

/*
 * Whether two states of one rank are witnesses. Several ranks with one state each are a phase of the
 * program, and so are several threads in one state.
 */
bool evidence__two_states(const struct evidence_input *input, const struct variance *variance)
{
	const struct tally *tally = &variance->total;
	struct row_loss *losses = calloc(tally->series_count ? tally->series_count : 1, sizeof(*losses));
	size_t count = 0;
	bool found = false;

	/* Out of memory nothing is confirmed: silence beats a false alarm. */
	if (!losses || !(tally->pair_base > 0) || tally->pair_lost < input->config->evidence_share * tally->pair_base)
		goto cleanup;
	for (size_t i = 0; i < tally->series_count; i++) {
		const struct series *series = &input->series->series[tally->series[i].series];

		if (series->class == variance->class)
			losses[count++] = (struct row_loss){series->row,	   series->workload,
							    tally->series[i].lost, tally->series[i].net,
							    tally->series[i].ref,  witness(input, &tally->series[i])};
	}
	if (count)
		qsort(losses, count, sizeof(*losses), compare_rows);
	for (size_t i = 0, end; i < count && !found; i = end) {
		uint32_t counted = SERIES_NONE;
		struct row_loss row = {0};
		unsigned states = 0;

		for (end = i; end < count && losses[end].row == losses[i].row; end++) {
			row.lost += losses[end].lost;
			row.net += losses[end].net;
			row.ref += losses[end].ref;
		}
		for (size_t j = i; j < end; j++) {
			if (losses[j].witness && losses[j].workload != counted && weighs(&losses[j], &row)) {
				counted = losses[j].workload;
				states++;
			}
		}
		found = states >= 2;
	}
cleanup:
	free(losses);
	return found;
}

/* Whether all ranks of the job are equally slow: the program or the whole machine, undecidable. */
static bool all_alike(const struct evidence_input *input, const struct variance *variance)
{
	double least = INFINITY, most = 0;
	size_t alive = 0;

	for (size_t row = 0; row < input->job->row_count; row++) {
		const struct stg_row *at = &input->job->rows[row];

		alive += at->from_ns && at->from_ns < variance->end * VAPRO_BIN_NS &&
			 (!at->to_ns || at->to_ns > variance->begin * VAPRO_BIN_NS);
	}
	if (variance->row_count < alive)
		return false;
	for (size_t i = 0; i < variance->row_count; i++) {
		double dur = 0, ref = 0, performance;

		for (uint64_t bin = variance->begin; bin < variance->end; bin++) {
			uint32_t row = variance->rows[i];
			struct cell cell;

			if (!heatmap__has(input->map, bin) ||
			    heatmap__owner(input->map, row, bin, variance->class) != variance->id)
				continue;
			cell = heatmap__cell(input->map, row, bin, variance->class);
			dur += (double)cell.closed.dur + cell.open.dur;
			ref += (double)cell.closed.ref + cell.open.ref;
		}
		if (dur <= 0)
			continue;
		performance = ref / dur;
		least = fmin(least, performance);
		most = fmax(most, performance);
	}
	return most <= ALIKE * least;
}

/*
 * The attributed waits for a CPU, without waits of an oversubscribed job for its own threads, which are no disturbance
 * from outside.
 */
double evidence__by_others(const struct tally *tally, enum vapro_class class)
{
	double own = tally__own_share(tally), waits = tally->factor[VAPRO_PREEMPTED] + tally->factor[VAPRO_WAKEUP_WAIT];
	double all = waits + tally->factor[VAPRO_THROTTLED] + tally->factor[VAPRO_STEAL] +
		     tally->factor[VAPRO_STOPPED] + tally->factor[VAPRO_IRQ];

	/* a quota, the hypervisor or a signal is not caused by the job, however many threads it has */
	if (all > 0)
		own *= waits / all;
	return tally->cpu[class] * (1 - own);
}

bool evidence__gave_way(const struct variance *variance, double share)
{
	const struct tally *tally = &variance->total;

	return (tally->factor[VAPRO_PREEMPTED] + tally->factor[VAPRO_WAKEUP_WAIT]) * tally__own_share(tally) >=
	       share * tally->lost[VAPRO_COMMUNICATION];
}

void evidence__say_oversubscribed(struct variance *variance)
{
	const struct cpu_demand *demand = &variance->total.demand;

	if (!demand->cpus) {
		evidence__say(variance, false, "its own threads had the CPU");
		return;
	}
	evidence__say(variance, false, "oversubscribed: %.1f runnable threads of the job share %u CPU%s",
		      demand->threads, demand->cpus, demand->cpus == 1 ? "" : "s");
}

/* Judges a slowdown that nothing attributes, where work is not known; attributed: share of the loss. */
static void judge_uncounted(struct variance *variance, const struct evidence_input *input,
			    const struct variance_book *book, double attributed)
{
	struct onset onset = onset__of(variance, input);
	enum alone alone;

	variance->alike = all_alike(input, variance);
	if (variance->alike) {
		evidence__say(variance, false,
			      "all ranks slowed alike and the kernel attributes nothing: the program may have "
			      "changed its work");
		return;
	}
	/* while it goes on the map forgets how it began */
	variance->lone = onset.lone || (!onset.known && variance->lone);
	if (onset.lone)
		variance->stepped |= onset__two_states(&onset, variance, input);
	alone = alone__moved(variance, &onset, book, input);
	if (alone == ALONE_ALL) {
		variance->alike = true;
		evidence__say(variance, false,
			      "nearly all ranks slowed at once and nothing attributes it: the program may have "
			      "changed its work");
		return;
	}
	if (alone == ALONE_MOVED) {
		evidence__say(variance, false,
			      "other ranks changed at the same time: work may have moved between them");
		return;
	}
	if (variance->row_count > 1) {
		variance->by_place = variance->lasting || alone__place(variance, input);
		evidence__say(variance, false,
			      variance->by_place
				  ? "the ranks of one place are slow, and no others: less speed, or more work"
				  : "several ranks are slow: without counts it may be their work");
		return;
	}
	if (onset.known)
		variance->gradual = !onset.sharp;
	if (variance->gradual && !variance->lone) {
		evidence__say(variance, false, "it came gradually and nothing attributes it: its work may have grown");
		return;
	}
	if (!variance->lone && onset__from_start(variance, input)) {
		evidence__say(variance, false, "it was so when it was first seen: it may just have more work");
		return;
	}
	if (variance->stepped || evidence__two_states(input, variance)) {
		evidence__say(variance, true, "different states of one rank alone are slow in the same bins");
		return;
	}
	evidence__say(variance, false,
		      "the kernel attributes only %.0f %% of the loss and no second state is slow in the same bins",
		      100 * fmax(0, attributed));
}

static void judge_computation(struct variance *variance, const struct evidence_input *input,
			      const struct variance_book *book)
{
	const struct tally *tally = &variance->total;
	double lost = tally->lost[VAPRO_COMPUTATION], share = input->config->evidence_share;
	double least = input->config->min_lost_s * 1e9;
	double attributed = tally->cpu[VAPRO_COMPUTATION] + tally->faults + tally->frequency;

	if (lost <= 0)
		return evidence__say(variance, false, "no loss left");
	if (attributed < share * lost && evidence__strange_share(input, variance, VAPRO_COMPUTATION) >= share &&
	    !chance__explains(variance, input, VAPRO_COMPUTATION))
		attributed += tally->blocked[VAPRO_COMPUTATION];
	if (attributed >= share * lost &&
	    attributed - tally->cpu[VAPRO_COMPUTATION] + evidence__by_others(tally, VAPRO_COMPUTATION) <
		SHARE_MOST * share * lost) {
		evidence__say_oversubscribed(variance);
		return;
	}
	/* A proven variance stays so when it grows, or merges into another one. */
	if (attributed >= share * lost && attributed >= least)
		variance->proven = true;
	if (attributed >= share * lost || (variance->proven && attributed >= least)) {
		if (tally->account > SHARE_MOST * lost)
			evidence__say(variance, true,
				      "the kernel attributes %.0f %% of the loss (off the CPU); the work is not known",
				      100 * fmin(1, attributed / lost));
		else
			evidence__say(variance, true, "%s %.0f %% of the loss (%s)",
				      tally->frequency > tally->cpu[VAPRO_COMPUTATION] ? "the machine attributes"
										       : "the kernel attributes",
				      100 * fmin(1, attributed / lost),
				      tally->frequency > tally->cpu[VAPRO_COMPUTATION]
					  ? "a lower CPU frequency"
					  : "off the CPU, interrupts or faults");
		return;
	}
	if (tally->provisional >= share * lost) {
		evidence__say(variance, false, "too little was seen of this work to know what it usually takes");
		return;
	}
	if (tally->young >= share * lost &&
	    (double)variance->row_count >= SHARE_OF_RANKS * (double)input->job->row_count) {
		evidence__say(variance, false, "most ranks were slow in their first computations: programs warm up");
		return;
	}
	variance->outlier = !variance->lasting && alone__repeated(variance, input) < share;
	if (variance->outlier) {
		evidence__say(variance, false, "nothing attributes it, and only one fragment of a rank was slow");
		return;
	}
	if (input->source != VAPRO_BY_INSTRUCTIONS)
		judge_uncounted(variance, input, book, attributed / lost);
	else if (!variance->lasting && chance__explains(variance, input, VAPRO_COMPUTATION))
		evidence__say(variance, false, "the same instructions took longer, but within their usual scatter");
	else
		evidence__say(variance, true, "the same instructions took longer");
}

static enum vapro_class main_class(const struct variance *variance)
{
	const struct tally *tally = &variance->total;
	bool preempted = variance->has[VAPRO_COMPUTATION] &&
			 tally->cpu[VAPRO_COMPUTATION] >= SHARE_MOST * tally->lost[VAPRO_COMPUTATION];
	enum vapro_class main = VAPRO_CLASSES;
	double most = 0;

	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		double lost = tally->lost[class];

		/* The rest of a suspended call is waiting, which is as long for a rank that is not disturbed. */
		if (class == VAPRO_COMMUNICATION && !variance->waiting && !variance->path)
			lost = SHARE_MOST * fmin(lost, tally->cpu[class]);
		/* IO beside a computation that had no CPU: what it waits for had none, either (region__unite) */
		if (class == VAPRO_IO && preempted)
			lost -= SHARE_MOST * fmax(0, lost - tally->cpu[class]);
		if (variance->has[class] && (main == VAPRO_CLASSES || lost > most)) {
			main = class;
			most = lost;
		}
	}
	return main == VAPRO_CLASSES ? VAPRO_COMPUTATION : main;
}

void evidence__judge(struct variance_book *book, const struct evidence_input *input)
{
	for (int waiting = 0; waiting < 2; waiting++) {
		for (size_t i = 0; i < book->count; i++) {
			struct variance *variance = &book->variances[i];

			/* Causes first: effects look for them. */
			if (variance->waiting != (bool)waiting)
				continue;
			if (!variance->matched) {
				if (variance->over)
					continue;
				/* The last emission stays, but the variance is no alarm any more. */
				variance->alarm = false;
				variance->effect_of = variance->merged_into;
				if (variance->merged_into)
					evidence__say(variance, variance->confirmed, "merged into variance %u",
						      variance->merged_into);
				else
					evidence__say(variance, false, "withdrawn: better references explain it");
				continue;
			}
			variance->class = main_class(variance);
			variance->effect_of = 0;
			variance->by_place = variance->alike = variance->outlier = false;
			if (waiting)
				evidence__judge_waiting(variance, input, book);
			else if (variance->path)
				evidence__judge_path(variance, input);
			else if (variance->class == VAPRO_COMPUTATION)
				judge_computation(variance, input, book);
			else if (variance->class == VAPRO_IO)
				evidence__judge_io(variance, input);
			else
				evidence__judge_suspended(variance, input);
			variance->alarm = variance->confirmed && !variance->effect_of;
		}
	}
	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];

		if (variance->matched && variance->by_place && alone__fixed_work(variance, book, input->job)) {
			variance->by_place = false;
			variance->alarm = true;
			evidence__say(variance, true,
				      "the ranks of one place are slow, at calls of equal bytes as well");
		}
	}
}

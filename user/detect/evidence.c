/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/evidence.h"

#include "detect/alone.h"
#include "detect/effect.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MEANINGFUL 0.1 /* share of a loss that makes a state a witness */
#define ALIKE 1.15     /* ratio of performance between ranks that are slow alike */
#define CERTIFIED_HALF 0.5
#define OTHERS 0.5 /* of the evidence wanted must be others' doing where the rest is a process's own threads' */
#define STUCK_NS 1e9
#define FAR_SIGMAS 10
#define WAITED_ANYWAY 0.5 /* of what a suspended call lost, beside a computation's loss */
#define STUCK_RATIO 10	  /* to the mean of all others */

static void say(struct variance *variance, bool confirmed, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct variance *variance, bool confirmed, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(variance->evidence, sizeof(variance->evidence), format, arguments);
	va_end(arguments);
	variance->confirmed = confirmed;
}

/* Slower than its reference, and than what it usually does, both without what the kernel tells. */
static bool witness(const struct evidence_input *input, const struct tally_series *entry)
{
	return entry->lost > 0 && entry->ref < input->config->threshold * entry->net &&
	       series__unusual(&input->series->series[entry->series], input->config, entry->n, entry->net, true);
}

/*
 * Whether the longest fragment is far out of all others of its series: it would hide itself among few, whose scatter
 * it makes.
 */
static bool far_out(const struct evidence_input *input, const struct tally_series *entry, const struct series *series)
{
	double n = series->usual.n + series->usual_live.n - 1, dur = series->usual.dur + series->usual_live.dur;
	double squares = series->usual.dur_sq + series->usual_live.dur_sq, mean, variance;

	if (n < (double)input->config->certify_fragments || entry->longest < input->config->min_lost_s * 1e9)
		return false;
	/* its own part, unless alarms have kept it out */
	if (dur > entry->longest && squares > entry->longest * entry->longest) {
		dur -= entry->longest;
		squares -= entry->longest * entry->longest;
	}
	mean = dur / n;
	variance = fmax(squares / n - mean * mean, 0);
	return entry->longest > STUCK_RATIO * mean && entry->longest - mean > FAR_SIGMAS * sqrt(variance);
}

/*
 * Sleep is told by the kernel, but programs sleep at will: only where a state does not usually take
 * that long it tells of something. One fragment that is stuck is judged against all others, since a
 * single one can never be far out among few.
 */
static bool strange(const struct evidence_input *input, const struct tally_series *entry)
{
	const struct series *series = &input->series->series[entry->series];
	double others = series->usual.n + series->usual_live.n - (entry->n - entry->open_n);
	double others_ns = series->usual.dur + series->usual_live.dur - (entry->dur - entry->open_dur);

	if (series__unusual(series, input->config, entry->n, entry->dur, false))
		return true;
	if (far_out(input, entry, series))
		return true;
	if (entry->longest < STUCK_NS)
		return false;
	if (others >= (double)input->config->rare_members)
		return entry->longest > STUCK_RATIO * others_ns / others;
	/* Nothing to compare with but what its labels say. */
	return series->cpu.n < (double)input->config->certify_fragments;
}

/* The share of a class's loss that lies in strange states. */
static double strange_share(const struct evidence_input *input, const struct variance *variance, enum vapro_class class)
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
	double lost;
	bool witness;
};

static int compare_rows(const void *a, const void *b)
{
	const struct row_loss *left = a, *right = b;

	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->workload > right->workload) - (left->workload < right->workload);
}

/* The share of a class's loss in calls that other ranks make faster, or that were faster before, beyond their scatter.
 */
static double proven_share(const struct evidence_input *input, const struct variance *variance, enum vapro_class class)
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

/*
 * Whether two states of one rank testify. It must be one rank: several ranks with one state each are
 * a phase of the program; and two states: several threads in one state are too.
 */
static bool two_states(const struct evidence_input *input, const struct variance *variance)
{
	const struct tally *tally = &variance->total;
	struct row_loss *losses = calloc(tally->series_count ? tally->series_count : 1, sizeof(*losses));
	size_t count = 0;
	bool found = false;

	/* Out of memory nothing is confirmed: silence is the lesser sin. */
	if (!losses || !(tally->pair_base > 0) || tally->pair_lost < input->config->evidence_share * tally->pair_base)
		goto cleanup;
	for (size_t i = 0; i < tally->series_count; i++) {
		const struct series *series = &input->series->series[tally->series[i].series];

		if (series->class == variance->class)
			losses[count++] = (struct row_loss){series->row, series->workload, tally->series[i].lost,
							    witness(input, &tally->series[i])};
	}
	if (count)
		qsort(losses, count, sizeof(*losses), compare_rows);
	for (size_t i = 0, end; i < count && !found; i = end) {
		uint32_t counted = SERIES_NONE;
		unsigned states = 0;
		double lost = 0;

		for (end = i; end < count && losses[end].row == losses[i].row; end++)
			lost += losses[end].lost;
		for (size_t j = i; j < end; j++) {
			if (losses[j].witness && losses[j].workload != counted && losses[j].lost >= MEANINGFUL * lost) {
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

/* All ranks of the job are in it and equally slow: the program or the whole machine, nobody can tell. */
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

/* What the kernel tells of waits for a CPU, without those for threads of the same process: nobody disturbs it then. */
static double told_by_others(const struct tally *tally, enum vapro_class class)
{
	double own = tally->crowd_base > 0 ? tally->crowd / tally->crowd_base : 0;

	return tally->cpu[class] * (1 - fmin(1, own));
}

/* Whether a wait of threads for each other was spent off the CPU mostly, so that others of them might have it. */
static bool gave_way(const struct variance *variance, double share)
{
	const struct tally *tally = &variance->total;
	double own = tally->crowd_base > 0 ? fmin(1, tally->crowd / tally->crowd_base) : 0;

	return (tally->factor[VAPRO_PREEMPTED] + tally->factor[VAPRO_WAKEUP_WAIT]) * own >=
	       share * tally->lost[VAPRO_COMMUNICATION];
}

static void say_crowded(struct variance *variance)
{
	say(variance, false, "its own threads had the CPU: there are more of them than CPUs they may use");
}

static void judge_computation(struct variance *variance, const struct evidence_input *input,
			      const struct variance_book *book)
{
	const struct tally *tally = &variance->total;
	double lost = tally->lost[VAPRO_COMPUTATION], share = input->config->evidence_share;
	double told = tally->cpu[VAPRO_COMPUTATION] + tally->faults + tally->frequency;
	enum alone alone;

	if (lost <= 0)
		return say(variance, false, "no loss left");
	if (told < share * lost && strange_share(input, variance, VAPRO_COMPUTATION) >= share)
		told += tally->blocked[VAPRO_COMPUTATION];
	if (told >= share * lost &&
	    told - tally->cpu[VAPRO_COMPUTATION] + told_by_others(tally, VAPRO_COMPUTATION) < OTHERS * share * lost) {
		say_crowded(variance);
		return;
	}
	/* What was proven stays so when its region grows. */
	if (told >= share * lost || (variance->told.confirmed && told >= input->config->min_lost_s * 1e9)) {
		say(variance, true, "%s %.0f %% of the loss (%s)",
		    tally->frequency > tally->cpu[VAPRO_COMPUTATION] ? "the machine attributes"
								     : "the kernel attributes",
		    100 * fmin(1, told / lost),
		    tally->frequency > tally->cpu[VAPRO_COMPUTATION] ? "a lower CPU frequency"
								     : "off the CPU, interrupts or faults");
		return;
	}
	if (tally->provisional >= share * lost) {
		say(variance, false, "too little was seen of this work to know what it usually takes");
		return;
	}
	variance->outlier = !variance->lasting && alone__repeated(variance, input) < share;
	if (variance->outlier) {
		say(variance, false, "nothing attributes it, and only one fragment of a rank was slow");
		return;
	}
	if (input->source == VAPRO_BY_INSTRUCTIONS) {
		say(variance, true, "the same instructions took longer");
		return;
	}
	variance->alike = all_alike(input, variance);
	if (variance->alike) {
		say(variance, false,
		    "all ranks slowed alike and the kernel tells nothing: the program may have "
		    "changed its work");
		return;
	}
	alone = alone__moved(variance, book, input);
	if (alone == ALONE_ALL) {
		variance->alike = true;
		say(variance, false,
		    "nearly all ranks slowed at once and nothing attributes it: the program may have "
		    "changed its work");
		return;
	}
	if (alone == ALONE_MOVED) {
		say(variance, false, "other ranks changed at the same time: work may have moved between them");
		return;
	}
	if (variance->row_count > 1) {
		variance->by_place = variance->lasting || alone__place(variance, input);
		say(variance, false,
		    variance->by_place ? "the ranks of one place are slow, and no others: less speed, or more work"
				       : "several ranks are slow: without counts it may be their work");
		return;
	}
	if (two_states(input, variance)) {
		say(variance, true, "different states of one rank alone are slow in the same bins");
		return;
	}
	say(variance, false, "the kernel tells only %.0f %% of the loss and no second state is slow in the same bins",
	    100 * fmax(0, told / lost));
}

static void judge_suspended(struct variance *variance, const struct evidence_input *input)
{
	double lost = variance->total.lost[VAPRO_COMMUNICATION], told = variance->total.cpu[VAPRO_COMMUNICATION];
	double share = input->config->evidence_share, least = input->config->min_lost_s * 1e9;

	if (lost <= 0)
		say(variance, false, "no loss left");
	else if (told >= share * lost && told_by_others(&variance->total, VAPRO_COMMUNICATION) < OTHERS * share * lost)
		say_crowded(variance);
	else if (told < share * lost)
		say(variance, false,
		    "the kernel tells only %.0f %% of the loss inside calls: the rest may be a late peer's",
		    100 * told / lost);
	/* the rest of the time it waited, as it would have on the CPU: what was taken from it must be worth it alone */
	else if (told < least)
		say(variance, false,
		    "the kernel tells %.0f %% of the loss inside calls (off the CPU), less than %.2g s",
		    100 * told / lost, least * 1e-9);
	else
		say(variance, true, "the kernel tells %.0f %% of the loss inside calls (off the CPU)",
		    100 * fmin(1, told / lost));
}

static void judge_io(struct variance *variance, const struct evidence_input *input)
{
	const struct tally *tally = &variance->total;
	double lost = tally->lost[VAPRO_IO], share = input->config->evidence_share;
	double told = tally->cpu[VAPRO_IO] + tally->blocked[VAPRO_IO];
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
		say(variance, false, "no loss left");
	else if (tally->blind >= share * lost)
		say(variance, false, "nothing like it was seen before: there is no reference");
	else if (peer >= share * lost)
		say(variance, false, "on a pipe, socket or terminal: the other end decides how long it takes");
	else if (slower >= share * lost)
		say(variance, true, "other ranks make the same calls faster");
	else if (tally->cpu[VAPRO_IO] < share * lost && strange_share(input, variance, VAPRO_IO) < share)
		say(variance, false, "these calls are as slow at other times");
	else if (told >= share * lost)
		say(variance, true, "the kernel tells %.0f %% of the loss (asleep or off the CPU)",
		    100 * fmin(1, told / lost));
	else if (known >= share * lost)
		say(variance, true, "calls with a history of at least %llu were faster before",
		    (unsigned long long)input->config->certify_fragments);
	else
		say(variance, false, "too few calls seen to know what they usually take");
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
	return dur >= CERTIFIED_HALF * other && lost <= (1 - input->config->threshold) * dur;
}

/* What all rows lost in computation while the region lasted, ns. */
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

static void judge_path(struct variance *variance, const struct evidence_input *input)
{
	double lost = variance->total.lost[VAPRO_COMMUNICATION];

	if (lost <= 0)
		say(variance, false, "no loss left");
	else if (input->partial)
		say(variance, false, "not all ranks of the job are seen: one of them may be late");
	else if (!computation_is_calm(variance, input))
		say(variance, false,
		    "the computation around it varies or is not certified: late peers cannot be excluded");
	else if (variance->total.provisional >= input->config->evidence_share * lost)
		say(variance, false, "too little was seen of these calls to know what they usually take");
	else if (proven_share(input, variance, VAPRO_COMMUNICATION) < input->config->evidence_share)
		say(variance, false, "these calls are as slow at other times");
	else
		say(variance, true, "equal calls take %.1f times as long as usual while no rank was late",
		    variance->total.dur[VAPRO_COMMUNICATION] / fmax(1, variance->total.ref[VAPRO_COMMUNICATION]));
}

static void judge_waiting(struct variance *variance, const struct evidence_input *input,
			  const struct variance_book *book)
{
	const struct tally *tally = &variance->total;
	double share = input->config->evidence_share;

	effect__waits(variance, input->map);
	if (variance->late >= variance->transfer) {
		variance->effect_of = effect__cause(variance, input->map, input->job, book);
		if (variance->effect_of)
			say(variance, false, "waiting for ranks that variance %llu holds up",
			    (unsigned long long)variance->effect_of);
		else
			say(variance, false, "waiting for late peers; no variance explains why they are late");
		return;
	}
	if (gave_way(variance, share))
		say_crowded(variance);
	else if (input->partial)
		say(variance, false, "not all ranks of the job are seen: one of them may be late");
	else if (input->job->row_count < 2)
		say(variance, false, "only one rank is seen: a peer may be late");
	else if (!computation_is_calm(variance, input))
		say(variance, false,
		    "the computation around it varies or is not certified: late peers cannot be excluded");
	else if (tally->blind < share * tally->lost[VAPRO_COMMUNICATION] && two_states(input, variance))
		say(variance, true,
		    "different calls are slow in the same bins for all members, while computation is calm");
	else if (tally->blind < share * tally->lost[VAPRO_COMMUNICATION] &&
		 proven_share(input, variance, VAPRO_COMMUNICATION) >= share &&
		 computation_lost(variance, input) <= share * variance->transfer)
		say(variance, true,
		    "equal calls are slow for all members by far more than their scatter, while "
		    "computation is calm");
	else
		say(variance, false, "no second call-site is slow in the same bins");
}

static enum vapro_class main_class(const struct variance *variance)
{
	enum vapro_class main = VAPRO_CLASSES;
	double most = 0;

	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		double lost = variance->total.lost[class];

		/* Of a call that was suspended the rest is waiting, which is as long for whoever is not disturbed. */
		if (class == VAPRO_COMMUNICATION && !variance->waiting && !variance->path)
			lost = WAITED_ANYWAY * fmin(lost, variance->total.cpu[class]);
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
				/* What was told last stays told, but it is nobody's alarm any more. */
				variance->alarm = false;
				variance->effect_of = variance->merged_into;
				if (variance->merged_into)
					say(variance, variance->confirmed, "went up in variance %u",
					    variance->merged_into);
				else
					say(variance, false, "withdrawn: better references explain it");
				continue;
			}
			variance->class = main_class(variance);
			variance->effect_of = 0;
			variance->by_place = variance->alike = variance->outlier = false;
			if (waiting)
				judge_waiting(variance, input, book);
			else if (variance->path)
				judge_path(variance, input);
			else if (variance->class == VAPRO_COMPUTATION)
				judge_computation(variance, input, book);
			else if (variance->class == VAPRO_IO)
				judge_io(variance, input);
			else
				judge_suspended(variance, input);
			variance->alarm = variance->confirmed && !variance->effect_of;
		}
	}
}

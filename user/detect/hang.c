// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/hang_private.h"

#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>

/* The first thread of a rank: that of its latest process. */
static const struct stg_thread *main_thread(const struct hang_look *look, size_t row)
{
	const struct stg_thread *thread = thread_after(look->input, look->job->rows[row].first), *found = NULL;

	for (; thread; thread = thread_after(look->input, thread->next)) {
		if (!thread->about.thread && (!found || thread->last_ns > found->last_ns))
			found = thread;
	}
	return found;
}

static const enum vapro_hang_condition condition_of_stop[VAPRO_STOPPED_KINDS] = {
    [VAPRO_STOPPED_UNKNOWN] = VAPRO_HANG_STOPPED_RANK,
    [VAPRO_STOPPED_SIGNAL] = VAPRO_HANG_STOPPED_RANK,
    [VAPRO_STOPPED_TRACER] = VAPRO_HANG_TRACED_RANK,
    [VAPRO_STOPPED_FREEZER] = VAPRO_HANG_FROZEN_RANK,
};

static struct hang_member member_of(const struct hang_look *look, const struct hang *hang, uint32_t row)
{
	const struct hang_input *input = look->input;
	const struct stg_row *of = &look->job->rows[row];
	const struct bundle_rec *rec = look->open[row] ? &input->open[look->open[row] - 1] : NULL;
	const struct series *call = rec ? &input->series->series[rec->series] : NULL;
	const struct stg_thread *thread = main_thread(look, row);
	struct hang_member member = {.row = row, .state = HANG_NO_STATE, .condition = VAPRO_HANG_ASLEEP};

	if (thread && thread->last_ns) {
		member.state = thread->last_state;
		member.since_ns = thread->last_ns;
	}
	if (call) {
		member.state = call->state;
		member.since_ns = rec->start_ns;
	}
	if (of->to_ns && of->to_ns <= input->end_ns) {
		member.condition = VAPRO_HANG_ENDED;
		member.since_ns = of->to_ns;
	} else if (thread && thread->stopped_to + 1 >= input->end_ns / VAPRO_BIN_NS)
		member.condition = condition_of_stop[thread->stopped_by];
	else if (look->heard && !look->heard[row])
		member.condition = VAPRO_HANG_NO_DATA;
	else if (call)
		member.condition =
		    hang_look__waits_for_input(input, call) ? VAPRO_HANG_WAITS_FOR_INPUT : VAPRO_HANG_IN_CALL;
	else if (!thread || !thread->work_from || hang->closed_ns >= look->progress_ns)
		member.condition = VAPRO_HANG_UNSEEN;
	return member;
}

/* Finds what each rank does. A rank of which nothing came since it was found does what it did then. */
static int find_members(struct hang *hang, const struct hang_look *look)
{
	size_t known = hang->open ? hang->count : 0;

	hang->count = 0;
	for (uint32_t row = 0; row < look->job->row_count; row++) {
		struct hang_member member;

		if (!is_rank(look->job, row))
			continue;
		if (grow(&hang->members, &hang->capacity, hang->count + 1, sizeof(*hang->members)))
			return -ENOMEM;
		member = member_of(look, hang, row);
		if (member.condition != VAPRO_HANG_NO_DATA || hang->count >= known ||
		    hang->members[hang->count].row != row)
			hang->members[hang->count] = member;
		hang->count++;
	}
	return 0;
}

/* Why no rank makes progress: by what is certain first. */
static enum vapro_hang_kind kind_of(const struct hang *hang, const struct hang_look *look)
{
	bool any[VAPRO_HANG_CONDITIONS] = {0};

	for (size_t i = 0; i < hang->count; i++)
		any[hang->members[i].condition] = true;
	if (any[VAPRO_HANG_FROZEN_RANK])
		return VAPRO_HANG_FROZEN;
	if (any[VAPRO_HANG_TRACED_RANK])
		return VAPRO_HANG_TRACED;
	if (any[VAPRO_HANG_STOPPED_RANK])
		return VAPRO_HANG_STOPPED;
	if (look->input->partial || any[VAPRO_HANG_UNSEEN] || any[VAPRO_HANG_NO_DATA])
		return VAPRO_HANG_NOT_KNOWN;
	return any[VAPRO_HANG_WAITS_FOR_INPUT] ? VAPRO_HANG_INPUT : VAPRO_HANG_CALLS;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		hash = (hash ^ (value >> 8 * i & 0xff)) * 0x100000001b3ULL; /* FNV-1a */
	return hash;
}

static uint64_t sign(const struct hang *hang)
{
	uint64_t hash = mix(0xcbf29ce484222325ULL, hang->kind);

	for (size_t i = 0; i < hang->count; i++)
		hash = mix(mix(mix(hash, hang->members[i].row), hang->members[i].condition), hang->members[i].state);
	return hash;
}

static void emit(struct hang *hang)
{
	hang->changed = true;
	hang->emitted_ns = hang->end_ns;
	hang->signature = sign(hang);
}

static uint64_t after_ns(const struct hang_input *input)
{
	return (uint64_t)(input->config->hang_after_s * 1e9);
}

static int find(struct hang *hang, const struct hang_look *look)
{
	const struct hang_input *input = look->input;
	bool any = false, at_work = input->end_ns < look->active_ns + after_ns(input);
	int error;

	for (size_t row = 0; row < look->job->row_count; row++)
		any |= look->open[row] && !look->job->rows[row].to_ns;
	if (!any || input->end_ns < look->progress_ns + after_ns(input))
		return 0;
	/* who uses a CPU may compute, or wait in a call that was not seen */
	if (at_work && hang->closed_ns < look->progress_ns)
		return 0;
	if (!hang->started) {
		error = hang_look__started(look, &hang->started);
		if (error || !hang->started)
			return error;
	}
	if (find_members(hang, look))
		return -ENOMEM;
	hang->kind = at_work ? VAPRO_HANG_NOT_KNOWN : kind_of(hang, look);
	hang->open = true;
	hang->id = ++*input->last_id;
	hang->revision = 0;
	hang->outcome = VAPRO_HANG_GOES_ON;
	hang->begin_ns = at_work ? look->progress_ns : look->active_ns;
	hang->end_ns = input->end_ns;
	emit(hang);
	return 0;
}

/* The first end of a fragment after the hang began, 0: none; *again: one began after it, too. */
static uint64_t first_progress(const struct hang *hang, const struct hang_look *look, bool *again)
{
	const struct hang_input *input = look->input;
	uint64_t first = 0;

	*again = false;
	for (size_t i = 0; i < input->rec_count; i++) {
		const struct bundle_rec *rec = &input->recs[i];

		if (stg__thread(input->stg, input->series->series[rec->series].thread)->about.thread ||
		    rec->end_ns <= hang->begin_ns)
			continue;
		*again |= rec->start_ns > hang->begin_ns;
		first = !first || rec->end_ns < first ? rec->end_ns : first;
	}
	return first;
}

/* When the last rank ended. */
static uint64_t end_of_job(const struct hang_look *look)
{
	uint64_t last = 0;

	for (size_t row = 0; row < look->job->row_count; row++)
		later(&last, is_rank(look->job, row) ? look->job->rows[row].to_ns : 0);
	return last;
}

/*
 * Ends a hang that is over, and returns whether it is. A call that a signal interrupts ends with its process, which is
 * no progress: where all ranks have ended, a fragment has to have begun after the hang, and elsewhere its rank lives
 * on.
 */
static bool is_over(struct hang *hang, const struct hang_look *look)
{
	bool again, over = stg__job_over(look->input->stg, look->input->job, UINT64_MAX);
	uint64_t first = first_progress(hang, look, &again), ended = end_of_job(look);

	if (over && !again) {
		hang->outcome = VAPRO_HANG_JOB_ENDED;
		hang->end_ns = ended > hang->begin_ns ? ended : hang->end_ns;
		return true;
	}
	if (!over && (look->resumed_ns <= hang->begin_ns || (hang->kind == VAPRO_HANG_NOT_KNOWN && !first)))
		return false;
	hang->outcome = VAPRO_HANG_RESUMED;
	hang->end_ns = first ? first : look->resumed_ns;
	return true;
}

static int go_on(struct hang *hang, const struct hang_look *look)
{
	if (!is_over(hang, look)) {
		bool at_work = look->active_ns > hang->begin_ns && hang->kind == VAPRO_HANG_NOT_KNOWN;

		if (find_members(hang, look))
			return -ENOMEM;
		hang->kind = at_work ? VAPRO_HANG_NOT_KNOWN : kind_of(hang, look);
		hang->end_ns = look->input->end_ns;
		hang->outcome = look->input->last ? VAPRO_HANG_UNWATCHED : VAPRO_HANG_GOES_ON;
	}
	hang->open = hang->outcome == VAPRO_HANG_GOES_ON;
	if (!hang->open || sign(hang) != hang->signature ||
	    hang->end_ns - hang->begin_ns >= 2 * (hang->emitted_ns - hang->begin_ns)) {
		hang->revision++;
		emit(hang);
	}
	return 0;
}

int hang__judge(struct hang *hang, const struct hang_input *input)
{
	const struct stg_job *job = stg__job(input->stg, input->job);
	struct hang_look look;
	int error;

	hang->changed = false;
	if (input->facts->governed_ns > 0 || input->facts->thinned_ns > 0)
		hang->closed_ns = input->end_ns;
	if (!hang->open &&
	    (!after_ns(input) || !input->open_count || input->end_ns < hang_look__last(input, job) + after_ns(input)))
		return 0;
	error = hang_look__begin(&look, input);
	if (error)
		return error;
	error = hang->open ? go_on(hang, &look) : find(hang, &look);
	if (!error && hang->changed && hang->open && input->last) {
		hang->open = false;
		hang->outcome = VAPRO_HANG_UNWATCHED;
	}
	hang_look__end(&look);
	return error;
}

size_t hang__bytes(const struct hang *hang)
{
	return hang->capacity * sizeof(*hang->members);
}

void hang__clear(struct hang *hang)
{
	free(hang->members);
	*hang = (struct hang){0};
}

void hang__use(const struct hang *hang, bool *over)
{
	for (size_t i = 0; i < hang->count; i++) {
		if (hang->members[i].state != HANG_NO_STATE)
			over[hang->members[i].state] = false;
	}
}

static const struct archive_column hang_columns[] = {
    ARCHIVE_ONE(struct hang, started),	  ARCHIVE_ONE(struct hang, open),      ARCHIVE_ONE(struct hang, closed_ns),
    ARCHIVE_ONE(struct hang, id),	  ARCHIVE_ONE(struct hang, revision),  ARCHIVE_ONE(struct hang, kind),
    ARCHIVE_ONE(struct hang, outcome),	  ARCHIVE_ONE(struct hang, begin_ns),  ARCHIVE_ONE(struct hang, end_ns),
    ARCHIVE_ONE(struct hang, emitted_ns), ARCHIVE_ONE(struct hang, signature),
};
static const struct archive_table hang_table = ARCHIVE_TABLE("hang", struct hang, hang_columns);

static const struct archive_column member_columns[] = {
    ARCHIVE_ONE(struct hang_member, row),
    ARCHIVE_ONE(struct hang_member, condition),
    ARCHIVE_ONE(struct hang_member, state),
    ARCHIVE_ONE(struct hang_member, since_ns),
};
static const struct archive_table member_table = ARCHIVE_TABLE("ranks of a hang", struct hang_member, member_columns);

void hang__archive(struct archive *archive, struct hang *hang, size_t rows, size_t states)
{
	archive__record(archive, &hang_table, hang);
	archive__rows(archive, &member_table, &hang->members, &hang->count, &hang->capacity);
	archive__check(archive,
		       hang->kind < VAPRO_HANG_KINDS && hang->outcome < VAPRO_HANG_OUTCOMES &&
			   hang->begin_ns <= hang->end_ns,
		       "a hang contradicts itself");
	for (size_t i = 0; archive__reads(archive) && i < hang->count && !archive__error(archive); i++) {
		const struct hang_member *at = &hang->members[i];

		archive__check(archive,
			       at->row < rows && at->condition < VAPRO_HANG_CONDITIONS &&
				   (at->state == HANG_NO_STATE || at->state < states),
			       "a rank of a hang is not known");
	}
}

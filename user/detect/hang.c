// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/hang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "model/job_series.h"

struct hang_look {
	const struct hang_input *input;
	const struct stg_job *job;
	uint32_t *open;		/* by row of a rank: its open call among the open bundles, + 1; 0: none */
	unsigned char *in_call; /* by thread of the run: 1 in an open call, 2 in one that may be at work */
	unsigned char *heard;	/* by row of a rank: something came of it in the window; NULL: its node was heard */
	uint64_t progress_ns;	/* the last end of a fragment that is progress, or begin of an open call */
	uint64_t active_ns;	/* the same, or the last use of a CPU outside of calls */
	uint64_t resumed_ns;	/* the last such time of ranks that live: work on end, or a fragment */
};

static inline bool is_rank(const struct stg_job *job, size_t row)
{
	return job->rows[row].leader == row;
}

/* The thread of a list of threads; NULL at its end. */
static inline const struct stg_thread *thread_after(const struct hang_input *input, uint32_t at)
{
	return at ? stg__thread(input->stg, at - 1) : NULL;
}

static inline void later(uint64_t *time_ns, uint64_t other_ns)
{
	if (other_ns > *time_ns)
		*time_ns = other_ns;
}

/* Looks at a job: when its ranks made progress last, in which calls they are, and who uses a CPU. */

#define RESUMED_BINS 5 /* 1 s of work on end outside of calls is progress; less, a look around */

bool hang__is_collective(const char *function)
{
	static const char *const names[] = {
	    "Barrier",	  "Bcast",     "Gather",     "Gatherv",	       "Scatter",
	    "Scatterv",	  "Allgather", "Allgatherv", "Alltoall",       "Alltoallv",
	    "Alltoallw",  "Reduce",    "Allreduce",  "Reduce_scatter", "Reduce_scatter_block",
	    "Scan",	  "Exscan",    "Comm_dup",   "Comm_split",     "Win_fence",
	    "Win_create", "Finalize",
	};
	size_t length = strlen(function);

	if (strncmp(function, "MPI_", 4))
		return false;
	if (!strncmp(function, "MPI_File_", 9))
		return length > 4 && !strcmp(function + length - 4, "_all");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(function + 4, names[i]))
			return true;
	}
	return false;
}

static const struct stg_state *state_of(const struct hang_input *input, const struct bundle_rec *rec)
{
	return stg__state(input->stg, input->series->series[rec->series].state);
}

/* The last end of a fragment of a first thread of a job's ranks; 0: none. */
static uint64_t last_progress(const struct hang_input *input, const struct stg_job *job)
{
	const struct stg_thread *thread;
	uint64_t last = 0;

	for (size_t row = 0; row < job->row_count; row++) {
		if (!is_rank(job, row))
			continue;
		for (thread = thread_after(input, job->rows[row].first); thread;
		     thread = thread_after(input, thread->next)) {
			if (!thread->about.thread && thread->last_ns > last)
				last = thread->last_ns;
		}
	}
	return last;
}

/* Notes fragments that have ended: of first threads, and of further ones that call the communication library. */
static void note_fragments(struct hang_look *look)
{
	const struct hang_input *input = look->input;
	struct series_ids ids = job_series__ids(input->series, input->job);

	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &input->series->series[ids.ids[i]];
		const struct stg_thread *thread = stg__thread(input->stg, series->thread);

		if (!series->members)
			continue;
		if (thread->about.thread && (series->class != VAPRO_COMMUNICATION ||
					     stg__state(input->stg, series->state)->group == STG_PROCESS))
			continue;
		later(&look->progress_ns, thread->last_ns);
		if (!look->job->rows[thread->row].to_ns)
			later(&look->resumed_ns, thread->last_ns);
	}
}

/* Finds the open call of each rank: one of the communication library rather than a wait for a thread of the rank. */
static void note_open(struct hang_look *look)
{
	const struct hang_input *input = look->input;

	for (size_t i = 0; i < input->open_count; i++) {
		const struct bundle_rec *rec = &input->open[i];
		const struct series *series = &input->series->series[rec->series];
		const struct stg_state *state = stg__state(input->stg, series->state);
		const struct stg_thread *thread = stg__thread(input->stg, series->thread);
		uint32_t rank = look->job->rows[thread->row].leader;
		const struct bundle_rec *known = look->open[rank] ? &input->open[look->open[rank] - 1] : NULL;
		bool own = state->group == STG_PROCESS;

		look->in_call[series->thread] = series->class == VAPRO_IO ? 2 : 1;
		if (thread->about.thread && (own || series->class != VAPRO_COMMUNICATION))
			continue;
		if (known && (own || state_of(input, known)->group != STG_PROCESS))
			continue;
		look->open[rank] = (uint32_t)i + 1;
		later(&look->progress_ns, rec->start_ns);
	}
}

/* Whether all ranks that live are in one function. */
static bool all_are_in(const struct hang_look *look, const char *function)
{
	char other[64];

	for (size_t row = 0; row < look->job->row_count; row++) {
		if (!is_rank(look->job, row) || look->job->rows[row].to_ns)
			continue;
		if (!look->open[row])
			return false;
		stg__label(state_of(look->input, &look->input->open[look->open[row] - 1])->about.labels, "function",
			   other, sizeof(other));
		if (strcmp(other, function))
			return false;
	}
	return true;
}

/* A call of IO that uses a CPU is at work, but for one of several ranks in which it may wait for one of them. */
static void exclude_waiting_io(struct hang_look *look)
{
	const struct hang_input *input = look->input;
	char function[64];

	for (size_t i = 0; i < input->open_count; i++) {
		uint32_t thread = input->series->series[input->open[i].series].thread;

		if (look->in_call[thread] != 2)
			continue;
		stg__label(state_of(input, &input->open[i])->about.labels, "function", function, sizeof(function));
		if (!strncmp(function, "MPI_", 4) && !all_are_in(look, function))
			look->in_call[thread] = 1;
	}
}

/* Notes when threads outside of calls, or at work in calls of IO, used a CPU. */
static void note_work(struct hang_look *look)
{
	const struct hang_input *input = look->input;

	look->active_ns = look->progress_ns;
	for (size_t row = 0; row < look->job->row_count; row++) {
		const struct stg_thread *thread = thread_after(input, look->job->rows[row].first);

		for (; thread; thread = thread_after(input, thread->next)) {
			uint64_t to_ns = thread->busy_to * VAPRO_BIN_NS;

			if (look->in_call[thread->about.id] == 1 || thread->to_ns)
				continue;
			to_ns = to_ns > input->end_ns ? input->end_ns : to_ns;
			later(&look->active_ns, to_ns);
			if (thread->busy_to - thread->busy_from >= RESUMED_BINS)
				later(&look->resumed_ns, to_ns);
		}
	}
}

/*
 * Whether something of the job is missing in the window: the facts of a process, of which each node sends those of all
 * that it watches, or blocks. Input without facts misses none.
 */
static bool misses_data(const struct hang_look *look)
{
	const struct coverage_facts *facts = look->input->facts;
	unsigned living = 0;

	for (size_t row = 0; row < look->job->row_count; row++)
		living += is_rank(look->job, row) && !look->job->rows[row].to_ns;
	return facts->processes && (facts->processes < living || facts->lost[VAPRO_LOST_PUBLISHED]);
}

static bool was_heard(const struct hang_look *look, const struct stg_thread *thread)
{
	uint64_t begin_ns = look->input->begin_ns;

	return look->in_call[thread->about.id] || thread->last_ns > begin_ns ||
	       thread->work_to >= begin_ns / VAPRO_BIN_NS + 2;
}

/* Where something is missing, finds out of which ranks anything came. Returns 0 or -ENOMEM. */
static int note_heard(struct hang_look *look)
{
	if (!misses_data(look))
		return 0;
	look->heard = calloc(look->job->row_count + 1, 1);
	if (!look->heard)
		return -ENOMEM;
	for (size_t row = 0; row < look->job->row_count; row++) {
		const struct stg_thread *thread = thread_after(look->input, look->job->rows[row].first);

		for (; thread; thread = thread_after(look->input, thread->next))
			look->heard[look->job->rows[row].leader] |= was_heard(look, thread);
	}
	return 0;
}

static void end_look(struct hang_look *look)
{
	free(look->open);
	free(look->heard);
	free(look->in_call);
}

/* Gathers it; end_look frees it. Returns 0 or -ENOMEM. */
static int begin_look(struct hang_look *look, const struct hang_input *input)
{
	*look = (struct hang_look){.input = input, .job = stg__job(input->stg, input->job)};
	look->open = calloc(look->job->row_count + 1, sizeof(*look->open));
	look->in_call = calloc(stg__threads(input->stg) + 1, 1);
	if (!look->open || !look->in_call) {
		end_look(look);
		return -ENOMEM;
	}
	note_fragments(look);
	note_open(look);
	if (note_heard(look)) {
		end_look(look);
		return -ENOMEM;
	}
	exclude_waiting_io(look);
	note_work(look);
	return 0;
}

/* Finds out whether each rank has completed a collective. Returns 0 or -ENOMEM. */
static int look_started(const struct hang_look *look, bool *started)
{
	const struct hang_input *input = look->input;
	struct series_ids ids = job_series__ids(input->series, input->job);
	unsigned char *met = calloc(look->job->row_count + 1, 1);
	char function[64];

	if (!met)
		return -ENOMEM;
	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &input->series->series[ids.ids[i]];

		if (series->class != VAPRO_COMMUNICATION || !series->members)
			continue;
		stg__label(stg__state(input->stg, series->state)->about.labels, "function", function, sizeof(function));
		met[look->job->rows[stg__thread(input->stg, series->thread)->row].leader] |=
		    hang__is_collective(function);
	}
	*started = look->job->row_count > 0;
	for (size_t row = 0; row < look->job->row_count; row++)
		*started &= !is_rank(look->job, row) || met[row];
	free(met);
	return 0;
}

/* Whether a call reads from a pipe or terminal that has never delivered anything to its thread. */
static bool waits_for_input(const struct hang_input *input, const struct series *call)
{
	static const char *const kinds[] = {"fifo", "pipe", "char", "chr", "tty"};
	const char *labels = stg__state(input->stg, call->state)->about.labels, *others;
	struct series_ids ids = job_series__ids(input->series, input->job);
	char kind[32], function[64], file[32], value[64];
	bool of_kind = false;

	stg__label(labels, "function", function, sizeof(function));
	stg__label(labels, "fd_kind", kind, sizeof(kind));
	stg__label(labels, "file", file, sizeof(file));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		of_kind |= !strcmp(kind, kinds[i]);
	if (call->class != VAPRO_IO || !of_kind || strncmp(function, "read", 4))
		return false;
	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &input->series->series[ids.ids[i]];

		if (series->thread != call->thread || series->class != VAPRO_IO || !series->members)
			continue;
		others = stg__state(input->stg, series->state)->about.labels;
		stg__label(others, "function", value, sizeof(value));
		if (strncmp(value, "read", 4))
			continue;
		stg__label(others, "fd_kind", value, sizeof(value));
		if (strcmp(value, kind))
			continue;
		stg__label(others, "file", value, sizeof(value));
		if (!strcmp(value, file))
			return false;
	}
	return true;
}

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
		member.condition = waits_for_input(input, call) ? VAPRO_HANG_WAITS_FOR_INPUT : VAPRO_HANG_IN_CALL;
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
		error = look_started(look, &hang->started);
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
	    (!after_ns(input) || !input->open_count || input->end_ns < last_progress(input, job) + after_ns(input)))
		return 0;
	error = begin_look(&look, input);
	if (error)
		return error;
	error = hang->open ? go_on(hang, &look) : find(hang, &look);
	if (!error && hang->changed && hang->open && input->last) {
		hang->open = false;
		hang->outcome = VAPRO_HANG_UNWATCHED;
	}
	end_look(&look);
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

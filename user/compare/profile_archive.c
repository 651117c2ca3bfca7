// SPDX-License-Identifier: GPL-2.0-or-later
/* Profiles as bytes: an ended profile, and the graph that its states and threads are in. */
#include "compare/profile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { STORED_SAMPLES = 32 }; /* of a thread, kind and size */
enum { STORED_BINS = 8192 };  /* of the least calls of a kind: 27 min; the begin of a longer run stands for all of it */
enum { CELLS_MOST = 4 << 20 }; /* of a profile that is read */

static const struct archive_column head_columns[] = {
    ARCHIVE_ONE(struct profile, by_instructions), ARCHIVE_ONE(struct profile, fragments),
    ARCHIVE_ONE(struct profile, unmeasured),	  ARCHIVE_ONE(struct profile, job),
    ARCHIVE_ONE(struct profile, other_jobs),
};
static const struct archive_table head_table = ARCHIVE_TABLE("profile", struct profile, head_columns);

static const struct archive_column cell_columns[] = {
    ARCHIVE_ONE(struct profile_cell, thread),	       ARCHIVE_ONE(struct profile_cell, kind),
    ARCHIVE_ONE(struct profile_cell, bucket),	       ARCHIVE_ONE(struct profile_cell, met),
    ARCHIVE_ONE(struct profile_cell, elapsed_s),       ARCHIVE_ONE(struct profile_cell, samples.batches),
    ARCHIVE_ONE(struct profile_cell, samples.members),
};
static const struct archive_table cell_table = ARCHIVE_TABLE("profile cells", struct profile_cell, cell_columns);

static const struct archive_column sample_columns[] = {
    ARCHIVE_ONE(struct sample, mean_ns),
    ARCHIVE_ONE(struct sample, size),
    ARCHIVE_ONE(struct sample, n),
};
static const struct archive_table sample_table = ARCHIVE_TABLE("profile samples", struct sample, sample_columns);

static const struct archive_column least_columns[] = {
    ARCHIVE_ONE(struct profile_least, kind),  ARCHIVE_ONE(struct profile_least, bucket),
    ARCHIVE_ONE(struct profile_least, first), ARCHIVE_ONE(struct profile_least, n),
    ARCHIVE_ONE(struct profile_least, size),
};
static const struct archive_table least_table =
    ARCHIVE_TABLE("profile least calls", struct profile_least, least_columns);

/* The least call of a bin. */
struct least_bin {
	float ns;
};
static const struct archive_column bin_columns[] = {ARCHIVE_ONE(struct least_bin, ns)};
static const struct archive_table bin_table = ARCHIVE_TABLE("profile bins", struct least_bin, bin_columns);

static const struct archive_column kind_columns[] = {
    ARCHIVE_ONE(struct profile_kind, state),
    ARCHIVE_ONE(struct profile_kind, mode),
    ARCHIVE_ONE(struct profile_kind, seconds),
    ARCHIVE_ONE(struct profile_kind, used),
};
static const struct archive_table kind_table = ARCHIVE_TABLE("profile kinds", struct profile_kind, kind_columns);

static const struct archive_column thread_columns[] = {
    ARCHIVE_ONE(struct profile_thread, first),	  ARCHIVE_ONE(struct profile_thread, end),
    ARCHIVE_ONE(struct profile_thread, own_s),	  ARCHIVE_ONE(struct profile_thread, least_s),
    ARCHIVE_ONE(struct profile_thread, none_s),	  ARCHIVE_ONE(struct profile_thread, width),
    ARCHIVE_MANY(struct profile_thread, cause_s),
};
static const struct archive_table thread_table =
    ARCHIVE_TABLE("profile threads", struct profile_thread, thread_columns);

static const struct archive_column slice_columns[] = {
    ARCHIVE_ONE(struct profile_slice, busy_ns),
    ARCHIVE_MANY(struct profile_slice, cause_ns),
};
static const struct archive_table slice_table = ARCHIVE_TABLE("profile slices", struct profile_slice, slice_columns);

static void check_samples(struct archive *archive, const struct samples *samples)
{
	archive__check(archive, samples->count <= SAMPLES_MOST, "a state has more samples than there may be");
	for (size_t k = 0; k < samples->count && !archive__error(archive); k++)
		archive__check(archive,
			       samples->items[k].n > 0 && samples->items[k].mean_ns >= 0 && samples->items[k].size >= 0,
			       "a sample is none");
}

static void archive_cells(struct archive *archive, struct profile *profile)
{
	archive__rows(archive, &cell_table, &profile->cells, &profile->cell_count, &profile->cell_capacity);
	for (size_t i = 0; i < profile->cell_count && !archive__error(archive); i++) {
		struct samples *samples = &profile->cells[i].samples;

		if (!archive__reads(archive))
			samples__reduce(samples, STORED_SAMPLES);
		archive__rows(archive, &sample_table, &samples->items, &samples->count, &samples->capacity);
		if (archive__reads(archive))
			check_samples(archive, samples);
	}
}

static void archive_leasts(struct archive *archive, struct profile *profile)
{
	archive__rows(archive, &least_table, &profile->leasts, &profile->least_count, &profile->least_capacity);
	for (size_t i = 0; i < profile->least_count && !archive__error(archive); i++) {
		struct profile_least *least = &profile->leasts[i];
		struct least_bin *bins = (struct least_bin *)least->ns;

		if (!archive__reads(archive) && least->count > STORED_BINS)
			least->count = STORED_BINS;
		archive__rows(archive, &bin_table, &bins, &least->count, &least->capacity);
		least->ns = (float *)bins;
		for (size_t k = 0; archive__reads(archive) && k < least->count && !archive__error(archive); k++)
			archive__check(archive, least->ns[k] >= 0 && least->ns[k] < 1e18F, "a least call is none");
	}
}

static void archive_threads(struct archive *archive, struct profile *profile)
{
	archive__array(archive, &thread_table, profile->threads, stg__threads(profile->stg));
	for (size_t i = 0; i < stg__threads(profile->stg) && !archive__error(archive); i++) {
		struct profile_thread *thread = &profile->threads[i];

		if (archive__reads(archive))
			thread->slices = archive__take(archive, PROFILE_SLICES, sizeof(*thread->slices));
		if (thread->slices)
			archive__array(archive, &slice_table, thread->slices, PROFILE_SLICES);
		archive__check(archive, thread->first <= thread->end && thread->end < UINT64_MAX / VAPRO_BIN_NS,
			       "a thread ends before it begins");
	}
}

/* Whether a number is that of a kind that is used. */
static bool is_kind(const struct profile *profile, uint32_t kind)
{
	return kind < profile->kind_capacity && profile->kinds[kind].used;
}

static void check_kinds(struct archive *archive, const struct profile *profile)
{
	for (size_t i = 0; i < profile->kind_capacity && !archive__error(archive); i++) {
		const struct profile_kind *kind = &profile->kinds[i];

		archive__check(archive,
			       !kind->used || (kind->state < stg__states(profile->stg) && kind->mode <= PROFILE_NONE &&
					       stg__state(profile->stg, kind->state)->kind == i),
			       "a kind of state is unknown");
	}
}

/* Checks what was read: numbers of threads, states and kinds. */
static void check(struct archive *archive, const struct profile *profile)
{
	archive__check(archive, profile->job < stg__jobs(profile->stg) && profile->cell_count <= CELLS_MOST,
		       "it has no job, or too many states");
	check_kinds(archive, profile);
	for (size_t i = 0; i < profile->cell_count && !archive__error(archive); i++)
		archive__check(archive,
			       profile->cells[i].thread < stg__threads(profile->stg) &&
				   is_kind(profile, profile->cells[i].kind),
			       "a state of a thread is unknown");
	for (size_t i = 0; i < profile->least_count && !archive__error(archive); i++)
		archive__check(archive, is_kind(profile, profile->leasts[i].kind), "a call is unknown");
}

void profile__archive(struct archive *archive, struct profile *profile)
{
	size_t kinds = profile->kind_capacity;

	archive__record(archive, &head_table, profile);
	stg__archive(archive, profile->stg);
	archive__rows(archive, &kind_table, &profile->kinds, &kinds, &profile->kind_capacity);
	if (archive__reads(archive)) {
		/* kinds are looked up by number, up to the capacity */
		profile->kind_capacity = kinds;
		profile->thread_capacity = stg__threads(profile->stg);
		profile->threads = archive__take(archive, profile->thread_capacity + 1, sizeof(*profile->threads));
		if (!profile->threads)
			profile->thread_capacity = 0;
	}
	if (profile->threads)
		archive_threads(archive, profile);
	archive_cells(archive, profile);
	archive_leasts(archive, profile);
	if (archive__reads(archive) && !archive__error(archive))
		check(archive, profile);
}

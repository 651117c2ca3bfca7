// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/intern.h"
#include "base/table.h"

enum { ENTRIES_MAX = 65536 }; /* places of samples that are retained for a job */
enum { INDEX_BYTES = 48 };    /* memory of an entry in the index, about */
enum { SITES_MOST = 16384 };  /* places ever listed in the run */

struct entry {
	uint32_t thread, state;
	uint32_t site; /* 0: unlisted */
	uint64_t samples;
};

struct inside {
	struct entry *entries;
	size_t count, room;
	struct table *index; /* thread and state, site -> entry */
	struct intern *sites;
	uint32_t site_count;
};

struct inside *inside__new(void)
{
	struct inside *inside = calloc(1, sizeof(*inside));

	if (!inside)
		return NULL;
	inside->index = table__new();
	inside->sites = intern__new();
	if (inside->index && inside->sites)
		return inside;
	inside__free(inside);
	return NULL;
}

void inside__free(struct inside *inside)
{
	if (!inside)
		return;
	free(inside->entries);
	table__free(inside->index);
	intern__free(inside->sites);
	free(inside);
}

/* The index may be old, where there was no memory for a new one. */
static bool is_entry(const struct inside *inside, uint32_t at, uint32_t thread, uint32_t state, uint32_t site)
{
	const struct entry *entry = &inside->entries[at];

	return at < inside->count && entry->thread == thread && entry->state == state && entry->site == site;
}

int inside__add(struct inside *inside, uint32_t thread, uint32_t state, const char *site, uint64_t samples)
{
	bool full = inside->count >= ENTRIES_MAX || inside->site_count >= SITES_MOST;
	uint32_t id = full ? 0 : intern__id(inside->sites, site), at;
	uint64_t whose = (uint64_t)thread << 32 | state;

	if (id == INTERN_NONE)
		return -ENOMEM;
	inside->site_count = id > inside->site_count ? id : inside->site_count;
	if (table__get(inside->index, whose, id, &at) && is_entry(inside, at, thread, state, id)) {
		inside->entries[at].samples += samples;
		return 0;
	}
	if (inside->count >= 2 * ENTRIES_MAX)
		return 0;
	if (grow(&inside->entries, &inside->room, inside->count + 1, sizeof(*inside->entries)) ||
	    table__put(inside->index, whose, id, (uint32_t)inside->count))
		return -ENOMEM;
	inside->entries[inside->count++] = (struct entry){thread, state, id, samples};
	return 0;
}

bool inside__is_open(const struct variance *variance)
{
	return variance->state != VAPRO_REGION_CLOSED && !variance->over && !variance->merged_into &&
	       !variance->small && !variance->effect_of && variance->class == VAPRO_COMPUTATION;
}

/* Returns a mark for each row of the job, none set; free() them. NULL when out of memory. */
static bool *mark_rows(const struct stg_job *about)
{
	return calloc(about->row_count + 1, sizeof(bool));
}

static void add_rows(bool *marks, const uint32_t *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		marks[rows[i]] = true;
}

static bool begins_at(const struct stg_state *state, const char *const *from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(state->about.to, from[i]))
			return true;
	return !count;
}

/* Orders by place. */
static int compare_sites(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return (left->site > right->site) - (left->site < right->site);
}

/* Orders by samples, then by text: equal for every order of events. */
static int compare_samples(const void *a, const void *b)
{
	const struct result_inside *left = a, *right = b;

	if (left->samples != right->samples)
		return left->samples > right->samples ? -1 : 1;
	return strcmp(left->site, right->site);
}

uint32_t inside__find(const struct inside *inside, const struct stg *stg, uint32_t job, const uint32_t *rows,
		      size_t row_count, const char *const *from, uint32_t from_count, struct result_inside *places,
		      uint32_t room, uint64_t *samples)
{
	struct entry *found = inside->count ? calloc(inside->count, sizeof(*found)) : NULL;
	struct result_inside *all = found ? calloc(inside->count, sizeof(*all)) : NULL;
	bool *marks = all ? mark_rows(stg__job(stg, job)) : NULL;
	size_t count = 0;
	uint32_t live = 0;

	*samples = 0;
	if (marks)
		add_rows(marks, rows, row_count);
	for (size_t i = 0; marks && i < inside->count; i++) {
		const struct entry *entry = &inside->entries[i];
		const struct stg_thread *thread = stg__thread(stg, entry->thread);

		if (thread->job == job && marks[thread->row] &&
		    begins_at(stg__state(stg, entry->state), from, from_count))
			found[count++] = *entry;
	}
	if (count)
		qsort(found, count, sizeof(*found), compare_sites);
	for (size_t i = 0; i < count; i++) {
		*samples += found[i].samples;
		if (!found[i].site)
			continue;
		if (i && found[i].site == found[i - 1].site)
			all[live - 1].samples += found[i].samples;
		else
			all[live++] =
			    (struct result_inside){intern__text(inside->sites, found[i].site), found[i].samples};
	}
	if (live)
		qsort(all, live, sizeof(*all), compare_samples);
	live = live < room ? live : room;
	if (live)
		memcpy(places, all, live * sizeof(*all));
	free(found);
	free(all);
	free(marks);
	return live;
}

static bool keeps_none(const void *ctx, uint32_t value)
{
	(void)ctx;
	(void)value;
	return false;
}

/*
 * Makes the index. Returns 0 or -ENOMEM: then samples are added to entries of their own, which are summed up all the
 * same.
 */
static int index_again(struct inside *inside)
{
	int error = table__prune(inside->index, keeps_none, NULL);

	for (size_t i = 0; !error && i < inside->count; i++)
		error = table__put(inside->index, (uint64_t)inside->entries[i].thread << 32 | inside->entries[i].state,
				   inside->entries[i].site, (uint32_t)i);
	return error;
}

void inside__retain(struct inside *inside, const struct stg *stg, uint32_t job, const struct variance_book *book)
{
	bool *marks = inside->count ? mark_rows(stg__job(stg, job)) : NULL;
	size_t live = 0;

	if (!marks)
		return;
	for (size_t i = 0; i < book->count; i++)
		if (inside__is_open(&book->variances[i]))
			add_rows(marks, book->variances[i].rows, book->variances[i].row_count);
	for (size_t i = 0; i < inside->count; i++) {
		const struct entry *entry = &inside->entries[i];
		const struct stg_thread *thread = stg__thread(stg, entry->thread);

		if (thread->job != job || marks[thread->row])
			inside->entries[live++] = *entry;
	}
	free(marks);
	if (live == inside->count)
		return;
	inside->count = live;
	index_again(inside);
}

void inside__use(const struct inside *inside, bool *over)
{
	for (size_t i = 0; i < inside->count; i++)
		over[inside->entries[i].state] = false;
}

static const struct archive_column entry_columns[] = {
    ARCHIVE_ONE(struct entry, thread),
    ARCHIVE_ONE(struct entry, state),
    ARCHIVE_ONE(struct entry, site),
    ARCHIVE_ONE(struct entry, samples),
};
static const struct archive_table entry_table = ARCHIVE_TABLE("inside", struct entry, entry_columns);

void inside__archive(struct archive *archive, struct inside *inside, const struct stg *stg)
{
	archive__texts(archive, inside->sites);
	archive__rows(archive, &entry_table, &inside->entries, &inside->count, &inside->room);
	if (!archive__reads(archive))
		return;
	inside->site_count = (uint32_t)intern__count(inside->sites) - 1;
	for (size_t i = 0; i < inside->count; i++) {
		const struct entry *entry = &inside->entries[i];

		archive__check(archive,
			       entry->thread < stg__threads(stg) && entry->state < stg__states(stg) &&
				   entry->site <= inside->site_count,
			       "samples have an unknown thread, state or place");
	}
	if (!archive__error(archive) && index_again(inside))
		archive__fail(archive, -ENOMEM, "out of memory");
}

size_t inside__bytes(const struct inside *inside)
{
	return sizeof(*inside) + inside->room * (sizeof(*inside->entries) + INDEX_BYTES) + intern__bytes(inside->sites);
}

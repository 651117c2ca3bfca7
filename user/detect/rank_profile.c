// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/rank_profile.h"

#include "base/grow.h"
#include "base/table.h"
#include "model/job_series.h"
#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of a class; of computation the only one, without a name. */
struct function {
	char name[PROFILE_FUNCTION_NAME];
	uint32_t class;
};

/* The time of a rank in a function. */
struct part {
	uint32_t row, function;
	double ns, covered_ns, waiting_ns, calls;
};

/* The whole time of a rank. */
struct whole {
	double wall_ns;
};

struct rank_profile {
	struct function *functions;
	size_t function_count, function_capacity;
	struct part *parts;
	size_t part_count, part_capacity;
	struct table *index;  /* of parts, by row and function */
	struct whole *wholes; /* by row of the first thread */
	size_t whole_count, whole_capacity;
};

enum { NOT_LOOKED_UP = 0 }; /* of a state; others: the number of its function, + 1 */

void rank_profile__free(struct rank_profile *profile)
{
	if (!profile)
		return;
	free(profile->functions);
	free(profile->parts);
	table__free(profile->index);
	free(profile->wholes);
	free(profile);
}

size_t rank_profile__bytes(const struct rank_profile *profile)
{
	return profile ? sizeof(*profile) + profile->function_capacity * sizeof(*profile->functions) +
			     profile->part_capacity * sizeof(*profile->parts) + table__bytes(profile->index) +
			     profile->whole_capacity * sizeof(*profile->wholes)
		       : 0;
}

static struct rank_profile *new_profile(void)
{
	struct rank_profile *profile = calloc(1, sizeof(*profile));

	if (profile)
		profile->index = table__new();
	if (!profile || profile->index)
		return profile;
	free(profile);
	return NULL;
}

/* Writes the name of the function that a state's time is in; "" of computation. */
static void name_of(const struct vapro_state *state, char name[PROFILE_FUNCTION_NAME])
{
	const char *at = state->labels;

	*name = '\0';
	if (state->class == VAPRO_COMPUTATION)
		return;
	if (state->from) {
		snprintf(name, PROFILE_FUNCTION_NAME, "%s", PROFILE_POLLING);
		return;
	}
	while (at && strncmp(at, "function=", 9) != 0) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (at)
		snprintf(name, PROFILE_FUNCTION_NAME, "%.*s", (int)strcspn(at + 9, " "), at + 9);
	else
		snprintf(name, PROFILE_FUNCTION_NAME, "%s", PROFILE_OTHER);
}

/* Finds a function, or makes it. Returns its number, or UINT32_MAX when out of memory. */
static uint32_t function_of(struct rank_profile *profile, enum vapro_class class, const char *name)
{
	struct function *functions;
	size_t count = profile->function_count;

	for (size_t i = 0; i < count; i++)
		if (profile->functions[i].class == class && !strcmp(profile->functions[i].name, name))
			return (uint32_t)i;
	if (count >= PROFILE_FUNCTIONS && *name && strcmp(name, PROFILE_OTHER) != 0)
		return function_of(profile, class, PROFILE_OTHER);
	if (grow(&profile->functions, &profile->function_capacity, count + 1, sizeof(*profile->functions)))
		return UINT32_MAX;
	functions = profile->functions;
	functions[count].class = class;
	snprintf(functions[count].name, sizeof(functions[count].name), "%s", name);
	profile->function_count++;
	return (uint32_t)count;
}

/* Finds the function of a state, which is looked up once in a window. Returns 0 or -ENOMEM. */
static int look_up(struct rank_profile *profile, const struct vapro_state *state, uint8_t *known, uint32_t *function)
{
	char name[PROFILE_FUNCTION_NAME];

	if (*known == NOT_LOOKED_UP) {
		name_of(state, name);
		*function = function_of(profile, state->class, name);
		if (*function == UINT32_MAX)
			return -ENOMEM;
		*known = (uint8_t)(*function + 1);
	}
	*function = *known - 1U;
	return 0;
}

static struct part *part_of(struct rank_profile *profile, uint32_t row, uint32_t function)
{
	uint32_t at;

	if (table__get(profile->index, row, function, &at))
		return &profile->parts[at];
	at = (uint32_t)profile->part_count;
	if (grow(&profile->parts, &profile->part_capacity, (size_t)at + 1, sizeof(*profile->parts)) ||
	    table__put(profile->index, row, function, at))
		return NULL;
	profile->part_count++;
	profile->parts[at] = (struct part){.row = row, .function = function};
	return &profile->parts[at];
}

/* Adds the new part of a history. */
static void add_series(struct part *part, const struct series *series)
{
	double uncovered = 0;

	for (int reason = 0; reason < VAPRO_UNCOVERED_REASONS; reason++)
		uncovered += series->window_uncovered_ns[reason];
	part->ns += series->window_ns;
	part->covered_ns += fmax(0, series->window_ns - uncovered);
	part->calls += series->window_n;
	if (series->class == VAPRO_COMMUNICATION && series->part_ns > 0)
		part->waiting_ns += fmax(0, series->window_ns - series->part_ns * series->window_n);
}

/* Adds a history to the part of its rank and function. Returns 0 or -ENOMEM. */
static int add_history(struct rank_profile *profile, const struct series_book *book, const struct series *series,
		       uint8_t *known)
{
	const struct stg_job *about = stg__job(book->stg, series->job);
	uint32_t function;
	struct part *part;

	if (look_up(profile, &stg__state(book->stg, series->state)->about, &known[series->state], &function))
		return -ENOMEM;
	part = part_of(profile, about->rows[series->row].leader, function);
	if (part)
		add_series(part, series);
	return part ? 0 : -ENOMEM;
}

static int add_parts(struct rank_profile *profile, const struct series_book *book, uint32_t job)
{
	uint8_t *known = calloc(stg__states(book->stg) + 1, sizeof(*known));
	struct series_ids ids = job_series__ids(book, job);
	int error = known ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < ids.count; i++)
		if (book->series[ids.ids[i]].window_ns > 0)
			error = add_history(profile, book, &book->series[ids.ids[i]], known);
	free(known);
	return error;
}

/* Adds computation of former windows, which were over before it could be evaluated. */
static int add_before(struct rank_profile *profile, uint32_t row, double ns)
{
	uint32_t function = ns > 0 ? function_of(profile, VAPRO_COMPUTATION, "") : UINT32_MAX;
	struct part *part = ns > 0 && function != UINT32_MAX ? part_of(profile, row, function) : NULL;

	if (part)
		part->covered_ns += ns;
	return ns > 0 && !part ? -ENOMEM : 0;
}

int rank_profile__add(struct rank_profile **profile, const struct series_book *book, uint32_t job,
		      const struct coverage *coverage)
{
	const struct stg_job *about = stg__job(book->stg, job);
	struct rank_profile *own;
	int error = 0;

	if (!*profile)
		*profile = new_profile();
	own = *profile;
	if (!own || grow(&own->wholes, &own->whole_capacity, coverage->row_count, sizeof(*own->wholes)))
		return -ENOMEM;
	own->whole_count = coverage->row_count > own->whole_count ? coverage->row_count : own->whole_count;
	for (uint32_t row = 0; !error && row < coverage->row_count; row++) {
		own->wholes[about->rows[row].leader].wall_ns += coverage__row_wall(coverage, row);
		error = add_before(own, about->rows[row].leader, coverage->rows[row].before_ns);
	}
	return error ? error : add_parts(own, book, job);
}

static int compare_parts(const void *a, const void *b)
{
	const struct result_profile_part *left = a, *right = b;

	if (left->seconds != right->seconds)
		return left->seconds > right->seconds ? -1 : 1;
	if (left->class != right->class)
		return left->class < right->class ? -1 : 1;
	return strcmp(left->function ? left->function : "", right->function ? right->function : "");
}

uint32_t rank_profile__of(const struct rank_profile *profile, uint32_t row, struct result_profile_part *parts,
			  double *wall_ns)
{
	uint32_t count = 0, at;

	*wall_ns = row < profile->whole_count ? profile->wholes[row].wall_ns : 0;
	for (uint32_t i = 0; i < profile->function_count; i++) {
		const struct function *function = &profile->functions[i];
		const struct part *part;

		if (!table__get(profile->index, row, i, &at))
			continue;
		part = &profile->parts[at];
		parts[count++] = (struct result_profile_part){
		    .class = (enum vapro_class)function->class,
		    .function = *function->name ? function->name : NULL,
		    .calls = part->calls,
		    /* of input without open fragments, what was evaluated before the window in which it ended */
		    .seconds = fmax(part->ns, part->covered_ns) / 1e9,
		    .waiting_seconds = part->waiting_ns / 1e9,
		    .covered_seconds = part->covered_ns / 1e9,
		};
	}
	if (count)
		qsort(parts, count, sizeof(*parts), compare_parts);
	return count;
}

static const struct archive_column function_columns[] = {
    ARCHIVE_MANY(struct function, name),
    ARCHIVE_ONE(struct function, class),
};
static const struct archive_table function_table =
    ARCHIVE_TABLE("profile functions", struct function, function_columns);

static const struct archive_column part_columns[] = {
    ARCHIVE_ONE(struct part, row),	  ARCHIVE_ONE(struct part, function),	ARCHIVE_ONE(struct part, ns),
    ARCHIVE_ONE(struct part, covered_ns), ARCHIVE_ONE(struct part, waiting_ns), ARCHIVE_ONE(struct part, calls),
};
static const struct archive_table part_table = ARCHIVE_TABLE("profile parts", struct part, part_columns);

static const struct archive_column whole_columns[] = {ARCHIVE_ONE(struct whole, wall_ns)};
static const struct archive_table whole_table = ARCHIVE_TABLE("profile ranks", struct whole, whole_columns);

/* Checks what was read, and makes the index. */
static void check(struct archive *archive, struct rank_profile *profile, size_t rows)
{
	archive__check(archive,
		       profile->function_count <= PROFILE_FUNCTIONS + VAPRO_CLASSES && profile->whole_count <= rows,
		       "a profile has more functions or ranks than there may be");
	for (size_t i = 0; i < profile->function_count && !archive__error(archive); i++)
		archive__check(archive, profile->functions[i].class < VAPRO_CLASSES, "a function has no class");
	for (size_t i = 0; i < profile->part_count && !archive__error(archive); i++) {
		const struct part *part = &profile->parts[i];
		uint32_t at;

		archive__check(archive,
			       part->row < profile->whole_count && part->function < profile->function_count &&
				   !table__get(profile->index, part->row, part->function, &at),
			       "a profile has an unknown rank or function, or one twice");
		if (!archive__error(archive) && table__put(profile->index, part->row, part->function, (uint32_t)i))
			archive__fail(archive, -ENOMEM, "out of memory");
	}
}

void rank_profile__archive(struct archive *archive, struct rank_profile **profile, size_t rows)
{
	uint64_t there = *profile != NULL;

	archive__number(archive, &there);
	if (!there || archive__error(archive))
		return;
	if (archive__reads(archive)) {
		*profile = new_profile();
		if (!*profile) {
			archive__fail(archive, -ENOMEM, "out of memory");
			return;
		}
	}
	archive__rows(archive, &function_table, &(*profile)->functions, &(*profile)->function_count,
		      &(*profile)->function_capacity);
	archive__rows(archive, &part_table, &(*profile)->parts, &(*profile)->part_count, &(*profile)->part_capacity);
	archive__rows(archive, &whole_table, &(*profile)->wholes, &(*profile)->whole_count,
		      &(*profile)->whole_capacity);
	if (archive__reads(archive) && !archive__error(archive))
		check(archive, *profile, rows);
}

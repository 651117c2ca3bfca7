// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/obstacles.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/printable.h"

struct obstacle {
	enum obstacle_kind kind;
	char *job; /* NULL: of no known job */
	char *text;
	uint32_t user, pid;
	int64_t rank;
};

struct obstacles {
	struct obstacle *items;
	size_t count, capacity;
	uint64_t more; /* that came when there were OBSTACLES_MOST */
};

static const struct {
	const char *code; /* of the warning that reports it; NULL: records of processes do */
	const char *help;
} kinds[OBSTACLE_KINDS] = {
    [OBSTACLE_NO_CALLS] = {"no_calls",
			   "to find out what it waits for or computes; --function NAME, which watches functions of a "
			   "program that rarely calls MPI"},
    [OBSTACLE_TRANSLATOR] = {"translator", "the program without its translator"},
    [OBSTACLE_REFUSED] = {NULL, NULL},
    [OBSTACLE_TRACED] = {"traced", "a run without the debugger or tracer"},
    [OBSTACLE_NO_MPI] = {"rank_without_mpi",
			 "--exe NAME, which watches a process without MPI; --function NAME, which watches functions of "
			 "the program"},
    [OBSTACLE_CODE_MOVED] = {"code_moved", "a run without huge pages for the code of libraries and executables"},
    [OBSTACLE_PARTLY] = {NULL,
			 "--function NAME, which watches functions of the program; instead of a shell or a launcher, "
			 "the PIDs of the ranks"},
};

static char *copy_of(const char *text)
{
	return text ? printable(strdup(text)) : NULL;
}

static void clear(struct obstacle *obstacle)
{
	free(obstacle->job);
	free(obstacle->text);
}

static bool is_of(const struct obstacle *obstacle, const char *job, uint32_t user)
{
	return !job || (obstacle->job && !strcmp(obstacle->job, job) && obstacle->user == user);
}

struct obstacles *obstacles__new(void)
{
	return calloc(1, sizeof(struct obstacles));
}

int obstacles__add(struct obstacles *obstacles, enum obstacle_kind kind, const char *job, uint32_t user, uint32_t pid,
		   int64_t rank, const char *text)
{
	struct obstacle own = {.kind = kind, .user = user, .pid = pid, .rank = rank};

	/* a process may be refused again and again */
	for (size_t i = 0; i < obstacles->count; i++)
		if (obstacles->items[i].kind == kind && obstacles->items[i].pid == pid)
			return 0;
	if (obstacles->count >= OBSTACLES_MOST) {
		obstacles->more++;
		return 0;
	}
	own.job = copy_of(job);
	own.text = copy_of(text);
	if (!own.text || (job && !own.job) ||
	    grow(&obstacles->items, &obstacles->capacity, obstacles->count + 1, sizeof(own))) {
		clear(&own);
		return -ENOMEM;
	}
	obstacles->items[obstacles->count++] = own;
	return 0;
}

void obstacles__watched(struct obstacles *obstacles, const char *job, uint32_t user, uint32_t pid, int64_t rank)
{
	size_t left = 0;

	for (size_t i = 0; i < obstacles->count; i++) {
		struct obstacle *at = &obstacles->items[i];
		bool refused = at->kind == OBSTACLE_REFUSED;

		if (refused && (at->pid == pid || (rank >= 0 && at->rank == rank && is_of(at, job, user))))
			clear(at);
		else
			obstacles->items[left++] = *at;
	}
	obstacles->count = left;
}

const char *obstacles__first(const struct obstacles *obstacles, const char *job, uint32_t user,
			     enum obstacle_kind *kind, size_t *count)
{
	const struct obstacle *first = NULL;

	*count = 0;
	for (size_t i = 0; i < obstacles->count; i++) {
		const struct obstacle *at = &obstacles->items[i];

		if (!is_of(at, job, user))
			continue;
		++*count;
		if (!first || at->kind < first->kind)
			first = at;
	}
	*kind = first ? first->kind : OBSTACLE_KINDS;
	return first ? first->text : NULL;
}

const char *obstacles__text(const struct obstacles *obstacles, size_t n)
{
	return n < obstacles->count ? obstacles->items[n].text : NULL;
}

uint64_t obstacles__count(const struct obstacles *obstacles)
{
	return obstacles->count + obstacles->more;
}

enum obstacle_kind obstacles__of_warning(const char *code)
{
	int kind = 0;

	while (kind < OBSTACLE_KINDS && (!kinds[kind].code || strcmp(kinds[kind].code, code)))
		kind++;
	return (enum obstacle_kind)kind;
}

const char *obstacles__help(enum obstacle_kind kind)
{
	return kinds[kind].help;
}

void obstacles__free(struct obstacles *obstacles)
{
	if (!obstacles)
		return;
	for (size_t i = 0; i < obstacles->count; i++)
		clear(&obstacles->items[i]);
	free(obstacles->items);
	free(obstacles);
}

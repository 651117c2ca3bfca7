/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that are no targets and map what targets map. One that runs under a binary translator would be killed by a
 * probe (translator.h), and any other pays for each hit: links that reach them are made again for each target alone.
 */
#ifndef VAPRO_BYSTANDERS_H
#define VAPRO_BYSTANDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BYSTANDERS_TRANSLATORS 64 /* processes; where there are more, all processes are inspected when these ended */

struct bystanders {
	pid_t translators[BYSTANDERS_TRANSLATORS];
	size_t count;
	bool overflown;	      /* there were more */
	uint32_t most;	      /* targets of an image that have links of their own */
	bool dropped;	      /* some were dropped for that bound */
	uint64_t until_ns;    /* no link for all processes before; CLOCK_MONOTONIC */
	uint64_t hits;	      /* of untracked processes, at second_ns */
	uint64_t second_ns;   /* begin of the second in which their hits are counted */
	uint64_t window_hits; /* at the last window's end */
};

struct process_mapping;
struct tracker;

/* Inspects all processes for translators: at the start, and where mappings were lost. */
void tracker__find_translators(struct tracker *tracker, uint64_t now_ns);

/* Handles a file mapped as code: where it is a translator's, no link reaches its process any more. */
void tracker__translated(struct tracker *tracker, pid_t pid, const char *path, uint64_t now_ns);

/* Whether targets get links of their own for the sake of others, whatever these cost. */
bool tracker__spares_bystanders(const struct tracker *tracker, uint64_t now_ns);

/*
 * Makes room for links of a process of a user's own on an image, where another user's processes have more of the room
 * than this user's: one of them that calls least is dropped.
 */
void tracker__make_room(struct tracker *tracker, const struct process_mapping *mapping, uid_t uid, uint64_t now_ns);

/* Notes translators that ended, and what others than targets pay. To be called in each pass. */
void tracker__watch_bystanders(struct tracker *tracker, uint64_t now_ns);

#endif

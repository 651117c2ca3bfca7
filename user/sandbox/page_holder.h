/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of users' files that are to stay in memory while a breakpoint is set: a page that is not there is read below
 * the kernel's own locks, which raises its warnings and stops what needs these locks, each fork among others. A process
 * of its own maps and locks them, since that waits for the file system (page_holder_child.c). It is waited for 250 ms
 * at most, less where its user's files were waited for already (confine_owner.h). One that does not answer by then is
 * that user's until it does: other files of the user are not held meanwhile, and another process holds those of others.
 */
#ifndef VAPRO_PAGE_HOLDER_H
#define VAPRO_PAGE_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE_HOLDER_OFFSETS_MAX 4096

/* All zeros: nothing is held. */
struct page_hold {
	uint64_t id;
	pid_t holder;
};

/*
 * Holds the pages of a file at some offsets, at most PAGE_HOLDER_OFFSETS_MAX; further ones are not held. owner: user of
 * a process that maps it. 0, also where the file cannot be mapped or no process could be started, which leaves it to
 * the kernel; -EINPROGRESS where it takes longer, -ETIMEDOUT where the file system does not answer.
 */
int page_holder__hold(struct page_hold *hold, int file, uid_t owner, const uint64_t *offsets, size_t count);

/* Whether a process that holds pages waits for a user's file; held: also where its file system does not answer. */
bool page_holder__waits(uid_t owner, bool held);

/* Releases what is held. */
void page_holder__release(struct page_hold *hold);

#endif

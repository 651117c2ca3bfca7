/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports every executable mapping on the node when it is made, a late dlopen's too (ARCHITECTURE
 * section 3, finding images): a dummy software perf event per CPU counts nothing and only reports
 * mmap. Nothing is scanned and no process is slowed beyond the record it writes; a full buffer loses
 * records and reports the loss, so that the caller scans once. exec, exit and threads come from the
 * BPF programs.
 */
#ifndef VAPRO_FINDER_H
#define VAPRO_FINDER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct finder;

/* NULL with a sentence in err where the kernel refuses the events. */
struct finder *finder__new(char *err, size_t err_size);
void finder__free(struct finder *finder);

/* Receives a file that a process mapped as code. path is as the process sees it: any text, cut where it is long. */
typedef void (*finder_mapped)(void *ctx, pid_t pid, const char *path);

/*
 * Reports what was mapped since the last call. Returns the number of mappings reported; *lost (may be
 * NULL) is the number that found a buffer full.
 */
size_t finder__drain(struct finder *finder, finder_mapped mapped, void *ctx, uint64_t *lost);

/* Gets what to poll: one becomes readable when its buffer is half full. Valid as long as the finder. */
const struct pollfd *finder__fds(const struct finder *finder, size_t *count);

#endif

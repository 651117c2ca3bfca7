/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The diagnosis in one paragraph: "ranks 8-15, all on socket 1, lost 4.1 s: 97 % backend bound, nearly
 * all of it memory, nearly all of that dram." Rules over the factors, widest first.
 */
#ifndef VAPRO_VERDICT_H
#define VAPRO_VERDICT_H

#include <vapro/analysis.h>

#define VERDICT_MOSTLY 0.6 /* part of a loss, or of the interference, of which texts say that it is most */

/*
 * Writes what rows share, as a part of a sentence: ", all on host n2, in cgroup /job,"; "" where nothing is shared.
 * At most size bytes are written.
 */
void verdict__place(const struct result_shared *shared, uint32_t count, uint32_t rows, char *buf, size_t size);

/* Writes the verdict, at most size bytes, of a variance whose diagnosis is complete otherwise. */
void verdict__write(const struct result_variance *variance, bool waiting, bool transfer, char *buf, size_t size);

/*
 * Writes the verdict and the advice, at most size bytes each, of a variance that is none any more: it was merged into
 * the one that it is an effect of, or withdrawn.
 */
void verdict__write_gone(const struct result_variance *variance, char *verdict, char *advice, size_t size);

#endif

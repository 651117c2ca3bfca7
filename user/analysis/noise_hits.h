/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whom a noise component hit, by rank: the same for components that the scheduler shows and for those of fragments. */
#ifndef VAPRO_ANALYSIS_NOISE_HITS_H
#define VAPRO_ANALYSIS_NOISE_HITS_H

#include "analysis/result.h"

#define NOISE_EMITTED 32 /* components of a job, those with the greatest share of a thread's time */

/* Returns for how long a thread was observed. */
double noise_hits__observed_ns(const struct builder *builder, const struct stg_thread *thread);

/* Starts the hit of a thread, without slices. */
struct noise_hit noise_hits__of(const struct builder *builder, const struct stg_thread *thread);

/* Orders hits by rank, and adds up those of one rank. Returns their number. */
size_t noise_hits__merge(struct noise_hit *hits, size_t count);

/*
 * Writes the ranks, the hosts, the periods and the share of the ranks that lost most. count > 0. Returns 0 or -ENOMEM.
 */
int noise_hits__describe(const struct builder *builder, const struct noise_hit *hits, size_t count,
			 struct result_noise *out);

/* Whether a component is to be emitted whose number and time were others when it was emitted last. */
bool noise_hits__changed(uint64_t slices, uint64_t ns, uint64_t emitted_slices, uint64_t emitted_ns);

#endif

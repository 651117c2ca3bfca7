/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Offsets between the clocks of a job's hosts, from collectives that no rank leaves before all have entered
 * (docs/waiting.md, "Clocks of several hosts"). All ranks leave such a call within a moment, so the times at which two
 * hosts leave equal calls of one call-site differ by the offset.
 *
 * Bundles show the end of their last call. The number of calls of the site so far is the ordinal of that call, and ends
 * of ordinals in between are interpolated. Ranks that are watched from different moments on count from different calls:
 * the difference of their ordinals is the one for which the offsets of all calls agree best. A job whose iterations are
 * all equal agrees with many differences; then, and without such calls, the offset stays unknown. Calls of hosts that
 * do not synchronise may agree by chance for a while: an offset is known only when later calls by themselves show it
 * again.
 *
 * A kernel whose clock is synchronised has a bound of its error. Where two hosts have one, offsets within the sum of
 * both (and CLOCK_BOUND_NS) are searched first, since few differences of ordinals agree with these.
 */
#ifndef VAPRO_DETECT_CLOCKS_H
#define VAPRO_DETECT_CLOCKS_H

#include "base/archive.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a host's clock; whole ns. */
struct clock_offset {
	bool known;
	double offset_ns;    /* ahead of the lower median of the hosts whose offset is known */
	double spread_ns;    /* how far off the offset may be: other differences of ordinals agree nearly as well */
	double corrected_ns; /* part of the offset that the times of the host's events are to be reduced by */
};

/* The clocks of one job. */
struct clocks;

struct clocks *clocks__new(void);
void clocks__free(struct clocks *clocks);
size_t clocks__bytes(const struct clocks *clocks);

/*
 * Adds a bundle of n calls of a collective's call-site (equal numbers for equal sites on all ranks), by a host's own
 * clock in ns. The row with the lowest rank of a host stands for the host. Returns 0 or -ENOMEM.
 */
int clocks__add(struct clocks *clocks, uint32_t host, int32_t rank, uint32_t site, uint64_t start_ns, uint64_t end_ns,
		uint32_t n);

/* What is known of a host beside its calls. */
struct clock_host_about {
	const char *name;
	double
	    error_ns; /* how far off its clock is at most, by its own kernel; INFINITY: not synchronised, or unknown */
};

/*
 * Estimates all offsets again at the end of a window; about: by host. Names make the result independent of the order of
 * hosts. The comparisons of a window are bounded by their number: what is beyond that waits for a later window. An
 * offset that has become unknown is no longer corrected. Returns 0 or -ENOMEM.
 */
int clocks__estimate(struct clocks *clocks, const struct clock_host_about *about, uint32_t hosts);

/* Writes or reads all that is known (base/archive.h); clocks to be read are new. */
void clocks__archive(struct archive *archive, struct clocks *clocks);

/* What is known of a host; nothing of one that was never added. */
struct clock_offset clocks__of(const struct clocks *clocks, uint32_t host);

#endif

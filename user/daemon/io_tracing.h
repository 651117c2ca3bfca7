/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls traced, while that is worth it: probe/io_tax.h carried out, and told. */
#ifndef VAPRO_IO_TRACING_H
#define VAPRO_IO_TRACING_H

#include "capture/stream.h"
#include "overhead/io_tax.h"
#include "daemon/tracker.h"

struct io_tracing {
	struct kernel_side *side;
	const struct costs *costs;
	struct io_tax tax;
	enum vapro_io_mode mode;
	uint64_t looked_ns, calls; /* of the node, so far */
	double traced_s, taxed_s;  /* in this window: seconds, and seconds of CPU time */
	double cpus;
};

/* Both must outlive it. bound: share of the node's CPU time; 0 = none; now: CLOCK_MONOTONIC. */
void io_tracing__init(struct io_tracing *io, struct kernel_side *side, const struct costs *costs,
		      enum vapro_io_mode mode, double bound, uint64_t now_ns);

/* Once a second. */
void io_tracing__second(struct io_tracing *io, struct watch *watch, const struct watch_second *second, uint64_t now_ns);

/* What it cost in the window that ends, of so many seconds. */
void io_tracing__end_window(struct io_tracing *io, struct stream_window *window, double seconds);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces system calls while that is worth its cost: carries out and reports the verdicts of overhead/io_tax.h. */
#ifndef VAPRO_IO_TRACING_H
#define VAPRO_IO_TRACING_H

#include "capture/stream.h"
#include "overhead/io_tax.h"
#include "daemon/tracker.h"

struct io_tracing {
	struct kernel_side *side;
	const struct costs *costs;
	struct io_tax tax;
	enum vapro_tristate mode;
	uint64_t looked_ns, calls; /* last second's time; traced calls of the node so far */
	double traced_s, taxed_s;  /* in this window: seconds traced, and CPU seconds spent on that */
	double cpus;
};

/* side and costs must outlive io. bound: share of the node's CPU time; 0 = none; now_ns: CLOCK_MONOTONIC. */
void io_tracing__init(struct io_tracing *io, struct kernel_side *side, const struct costs *costs,
		      enum vapro_tristate mode, double bound, uint64_t now_ns);

/* Decides, once a second, whether system calls are traced. */
void io_tracing__second(struct io_tracing *io, struct tracker *tracker, const struct watch_second *second,
			uint64_t now_ns);

/* Sets the share and the cost of tracing in a window that ends after so many seconds. */
void io_tracing__end_window(struct io_tracing *io, struct stream_window *window, double seconds);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drains the kernel side: single fragments from the ring, merged ones from the maps of finished bins,
 * interference, and at a window's end what is still open. Everything becomes stream events.
 */
#ifndef VAPRO_COLLECTOR_H
#define VAPRO_COLLECTOR_H

#include "collect/resolver.h"
#include "capture/stream.h"
#include "probe/bpf/bpf_object.h"

struct collector;

/* Told of records that are no fragments (enum kernel_record_type). */
typedef void (*collector_event)(void *ctx, const struct kernel_record *record);

/* All arguments outlive the collector. NULL with errno set. */
struct collector *collector__new(struct kernel_side *side, struct resolver *resolver, struct stream_sink *sink,
				 collector_event event, void *ctx);
/* Counters whose counts come with the bundles; they must outlive the collector. */
void collector__count(struct collector *collector, const struct counters *counters);
void collector__free(struct collector *collector);

/* Reads the clocks and tells both sides: call it at the start and between windows. 0 or -errno. */
int collector__set_clock(struct collector *collector, struct stream_clock *clock);

/* Empties the ring. Returns how many records were read, or -errno of the sink. */
int collector__drain_ring(struct collector *collector);

/* Reads out the merged bundles of bins that have ended for a while. 0 or -errno of the sink. */
int collector__drain_bins(struct collector *collector, uint64_t now_ns);

/* Tells the fragment that a thread is in, if it began before end_ns (CLOCK_MONOTONIC). 0 or -errno of the sink. */
int collector__tell_open(struct collector *collector, pid_t tid, uint64_t end_ns);

/* Vertex fragments told so far of one counter slot; against the slot's `emitted`. */
uint64_t collector__told(const struct collector *collector, uint32_t slot);

/* Records that found the ring full and were no fragments. */
uint64_t collector__records_lost(const struct collector *collector);

#endif

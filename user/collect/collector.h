/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drains the kernel side: single fragments from the ring, merged ones from the maps of finished bins,
 * interference, and at a window's end what is still open. Everything becomes stream events.
 */
#ifndef VAPRO_COLLECTOR_H
#define VAPRO_COLLECTOR_H

#include "collect/resolver.h"
#include "capture/stream.h"
#include "probe/bpf/kernel_side.h"

struct collector;

/* Receives records that are no fragments (enum kernel_record_type). */
typedef void (*collector_event)(void *ctx, const struct kernel_record *record);

/* All arguments outlive the collector. NULL with errno set. */
struct collector *collector__new(struct kernel_side *side, struct resolver *resolver, struct stream_sink *sink,
				 collector_event event, void *ctx);
/* Counters whose counts come with the bundles; they must outlive the collector. */
void collector__count(struct collector *collector, const struct counters *counters);
void collector__free(struct collector *collector);

/* Reads the clocks and passes them to both sides, at the start and between windows. 0 or -errno. */
int collector__set_clock(struct collector *collector, struct stream_clock *clock);

/* Empties the ring. Returns how many records were read, or -errno of the sink. */
int collector__drain_ring(struct collector *collector);

/* Reads out the merged bundles of bins that ended a while ago. 0 or -errno of the sink. */
int collector__drain_bins(struct collector *collector, uint64_t now_ns);

/* Returns the time until another bin can be read out, ns. */
uint64_t collector__until_bin(const struct collector *collector, uint64_t now_ns);

/* Emits a thread's open fragment if it began well before end_ns (CLOCK_MONOTONIC). 0 or -errno of the sink. */
int collector__emit_open(struct collector *collector, pid_t tid, uint64_t end_ns);

/* Emits what stops a thread in the last bin before end_ns (CLOCK_MONOTONIC). Returns 0 or -errno of the sink. */
int collector__emit_stopped(struct collector *collector, pid_t tid, uint64_t end_ns, enum vapro_stopped_by by);

/* Counts vertex fragments delivered of one counter slot, against its `emitted`. */
uint64_t collector__delivered(const struct collector *collector, uint32_t slot);

/*
 * Has bundles that end at or after a time (CLOCK_MONOTONIC) wait until this is called with a later time, or with 0:
 * then none wait any more. Where vaprod was stopped for long, each belongs to the window in which it ended.
 */
void collector__hold(struct collector *collector, uint64_t from_ns);

/* Returns where the bundles of one counter slot are counted, singles and merged ones; valid as long as the collector.
 */
const uint64_t *collector__records(const struct collector *collector, uint32_t slot);

/* Counts records, no fragments, that found the ring full. */
uint64_t collector__records_lost(const struct collector *collector);

#endif

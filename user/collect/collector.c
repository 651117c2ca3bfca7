// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/collector.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bpf/logic.h"
#include "base/clock.h"
#include "base/grow.h"
#include "collect/accounts.h"
#include "collect/interference.h"
#include "collect/interferer_names.h"
#include "collect/pool_reader.h"
#include "probe/pmu/counters.h"
#include "probe/bpf/kernel_side.h"

#define GRACE_NS 60000000ULL /* a program that read the clock just before a bin's end has merged by then */
#define OPEN_LEAST_NS 100000000ULL
#define IDLE_NS 2000000ULL

struct collector {
	struct kernel_side *side;
	struct resolver *resolver;
	struct stream_sink *sink;
	struct ring_buffer *ring;
	struct pool_reader *pool;
	struct accounts *accounts;
	collector_event event;
	void *ctx;
	const struct counters *counters; /* NULL: nothing is counted */
	uint64_t offset_ns;		 /* CLOCK_MONOTONIC + this = UTC */
	uint64_t last_bin;		 /* bins up to here are read out */
	uint64_t delivered[KERNEL_SLOTS];
	uint64_t records[KERNEL_SLOTS];
	int status;		   /* first error of the sink */
	struct kernel_record held; /* record whose state is too young for a drain: the next drain begins with it */
	bool holds;
	int received;
	uint64_t hold_ns;	      /* bundles that end at or after this time wait: 0 none do */
	struct vapro_bundle *waiting; /* in the order of their arrival */
	size_t waiting_count, waiting_room;
	struct interferer_names names;
	struct interference *interference;
};

int collector__set_clock(struct collector *collector, struct stream_clock *clock)
{
	struct stream_event event = {.type = STREAM_CLOCK};
	uint64_t before, least = UINT64_MAX;

	/* the closest pair of a few: a preemption between the two reads would shift every bin */
	for (int i = 0; i < 8; i++) {
		uint64_t utc;

		before = mono_now();
		utc = utc_now();
		if (mono_now() - before >= least)
			continue;
		least = mono_now() - before;
		clock->mono_ns = before;
		clock->utc_ns = utc;
	}
	collector->offset_ns = clock->utc_ns - clock->mono_ns;
	*kernel_side__shared(collector->side)->utc_offset_ns = collector->offset_ns;
	event.clock = *clock;
	return stream__put(collector->sink, &event);
}

static void fill_factors(struct vapro_bundle *bundle, const struct kernel_counts *counts)
{
#define FILL(member, of, ...) bundle->factor[VAPRO_##of] = (double)counts->member;
	KERNEL_TIMES(FILL)
	KERNEL_TASK_COUNTS(FILL)
#undef FILL
}

static void fill_counts(const struct collector *collector, const struct kernel_bundle_key *key,
			const struct kernel_bundle *counted, struct vapro_bundle *bundle)
{
	uint64_t away = counts_off_cpu(&counted->counts) + counted->counts.steal_ns;

	counters__fill(collector->counters, key, counted, away < counted->sum_ns ? (double)(counted->sum_ns - away) : 0,
		       bundle);
}

/* Has a bundle wait for its window. Returns false without memory: the bundle belongs to the window before. */
static bool wait_for_window(struct collector *collector, const struct vapro_bundle *bundle)
{
	if (grow(&collector->waiting, &collector->waiting_room, collector->waiting_count + 1,
		 sizeof(*collector->waiting)))
		return false;
	collector->waiting[collector->waiting_count++] = *bundle;
	return true;
}

void collector__hold(struct collector *collector, uint64_t from_ns)
{
	struct stream_event event = {.type = STREAM_BUNDLE};
	size_t left = 0;

	if (from_ns == collector->hold_ns)
		return;
	collector->hold_ns = from_ns;
	for (size_t i = 0; i < collector->waiting_count; i++) {
		int status;

		if (from_ns && collector->waiting[i].end_ns >= from_ns) {
			collector->waiting[left++] = collector->waiting[i];
			continue;
		}
		event.bundle = collector->waiting[i];
		status = stream__put(collector->sink, &event);
		if (status && !collector->status)
			collector->status = status;
	}
	collector->waiting_count = left;
	if (left)
		return;
	free(collector->waiting);
	collector->waiting = NULL;
	collector->waiting_room = 0;
}

/* Returns false where the state is too young for this drain, without output. */
static bool emit_bundle(struct collector *collector, const struct kernel_bundle_key *key,
			const struct kernel_bundle *bundle)
{
	struct stream_event event = {.type = STREAM_BUNDLE};
	uint32_t tgid = 0;
	int64_t state = resolver__state(collector->resolver, key->state, &tgid);
	int64_t thread = state < 0 ? state : resolver__thread(collector->resolver, key->tid, tgid);
	bool approx = thread >= 0 && resolver__approx(collector->resolver, key->state);
	int status;

	if (thread == -EAGAIN)
		return false;
	collector->records[bundle->slot & (KERNEL_SLOTS - 1)]++;
	if (thread < 0) {
		if (thread != -ENOENT && !collector->status)
			collector->status = (int)thread;
		return true; /* the process is forgotten; the difference shows as unaccounted */
	}
	event.bundle = (struct vapro_bundle){.thread = (uint32_t)thread,
					     .state = (uint32_t)state,
					     .n = bundle->n,
					     .flags = (key->abnormal ? VAPRO_BUNDLE_ABNORMAL : 0) |
						      (approx ? VAPRO_BUNDLE_APPROX : 0),
					     .start_ns = bundle->start_ns,
					     .end_ns = bundle->end_ns,
					     .sum_ns = bundle->sum_ns,
					     .min_ns = bundle->min_ns,
					     .max_ns = bundle->max_ns,
					     .first_call = bundle->first_call,
					     .last_call = bundle->last_call};
	if (!(key->state & KERNEL_EDGE)) {
		event.bundle.magnitude_min[VAPRO_BYTES] = (double)bundle->bytes_min;
		event.bundle.magnitude_max[VAPRO_BYTES] = (double)bundle->bytes_max;
		collector->delivered[bundle->slot & (KERNEL_SLOTS - 1)] += bundle->n;
	}
	fill_factors(&event.bundle, &bundle->counts);
	if (key->state & KERNEL_EDGE && collector->counters)
		fill_counts(collector, key, bundle, &event.bundle);
	if (collector->hold_ns && bundle->end_ns >= collector->hold_ns && wait_for_window(collector, &event.bundle))
		return true;
	status = stream__put(collector->sink, &event);
	if (status && !collector->status)
		collector->status = status;
	return true;
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct collector *collector = ctx;
	const struct kernel_record *record = data;

	if (size < sizeof(*record))
		return 0;
	if (record->type != KERNEL_FRAGMENT) {
		collector->event(collector->ctx, record);
	} else if (!emit_bundle(collector, &record->key, &record->bundle)) {
		collector->held = *record;
		collector->holds = true;
		return -EAGAIN; /* libbpf counts the record as consumed, and stops */
	}
	collector->received++;
	return 0;
}

struct collector *collector__new(struct kernel_side *side, struct resolver *resolver, struct stream_sink *sink,
				 collector_event event, void *ctx)
{
	struct collector *collector = calloc(1, sizeof(*collector));

	if (!collector)
		return NULL;
	*collector = (struct collector){.side = side, .resolver = resolver, .sink = sink, .event = event, .ctx = ctx};
	collector->ring =
	    ring_buffer__new(kernel_side__map(collector->side, KERNEL_MAP_RING), on_record, collector, NULL);
	collector->pool = pool_reader__new(side, utc_now());
	collector->accounts = accounts__new(side);
	collector->interference = interference__new(side);
	if (!collector->ring || !collector->pool || !collector->accounts || !collector->interference) {
		collector__free(collector);
		errno = ENOMEM;
		return NULL;
	}
	return collector;
}

void collector__count(struct collector *collector, const struct counters *counters)
{
	collector->counters = counters;
}

void collector__free(struct collector *collector)
{
	if (!collector)
		return;
	ring_buffer__free(collector->ring);
	pool_reader__free(collector->pool);
	accounts__free(collector->accounts);
	interference__free(collector->interference);
	free(collector->waiting);
	free(collector);
}

static int take_status(struct collector *collector)
{
	int status = collector->status;

	collector->status = 0;
	return status;
}

int collector__drain_ring(struct collector *collector)
{
	int status = 0;

	resolver__begin(collector->resolver);
	collector->received = 0;
	if (collector->holds) {
		collector->holds = false;
		status = on_record(collector, &collector->held, sizeof(collector->held));
	}
	if (!status)
		status = ring_buffer__consume(collector->ring);
	if (collector->status)
		return take_status(collector);
	return status < 0 && status != -EAGAIN ? status : collector->received;
}

static bool emit_merged(void *ctx, const struct kernel_bundle_key *key, const struct kernel_bundle *bundle)
{
	return emit_bundle(ctx, key, bundle);
}

/* An MPI library's thread that sleeps nearly always is not announced for its own sake. */
static bool is_idle(const struct vapro_account *account)
{
	return account->on_cpu_ns + account->preempted_ns + account->wakeup_wait_ns + account->throttled_ns +
		   account->stopped_ns + account->steal_ns <
	       IDLE_NS;
}

static void emit_account(void *ctx, uint32_t tgid, uint32_t tid, const struct vapro_account *account)
{
	struct stream_event event = {.type = STREAM_ACCOUNT, .account = *account};
	struct collector *collector = ctx;
	int64_t thread = resolver__thread(collector->resolver, tid, tid == tgid || !is_idle(account) ? tgid : 0);
	int status;

	if (account->stopped_ns)
		collector->event(collector->ctx,
				 &(struct kernel_record){.type = KERNEL_STOPPED, .tgid = tgid, .tid = tid});
	if (thread < 0)
		return; /* idle, or the process is forgotten */
	event.account.thread = (uint32_t)thread;
	status = stream__put(collector->sink, &event);
	if (status && !collector->status)
		collector->status = status;
}

static void emit_interference(void *ctx, const struct kernel_interference_key *key,
			      const struct kernel_interference *value)
{
	struct stream_event event = {.type = STREAM_INTERFERENCE};
	struct collector *collector = ctx;
	int64_t thread = resolver__thread(collector->resolver, key->tid, 0);
	int status;

	if (thread < 0)
		return; /* the thread never called anything, and hardly ever ran */
	event.interference = (struct vapro_interference){.thread = (uint32_t)thread,
							 .pid = key->pid,
							 .bin = interference__bin(key->bin, collector->last_bin + 64),
							 .preempted_ns = value->preempted_ns,
							 .wakeup_wait_ns = value->wakeup_wait_ns,
							 .process = value->tgid,
							 .monitor = value->monitor,
							 .slices = value->slices,
							 .longest_us = (uint32_t)(value->longest_ns / 1000)};
	memcpy(event.interference.comm, value->comm, sizeof(event.interference.comm));
	event.interference.comm[sizeof(event.interference.comm) - 1] = '\0';
	interferer_names__replace(&collector->names, (pid_t)value->tgid, event.interference.comm);
	status = stream__put(collector->sink, &event);
	if (status && !collector->status)
		collector->status = status;
}

uint64_t collector__until_bin(const struct collector *collector, uint64_t now_ns)
{
	return KERNEL_BIN_NS - (now_ns + collector->offset_ns - GRACE_NS) % KERNEL_BIN_NS;
}

int collector__drain_bins(struct collector *collector, uint64_t now_ns)
{
	uint64_t now_bin = (now_ns + collector->offset_ns) / KERNEL_BIN_NS;
	uint64_t last = (now_ns + collector->offset_ns - GRACE_NS) / KERNEL_BIN_NS - 1;
	bool several = last > collector->last_bin + 1;
	uint64_t from = collector->last_bin ? collector->last_bin : last - 1;
	int status;

	if (last <= collector->last_bin)
		return 0;
	collector->last_bin = last;
	resolver__begin(collector->resolver);
	status = pool_reader__read(collector->pool, (uint32_t)last, emit_merged, collector);
	if (!status)
		status = accounts__read(collector->accounts, from, last, collector->offset_ns, emit_account, collector);
	/* Reading a map walks through all its buckets: only a map with new bins is read. */
	if (several || !(last & 1))
		interference__read(collector->interference, KERNEL_MAP_INTERFERENCE_EVEN, last, now_bin,
				   emit_interference, collector);
	if (several || last & 1)
		interference__read(collector->interference, KERNEL_MAP_INTERFERENCE_ODD, last, now_bin,
				   emit_interference, collector);
	if (!collector->status)
		collector->status = status;
	return take_status(collector);
}

/* Computes an open fragment's factors: its thread's counts so far, and the current stay off the CPU. */
static void open_factors(const struct bpf_thread_state *thread, uint64_t end_ns, struct vapro_bundle *bundle)
{
	struct kernel_counts counts = thread->now, delta;
	struct kernel_offcpu off = thread->off;

	if (off.out_ns && off.out_ns < end_ns)
		offcpu_end(&off, &counts, end_ns, off.throttled); /* the throttled time now is not known */
	counts_delta(&delta, &counts, &thread->border);
	counts_bound(&delta, end_ns - thread->start_ns);
	fill_factors(bundle, &delta);
}

/* The probe of an open call was closed: the call may have ended. */
static bool is_out_of_sight(const struct collector *collector, const struct bpf_thread_state *thread)
{
	const struct kernel_governed *governed =
	    &kernel_side__shared(collector->side)->governed[thread->slot & (KERNEL_SLOTS - 1)];
	struct bpf_function_state function;

	if (thread->open != KERNEL_CALL || thread->own_sites || thread->probe_epoch == governed->probe_epoch)
		return false;
	return thread->drop_open_epoch != governed->drop_open_epoch ||
	       (!bpf_map_lookup_elem(kernel_side__map(collector->side, KERNEL_MAP_FUNCTIONS), &thread->function,
				     &function) &&
		function.hot);
}

int collector__emit_open(struct collector *collector, pid_t tid, uint64_t end_ns)
{
	struct stream_event event = {.type = STREAM_BUNDLE};
	struct bpf_thread_state thread;
	int64_t state, id;
	uint32_t tgid;

	if (kernel_side__thread(collector->side, tid, &thread) || thread.open == KERNEL_NOTHING || !thread.vertex ||
	    thread.start_ns + OPEN_LEAST_NS > end_ns || is_out_of_sight(collector, &thread))
		return 0;
	resolver__begin(collector->resolver);
	state = resolver__state(collector->resolver, thread.vertex, &tgid);
	id = state < 0 ? state : resolver__thread(collector->resolver, thread.tid, tgid);
	if (id < 0)
		return id == -ENOENT ? 0 : (int)id;
	event.bundle = (struct vapro_bundle){.thread = (uint32_t)id,
					     .state = (uint32_t)state,
					     .n = 1,
					     .flags = VAPRO_BUNDLE_OPEN,
					     .start_ns = thread.start_ns,
					     .end_ns = end_ns,
					     .sum_ns = end_ns - thread.start_ns,
					     .min_ns = end_ns - thread.start_ns,
					     .max_ns = end_ns - thread.start_ns,
					     .first_call = thread.call,
					     .last_call = thread.call};
	event.bundle.magnitude_min[VAPRO_BYTES] = event.bundle.magnitude_max[VAPRO_BYTES] = (double)thread.bytes;
	open_factors(&thread, end_ns, &event.bundle);
	return stream__put(collector->sink, &event);
}

int collector__emit_stopped(struct collector *collector, pid_t tid, uint64_t end_ns, enum vapro_stopped_by by)
{
	struct stream_event event = {.type = STREAM_ACCOUNT};
	int64_t thread;

	resolver__begin(collector->resolver);
	thread = resolver__thread(collector->resolver, (uint32_t)tid, 0);
	if (thread < 0)
		return thread == -ENOENT || thread == -EAGAIN ? 0 : (int)thread;
	event.account = (struct vapro_account){
	    .thread = (uint32_t)thread, .bin = (end_ns + collector->offset_ns) / KERNEL_BIN_NS - 1, .stopped_by = by};
	return stream__put(collector->sink, &event);
}

uint64_t collector__delivered(const struct collector *collector, uint32_t slot)
{
	return collector->delivered[slot & (KERNEL_SLOTS - 1)];
}

const uint64_t *collector__records(const struct collector *collector, uint32_t slot)
{
	return &collector->records[slot & (KERNEL_SLOTS - 1)];
}

uint64_t collector__records_lost(const struct collector *collector)
{
	return *kernel_side__shared(collector->side)->records_lost;
}

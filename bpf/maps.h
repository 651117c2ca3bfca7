/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps and globals of the kernel side. Sizes that depend on tunables are set before load. */
#ifndef VAPRO_MAPS_H
#define VAPRO_MAPS_H

#include "vmlinux.h"
#define __VAPRO_BPF__
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "logic.h"
#include "waiters.h"

/* Tunables, constant once loaded. */
const volatile u64 long_ns = 10000000;
const volatile u32 abnormal_ratio_1024 = 1229;
const volatile u32 new_fragments = 5;
const volatile u32 pool_half = 16384;
const volatile u32 interference_room = 2048; /* entries of a map of interference */
const volatile u64 singles_room = 3670016;   /* bytes of the ring that singles may fill */
const volatile u8 seccomp_kills;	     /* this kernel kills a task with a filter at a hijacked return */
const volatile u8 counting;		     /* counters exist: without them their readers are removed on load */
const volatile u8 io_syscalls[KERNEL_SYSCALLS];
const volatile bool call_paths;
const volatile u32 own_tgid; /* vaprod's: CPU time that it and its children keep from watched threads is its cost */
const volatile u8 governing; /* the cost of probes is bounded */

/* Written by user space while running. */
u64 utc_offset_ns;    /* CLOCK_MONOTONIC + this = UTC; changed only between windows */
u32 generation = 1;   /* raised whenever links were closed: calls open before are no fragments */
u32 discover = 1;     /* report unknown processes */
u32 report_execs = 1; /* report every exec: mappings are not watched, or the executed file matters */
u32 wake_execs;	      /* each exec wakes vaprod: links for all processes have to go where it is a translator's */
u32 hold;	      /* links are being opened or closed one by one: hits of some are incomplete */
u32 watch_interrupts; /* interrupts are timed: programs at their tracepoints are attached */
u32 rows_generation;  /* raised whenever links of single rows were closed or opened: no edge may span that */
u32 states_epoch = 1; /* raised whenever entries of vertices, edges or handles were changed or removed */
u32 transparents;     /* processes ever put into `transparent` */
u32 hopping;	      /* hopped call-sites exist */
u32 wake_hits;	      /* hits by weight of one thread since the last charge that wake vaprod; 0: none do */

u32 pool_used[2]; /* slots in use, of even bins and of odd ones; user space frees all of a half at once */
u32 closed_bin;	  /* bins up to this one are being drained, or have been: cached slots of these are stale */

u32 accounts_given; /* numbers given: the next one is this, modulo the table's size */
u32 accounts_lost;  /* threads that found the table full */
struct kernel_account_look account_looked;

u32 event_count;     /* counters to read; 0 while the set is being changed */
u32 event_epoch;     /* raised before and after every change */
u32 magnitude_count; /* counters, from the first on, that are the workload */
u32 event_group;     /* number of the counters' set, for the bundles */

/* Read by user space. */
struct kernel_counters counters[KERNEL_SLOTS];
struct kernel_owner owners[KERNEL_SLOTS];
struct kernel_governed governed[KERNEL_SLOTS]; /* read and written by both */
struct kernel_team teams[KERNEL_SLOTS];
u32 next_vertex = 1, next_edge = 1, next_path = 1, next_handle;
u32 vertices_used, edges_used, handles_used, paths_used; /* entries; user space subtracts deleted ones */
u64 polls_seen;						 /* polling calls, while these are learnt */
u64 row_looks;						 /* hits at KERNEL_SITE_LOOK */
u64 untracked_hits;					 /* hits of processes that are not tracked, or not yet */
u64 inside_lost;					 /* samples that found the map full */
u64 records_lost;					 /* records other than fragments that found the ring full */

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct bpf_thread_state);
} threads SEC(".maps");

/* Most tasks of a node have no task storage: programs that see every task recognise them without a helper's call. */
static __always_inline bool is_bystander(struct task_struct *task)
{
	return bpf_core_field_exists(task->bpf_storage) && !task->bpf_storage;
}

static __always_inline struct bpf_thread_state *known_thread(struct task_struct *task)
{
	return is_bystander(task) ? 0 : bpf_task_storage_get(&threads, task, 0, 0);
}

/* Slots of processes whose hits are to be charged at once: a record ends vaprod's sleep. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} wakes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_SLOTS);
	__type(key, u32);
	__type(value, struct bpf_process_state);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} reported SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_FUNCTIONS);
	__type(key, u32);
	__type(value, struct bpf_function_state);
} functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KERNEL_FUNCTIONS);
	__type(key, u32);
	__type(value, struct kernel_function_counters);
} function_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_HANDLES);
	__type(key, struct kernel_handle_key);
	__type(value, u32);
} handles SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_STATES);
	__type(key, struct kernel_vertex_key);
	__type(value, u32);
} vertices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_STATES);
	__type(key, struct kernel_edge_key);
	__type(value, u32);
} edges SEC(".maps");

/* The latest vertices by number, modulo KERNEL_NEW_VERTICES: user space finds new states without a walk through all. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_NEW_VERTICES);
	__type(key, u32);
	__type(value, struct kernel_vertex);
} vertices_by_id SEC(".maps");

/* Edges by number, modulo KERNEL_STATES. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_STATES);
	__type(key, u32);
	__type(value, struct kernel_edge);
} edges_by_id SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * KERNEL_STATES); /* vertices, then edges */
	__type(key, u32);
	__type(value, struct kernel_state_stats);
} stats SEC(".maps");

/*
 * Merged bundles: slots of even bins and of odd ones alternate, so that user space may drain one half
 * while the other fills.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * 16384);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct bpf_pool_slot);
} pool SEC(".maps");

/*
 * Pool slot of the last bundle of a thread, state and cell, drained or not (bin 0 in the key): the slot
 * itself holds the full key. Only bundles whose entry in their thread's cache belongs to another bundle of the same bin
 * are in this map.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2 * 16384);
	__type(key, struct kernel_bundle_key);
	__type(value, u32);
} places SEC(".maps");

/* Two maps, of even and odd bins: user space reads one while the other fills. */
struct interference_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192); /* replaced before the load by a number that depends on the CPUs */
	__type(key, struct kernel_interference_key);
	__type(value, struct kernel_interference);
} interference_even SEC(".maps"), interference_odd SEC(".maps");

/* Edges in which polling calls were seen: communication makes progress there. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, u32);
} polled SEC(".maps");

/* Tracked threads that wait for each CPU: tasks that run there meanwhile are charged. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_CPUS); /* replaced before the load by the number of CPUs */
	__type(key, u32);
	__type(value, struct waiters);
} waiting_on SEC(".maps");

/* Accounts by number; most are never used, and never touched. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_ACCOUNTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct kernel_account);
} accounts SEC(".maps");

/* Interrupts of this CPU, while they are watched. */
struct interrupts {
	u64 hard_ns, soft_ns;
	u64 hard_since, soft_since; /* 0 = in no interrupt */
	u64 hard_before;	    /* hard_ns when the soft one began: hard ones interrupt soft ones */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct interrupts);
} interrupted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
} ring SEC(".maps");

/* Counters: event i of CPU c at c * KERNEL_EVENTS + i. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* set before load where there are counters */
	__type(key, u32);
	__type(value, u32);
} perf_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kernel_tally);
} tallies SEC(".maps");

/* Call-sites of a libc's system-call wrappers: {ip after the syscall} -> displacement, per process. */
struct io_site_key {
	u64 ip;
	u32 tgid;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct io_site_key);
	__type(value, s32);
} io_sites SEC(".maps");

/* Functions that forked calls were given, reported once. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct kernel_outlined_key);
	__type(value, u32);
} outlined SEC(".maps");
/* Ranges of a process's transparent images; rules to leave the calls of an image. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_SLOTS);
	__type(key, u32);
	__type(value, struct kernel_transparent);
} transparent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 262144);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kernel_hop_key);
	__type(value, struct kernel_hop);
} hops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kernel_hopped_key);
	__type(value, struct kernel_hop);
} hopped SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_PATHS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kernel_path_key);
	__type(value, u32);
} paths SEC(".maps");

/* Requests under way by handle, and the variables they were written to. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kernel_request_key);
	__type(value, struct kernel_request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct kernel_request_key);
	__type(value, struct kernel_request_slot);
} request_slots SEC(".maps");

/* Samples since user space has read them; allocated at once, since they come in interrupts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct kernel_inside_key);
	__type(value, struct kernel_inside);
} inside_samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kernel_pending);
} pending_calls SEC(".maps");

/* System calls of all processes while IO is traced: the cost for the node. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} syscall_counts SEC(".maps");

#define add(counter, value) __sync_fetch_and_add(&(counter), (value))

static __always_inline struct kernel_counters *counters_of(u32 slot)
{
	return &counters[slot & (KERNEL_SLOTS - 1)];
}

static __always_inline struct kernel_owner *owner_of(const struct kernel_counters *of)
{
	return &owners[of->owner & (KERNEL_SLOTS - 1)];
}

static __always_inline struct kernel_governed *governed_of(u32 slot)
{
	return &governed[slot & (KERNEL_SLOTS - 1)];
}

static __always_inline struct kernel_team *team_of(u32 slot)
{
	return &teams[slot & (KERNEL_SLOTS - 1)];
}

static __always_inline void lose(u32 slot, u32 cause, u64 n)
{
	add(counters_of(slot)->lost[cause & (KERNEL_LOSSES - 1)], n);
}

static __always_inline u32 bin_of(u64 now)
{
	return (u32)((now + utc_offset_ns) / KERNEL_BIN_NS);
}

/* Sends a process or thread event. */
static __always_inline void send_event(u32 type, u32 tgid, u32 tid, u64 now)
{
	struct kernel_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		add(records_lost, 1);
		return;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->type = type;
	record->tgid = tgid;
	record->tid = tid;
	record->time_ns = now;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

#endif

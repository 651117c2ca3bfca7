/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the BPF object shares with user space: its maps and its variables (bpf/maps.h), which kernel_side.h gives. */
#ifndef VAPRO_SHARED_H
#define VAPRO_SHARED_H

#include <vapro/bpf/thread_account.h>
#include <vapro/bpf/thread_state.h>

struct bpf_map;
struct vapro_bpf;

/* Maps that user space reads or writes. */
enum kernel_map {
	KERNEL_MAP_ACCOUNTS,
	KERNEL_MAP_EDGES,
	KERNEL_MAP_VERTICES_BY_ID,
	KERNEL_MAP_EDGES_BY_ID,
	KERNEL_MAP_FUNCTIONS,
	KERNEL_MAP_FUNCTION_COUNTERS,
	KERNEL_MAP_HANDLES,
	KERNEL_MAP_HOPPED,
	KERNEL_MAP_HOPS,
	KERNEL_MAP_INSIDE_SAMPLES,
	KERNEL_MAP_INTERFERENCE_EVEN,
	KERNEL_MAP_INTERFERENCE_ODD,
	KERNEL_MAP_IO_SITES,
	KERNEL_MAP_OUTLINED,
	KERNEL_MAP_PATHS,
	KERNEL_MAP_POLLED,
	KERNEL_MAP_POOL,
	KERNEL_MAP_PROCESSES,
	KERNEL_MAP_REQUESTS,
	KERNEL_MAP_REQUEST_SLOTS,
	KERNEL_MAP_RING,
	KERNEL_MAP_SYSCALL_COUNTS,
	KERNEL_MAP_TRANSPARENT,
	KERNEL_MAP_VERTICES,
	KERNEL_MAP_WAKES,
	KERNEL_MAPS,
};

/* Addresses of the object's variables, each valid as long as the object. */
struct kernel_shared {
	uint64_t *utc_offset_ns, *polls_seen, *row_looks, *untracked_hits, *inside_lost, *records_lost;
	uint32_t *generation, *rows_generation, *states_epoch, *report_execs, *wake_execs, *transparents, *hopping;
	uint32_t *wake_hits;
	uint32_t *pool_used; /* 2 */
	uint32_t *closed_bin, *accounts_given, *accounts_lost;
	uint32_t *next_vertex, *next_edge, *next_path;
	uint32_t *vertices_used, *edges_used, *handles_used, *paths_used;
	struct kernel_counters *counters; /* KERNEL_SLOTS */
	struct kernel_governed *governed; /* KERNEL_SLOTS */
	struct kernel_owner *owners;	  /* KERNEL_SLOTS */
};

/* Returns the addresses in a loaded object. */
struct kernel_shared shared__of(struct vapro_bpf *bpf);

/* Returns a map of a loaded object. */
struct bpf_map *shared__map(struct vapro_bpf *bpf, enum kernel_map map);

/* Does what kernel_side__look() says. */
void shared__look(struct vapro_bpf *bpf, struct kernel_account_look *look);

#endif

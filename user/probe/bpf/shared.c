// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/shared.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stddef.h>

#include "vapro.skel.h"

#define MAP(id, name) [KERNEL_MAP_##id] = offsetof(struct vapro_bpf, maps.name)

static const size_t maps[KERNEL_MAPS] = {
    MAP(ACCOUNTS, accounts),
    MAP(EDGES, edges),
    MAP(VERTICES_BY_ID, vertices_by_id),
    MAP(EDGES_BY_ID, edges_by_id),
    MAP(FUNCTIONS, functions),
    MAP(FUNCTION_COUNTERS, function_counters),
    MAP(HANDLES, handles),
    MAP(HOPPED, hopped),
    MAP(HOPS, hops),
    MAP(INSIDE_SAMPLES, inside_samples),
    MAP(INTERFERENCE_EVEN, interference_even),
    MAP(INTERFERENCE_ODD, interference_odd),
    MAP(IO_SITES, io_sites),
    MAP(OUTLINED, outlined),
    MAP(PATHS, paths),
    MAP(POLLED, polled),
    MAP(POOL, pool),
    MAP(PROCESSES, processes),
    MAP(REQUESTS, requests),
    MAP(REQUEST_SLOTS, request_slots),
    MAP(RING, ring),
    MAP(SYSCALL_COUNTS, syscall_counts),
    MAP(TRANSPARENT, transparent),
    MAP(VERTICES, vertices),
    MAP(WAKES, wakes),
};

struct bpf_map *shared__map(struct vapro_bpf *bpf, enum kernel_map map)
{
	return *(struct bpf_map **)((char *)bpf + maps[map]);
}

struct kernel_shared shared__of(struct vapro_bpf *bpf)
{
	return (struct kernel_shared){
	    .utc_offset_ns = &bpf->bss->utc_offset_ns,
	    .polls_seen = &bpf->bss->polls_seen,
	    .row_looks = &bpf->bss->row_looks,
	    .untracked_hits = &bpf->bss->untracked_hits,
	    .inside_lost = &bpf->bss->inside_lost,
	    .records_lost = &bpf->bss->records_lost,
	    .generation = &bpf->data->generation,
	    .rows_generation = &bpf->bss->rows_generation,
	    .states_epoch = &bpf->data->states_epoch,
	    .report_execs = &bpf->data->report_execs,
	    .wake_execs = &bpf->bss->wake_execs,
	    .transparents = &bpf->bss->transparents,
	    .hopping = &bpf->bss->hopping,
	    .wake_hits = &bpf->bss->wake_hits,
	    .pool_used = bpf->bss->pool_used,
	    .closed_bin = &bpf->bss->closed_bin,
	    .accounts_given = &bpf->bss->accounts_given,
	    .accounts_lost = &bpf->bss->accounts_lost,
	    .owners = bpf->bss->owners,
	    .next_vertex = &bpf->data->next_vertex,
	    .next_edge = &bpf->data->next_edge,
	    .next_path = &bpf->data->next_path,
	    .vertices_used = &bpf->bss->vertices_used,
	    .edges_used = &bpf->bss->edges_used,
	    .handles_used = &bpf->bss->handles_used,
	    .paths_used = &bpf->bss->paths_used,
	    .counters = bpf->bss->counters,
	    .governed = bpf->bss->governed,
	};
}

void shared__look(struct vapro_bpf *bpf, struct kernel_account_look *look)
{
	int program = bpf_program__fd(bpf->progs.account_look);
	LIBBPF_OPTS(bpf_test_run_opts, run);

	if (program < 0)
		return;
	bpf->bss->account_looked = *look;
	if (!bpf_prog_test_run_opts(program, &run))
		*look = bpf->bss->account_looked;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows of thread libraries, in which threads of a process wait for each other. Functions that take a
 * lock are off by default: they are called far too often and wait far too rarely.
 *
 * A parallel region's function is called by the library itself, so that a team's workers never cross
 * an external function: the rows that fork report it, and it becomes a row of its own. libomp also has
 * libgomp's entries, for programs of that compiler.
 */
#include "functions/functions.h"

#define THREAD(in, name, waits, off, ...)                                                                              \
	{                                                                                                              \
		.symbol = #name, .image = in, .class = VAPRO_COMMUNICATION, .threads = true, .blocking = waits,        \
		.polling = off, .own_sites = true, __VA_ARGS__                                                         \
	}
#define PTHREAD(name) THREAD("libc.so.6", name, true, false), THREAD("libpthread.so.0", name, true, false)
#define OMP "lib?(g|i)omp*.so*"
#define WAITS(name) THREAD(OMP, name, true, false)
#define LOCKS(name) THREAD(OMP, name, true, true)
#define FORKS(name, argument) THREAD(OMP, name, true, false, .kind = KERNEL_ROW_FORK, .forked = argument)

const struct function_row thread_rows[] = {
    PTHREAD(pthread_barrier_wait),
    PTHREAD(pthread_cond_wait),
    PTHREAD(pthread_cond_timedwait),
    PTHREAD(pthread_join),
    PTHREAD(pthread_create),
    PTHREAD(sem_wait),

    /* libgomp: GOMP_parallel(fn, data, threads, flags) and its forms with a first loop or section */
    FORKS(GOMP_parallel, 1),
    FORKS(GOMP_parallel_reductions, 1),
    FORKS(GOMP_parallel_sections, 1),
    FORKS(GOMP_parallel_loop_static, 1),
    FORKS(GOMP_parallel_loop_dynamic, 1),
    FORKS(GOMP_parallel_loop_guided, 1),
    FORKS(GOMP_parallel_loop_runtime, 1),
    FORKS(GOMP_parallel_loop_nonmonotonic_dynamic, 1),
    FORKS(GOMP_parallel_loop_nonmonotonic_guided, 1),
    FORKS(GOMP_parallel_loop_nonmonotonic_runtime, 1),
    FORKS(GOMP_parallel_loop_maybe_nonmonotonic_runtime, 1),
    WAITS(GOMP_barrier),
    WAITS(GOMP_barrier_cancel),
    WAITS(GOMP_loop_end),
    WAITS(GOMP_loop_end_cancel),
    WAITS(GOMP_sections_end),
    WAITS(GOMP_sections_end_cancel),
    WAITS(GOMP_single_copy_start),
    WAITS(GOMP_taskwait),
    WAITS(GOMP_taskwait_depend),
    WAITS(GOMP_taskgroup_end),
    LOCKS(GOMP_critical_start),
    LOCKS(GOMP_critical_name_start),
    LOCKS(GOMP_ordered_start),
    LOCKS(GOMP_atomic_start),

    /* libomp: __kmpc_fork_call(where, arguments, microtask, ...) */
    FORKS(__kmpc_fork_call, 3),
    FORKS(__kmpc_fork_teams, 3),
    WAITS(__kmpc_barrier),
    WAITS(__kmpc_cancel_barrier),
    WAITS(__kmpc_reduce),
    WAITS(__kmpc_omp_taskwait),
    WAITS(__kmpc_end_taskgroup),
    LOCKS(__kmpc_critical),
    LOCKS(__kmpc_critical_with_hint),
    LOCKS(__kmpc_ordered),
};

const unsigned int thread_row_count = sizeof(thread_rows) / sizeof(*thread_rows);

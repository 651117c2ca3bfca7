// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The built-in rows: MPI. Argument numbers are those of the C binding, which Open MPI and MPICH
 * share; tests/unit/test_functions.c checks them against mpi.h. Rows of functions that a library
 * lacks cost nothing.
 *
 * A row names counts that the standard makes significant on every rank. The root's side of a gather
 * is garbage elsewhere, and so is the send side of MPI_Alltoall with MPI_IN_PLACE: a row names the
 * other side. Arrays are named where no scalar has a size. The large-count forms (MPI_X_c) have the arguments of
 * their functions and use their rows, as PMPI_X does; that their counts have another width is known of their probes.
 */
#include "functions/functions.h"

#include <stdio.h>
#include <string.h>

#define ROW(name, of, waits, polls, ...)                                                                               \
	{                                                                                                              \
		.symbol = "MPI_" #name, .class = VAPRO_##of, .blocking = waits, .polling = polls,                      \
		.roles = {__VA_ARGS__},                                                                                \
	}

/* Programs commonly wait for each other here. */
#define OFTEN(name, ...)                                                                                               \
	{                                                                                                              \
		.symbol = "MPI_" #name, .class = VAPRO_COMMUNICATION, .blocking = true, .common = true,                \
		.roles = {__VA_ARGS__},                                                                                \
	}
/* These make the requests of common waits, which give a wait its size and peer. */
#define OFTEN_POSTS(name, ...)                                                                                         \
	{                                                                                                              \
		.symbol = "MPI_" #name, .class = VAPRO_COMMUNICATION, .common = true, .roles = {__VA_ARGS__},          \
	}
#define WAITS(name, ...) ROW(name, COMMUNICATION, true, false, __VA_ARGS__)
#define POSTS(name, ...) ROW(name, COMMUNICATION, false, false, __VA_ARGS__)
#define POLLS(name, ...) ROW(name, COMMUNICATION, false, true, __VA_ARGS__)
/* Queries how far communication is. */
#define PROGRESS(name, ...)                                                                                            \
	{                                                                                                              \
		.symbol = "MPI_" #name, .class = VAPRO_COMMUNICATION, .polling = true, .progress = true,               \
		.roles = {__VA_ARGS__},                                                                                \
	}
/*
 * A collective, its non-blocking form and the persistent one of MPI 4. The communicator is the last
 * argument; the other two forms add a request, or an info and a request, after it.
 */
#define COLLECTIVE(name, lower, at, more, ...) COLLECTIVE_OF(OFTEN, name, lower, at, more, ##__VA_ARGS__)
#define NEIGHBORS(name, lower, at, more, ...) COLLECTIVE_OF(WAITS, name, lower, at, more, ##__VA_ARGS__)
#define COLLECTIVE_OF(ROW_OF, name, lower, at, more, ...)                                                              \
	ROW_OF(name, .comm = (at), .flags = (more), ##__VA_ARGS__),                                                    \
	    POSTS(I##lower, .comm = (at), .request = (at) + 1, .flags = (more), ##__VA_ARGS__),                        \
	    POSTS(name##_init, .comm = (at), .request = (at) + 2, .flags = (more) | VAPRO_ROLE_PERSISTENT,             \
		  ##__VA_ARGS__)
#define FILE_ALONE(name, ...) ROW(File_##name, IO, false, false, __VA_ARGS__)
#define FILE_TOGETHER(name, ...) ROW(File_##name, IO, true, false, __VA_ARGS__)

#define EXACTLY_ONE .requests = 255

/* clang-format off */
const struct function_row function_rows[] = {
	/*
	 * Point to point. MPI_Bsend is local: it copies and never waits for its peer.
	 */
	OFTEN(Send, .count = 2, .type = 3, .peer = 4, .comm = 6),
	POSTS(Bsend, .count = 2, .type = 3, .peer = 4, .comm = 6),
	OFTEN(Ssend, .count = 2, .type = 3, .peer = 4, .comm = 6),
	OFTEN(Rsend, .count = 2, .type = 3, .peer = 4, .comm = 6),
	OFTEN(Recv, .count = 2, .type = 3, .peer = 4, .comm = 6),
	OFTEN(Sendrecv, .count = 2, .type = 3, .count2 = 7, .type2 = 8, .peer = 4, .comm = 11),
	OFTEN(Sendrecv_replace, .count = 2, .type = 3, .peer = 4, .comm = 8),
	OFTEN(Probe, .peer = 1, .comm = 3),
	WAITS(Mprobe, .peer = 1, .comm = 3),
	WAITS(Mrecv, .count = 2, .type = 3),
	OFTEN_POSTS(Isend, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7),
	POSTS(Ibsend, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7),
	POSTS(Issend, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7),
	POSTS(Irsend, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7),
	OFTEN_POSTS(Irecv, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7),
	POSTS(Imrecv, .count = 2, .type = 3, .request = 5),
	POSTS(Isendrecv, .count = 2, .type = 3, .count2 = 7, .type2 = 8, .peer = 4, .comm = 11, .request = 12),
	POSTS(Isendrecv_replace, .count = 2, .type = 3, .peer = 4, .comm = 8, .request = 9),
	OFTEN_POSTS(Send_init, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7, .flags = VAPRO_ROLE_PERSISTENT),
	POSTS(Bsend_init, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7, .flags = VAPRO_ROLE_PERSISTENT),
	POSTS(Ssend_init, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7, .flags = VAPRO_ROLE_PERSISTENT),
	POSTS(Rsend_init, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7, .flags = VAPRO_ROLE_PERSISTENT),
	OFTEN_POSTS(Recv_init, .count = 2, .type = 3, .peer = 4, .comm = 6, .request = 7, .flags = VAPRO_ROLE_PERSISTENT),
	POSTS(Psend_init, .peer = 5, .comm = 7, .request = 9, .flags = VAPRO_ROLE_PERSISTENT),
	POSTS(Precv_init, .peer = 5, .comm = 7, .request = 9, .flags = VAPRO_ROLE_PERSISTENT),
	OFTEN_POSTS(Start, EXACTLY_ONE, .flags = VAPRO_ROLE_START),
	OFTEN_POSTS(Startall, .requests = 1, .flags = VAPRO_ROLE_START),
	WAITS(Buffer_detach, 0),
	POSTS(Pready, 0),
	POSTS(Pready_range, 0),
	POSTS(Pready_list, 0),

	/*
	 * Completion.
	 */
	OFTEN(Wait, EXACTLY_ONE),
	OFTEN(Waitall, .requests = 1),
	OFTEN(Waitany, .requests = 1, .done = 3, .flags = VAPRO_ROLE_DONE_INDEX),
	OFTEN(Waitsome, .requests = 1, .done = 3, .flags = VAPRO_ROLE_DONE_SOME),
	PROGRESS(Test, EXACTLY_ONE, .done = 2, .flags = VAPRO_ROLE_DONE_FLAG),
	PROGRESS(Testall, .requests = 1, .done = 3, .flags = VAPRO_ROLE_DONE_FLAG),
	PROGRESS(Testany, .requests = 1, .done = 3, .flags = VAPRO_ROLE_DONE_INDEX),
	PROGRESS(Testsome, .requests = 1, .done = 3, .flags = VAPRO_ROLE_DONE_SOME),
	PROGRESS(Iprobe, .peer = 1, .comm = 3),
	PROGRESS(Improbe, .peer = 1, .comm = 3),
	PROGRESS(Parrived, 0),
	PROGRESS(Request_get_status, 0),
	POLLS(Request_free, 0),
	POLLS(Cancel, 0),
	POLLS(Test_cancelled, 0),
	PROGRESS(Win_test, 0),

	/*
	 * Collectives.
	 */
	COLLECTIVE(Barrier, barrier, 1, 0),
	COLLECTIVE(Bcast, bcast, 5, 0, .count = 2, .type = 3, .root = 4),
	COLLECTIVE(Reduce, reduce, 7, 0, .count = 3, .type = 4, .op = 5, .root = 6),
	COLLECTIVE(Allreduce, allreduce, 6, 0, .count = 3, .type = 4, .op = 5),
	COLLECTIVE(Scan, scan, 6, 0, .count = 3, .type = 4, .op = 5),
	COLLECTIVE(Exscan, exscan, 6, 0, .count = 3, .type = 4, .op = 5),
	COLLECTIVE(Reduce_scatter, reduce_scatter, 6, VAPRO_ROLE_COUNT_ARRAY, .count = 3, .type = 4, .op = 5),
	COLLECTIVE(Reduce_scatter_block, reduce_scatter_block, 6, 0, .count = 3, .type = 4, .op = 5),
	COLLECTIVE(Gather, gather, 8, 0, .count = 2, .type = 3, .root = 7),
	COLLECTIVE(Gatherv, gatherv, 9, 0, .count = 2, .type = 3, .root = 8),
	COLLECTIVE(Scatter, scatter, 8, 0, .count = 5, .type = 6, .root = 7),
	COLLECTIVE(Scatterv, scatterv, 9, 0, .count = 6, .type = 7, .root = 8),
	COLLECTIVE(Allgather, allgather, 7, 0, .count = 5, .type = 6),
	COLLECTIVE(Allgatherv, allgatherv, 8, 0, .count = 2, .type = 3),
	COLLECTIVE(Alltoall, alltoall, 7, 0, .count = 5, .type = 6),
	COLLECTIVE(Alltoallv, alltoallv, 9, VAPRO_ROLE_COUNT_ARRAY, .count = 6, .type = 8),
	COLLECTIVE(Alltoallw, alltoallw, 9, 0),
	NEIGHBORS(Neighbor_allgather, neighbor_allgather, 7, 0, .count = 5, .type = 6),
	NEIGHBORS(Neighbor_allgatherv, neighbor_allgatherv, 8, 0, .count = 2, .type = 3),
	NEIGHBORS(Neighbor_alltoall, neighbor_alltoall, 7, 0, .count = 5, .type = 6),
	NEIGHBORS(Neighbor_alltoallv, neighbor_alltoallv, 9, VAPRO_ROLE_COUNT_ARRAY, .count = 6, .type = 8),
	NEIGHBORS(Neighbor_alltoallw, neighbor_alltoallw, 9, 0),

	/*
	 * One-sided. Sizes are those of the origin. Processes wait in epochs; the standard also allows an
	 * operation to wait until the target has opened its epoch.
	 */
	WAITS(Put, .count = 2, .type = 3, .peer = 4),
	WAITS(Get, .count = 2, .type = 3, .peer = 4),
	WAITS(Accumulate, .count = 2, .type = 3, .peer = 4, .op = 8),
	WAITS(Get_accumulate, .count = 2, .type = 3, .peer = 7, .op = 11),
	WAITS(Rput, .count = 2, .type = 3, .peer = 4, .request = 9),
	WAITS(Rget, .count = 2, .type = 3, .peer = 4, .request = 9),
	WAITS(Raccumulate, .count = 2, .type = 3, .peer = 4, .op = 8, .request = 10),
	WAITS(Rget_accumulate, .count = 2, .type = 3, .peer = 7, .op = 11, .request = 13),
	WAITS(Fetch_and_op, .peer = 4, .op = 6),
	WAITS(Compare_and_swap, .peer = 5),
	WAITS(Win_fence, 0),
	WAITS(Win_start, 0),
	WAITS(Win_complete, 0),
	POSTS(Win_post, 0),
	WAITS(Win_wait, 0),
	WAITS(Win_lock, .peer = 2),
	WAITS(Win_lock_all, 0),
	WAITS(Win_unlock, .peer = 1),
	WAITS(Win_unlock_all, 0),
	WAITS(Win_flush, .peer = 1),
	WAITS(Win_flush_all, 0),
	WAITS(Win_flush_local, .peer = 1),
	WAITS(Win_flush_local_all, 0),
	POSTS(Win_sync, 0),
	WAITS(Win_create, .comm = 5),
	WAITS(Win_create_dynamic, .comm = 2),
	WAITS(Win_allocate, .comm = 4),
	WAITS(Win_allocate_shared, .comm = 4),
	WAITS(Win_free, 0),

	/*
	 * Start, end, and communicators: all members meet.
	 */
	OFTEN(Init, 0),
	OFTEN(Init_thread, 0),
	OFTEN(Finalize, 0),
	WAITS(Session_init, 0),
	WAITS(Session_finalize, 0),
	WAITS(Comm_dup, .comm = 1),
	WAITS(Comm_dup_with_info, .comm = 1),
	POSTS(Comm_idup, .comm = 1, .request = 3),
	POSTS(Comm_idup_with_info, .comm = 1, .request = 4),
	WAITS(Comm_split, .comm = 1),
	WAITS(Comm_split_type, .comm = 1),
	WAITS(Comm_create, .comm = 1),
	WAITS(Comm_create_group, .comm = 1),
	WAITS(Comm_create_from_group, 0),
	WAITS(Comm_free, 0),
	WAITS(Comm_disconnect, 0),
	WAITS(Comm_accept, .root = 3, .comm = 4),
	WAITS(Comm_connect, .root = 3, .comm = 4),
	WAITS(Comm_join, 0),
	WAITS(Comm_spawn, .root = 5, .comm = 6),
	WAITS(Comm_spawn_multiple, .root = 6, .comm = 7),
	WAITS(Intercomm_create, .comm = 1),
	WAITS(Intercomm_merge, .comm = 1),
	WAITS(Cart_create, .comm = 1),
	WAITS(Cart_sub, .comm = 1),
	WAITS(Graph_create, .comm = 1),
	WAITS(Dist_graph_create, .comm = 1),
	WAITS(Dist_graph_create_adjacent, .comm = 1),

	/*
	 * MPI-IO.
	 */
	FILE_TOGETHER(open, .comm = 1),
	FILE_TOGETHER(close, 0),
	FILE_ALONE(delete, 0),
	FILE_TOGETHER(set_size, 0),
	FILE_TOGETHER(preallocate, 0),
	FILE_TOGETHER(set_view, 0),
	FILE_TOGETHER(sync, 0),
	FILE_TOGETHER(set_info, 0),
	FILE_TOGETHER(set_atomicity, 0),
	FILE_ALONE(seek, 0),
	FILE_TOGETHER(seek_shared, 0),
	FILE_ALONE(read, .count = 3, .type = 4),
	FILE_ALONE(write, .count = 3, .type = 4),
	FILE_TOGETHER(read_all, .count = 3, .type = 4),
	FILE_TOGETHER(write_all, .count = 3, .type = 4),
	FILE_ALONE(read_at, .count = 4, .type = 5),
	FILE_ALONE(write_at, .count = 4, .type = 5),
	FILE_TOGETHER(read_at_all, .count = 4, .type = 5),
	FILE_TOGETHER(write_at_all, .count = 4, .type = 5),
	FILE_ALONE(read_shared, .count = 3, .type = 4),
	FILE_ALONE(write_shared, .count = 3, .type = 4),
	FILE_TOGETHER(read_ordered, .count = 3, .type = 4),
	FILE_TOGETHER(write_ordered, .count = 3, .type = 4),
	FILE_ALONE(iread, .count = 3, .type = 4, .request = 5),
	FILE_ALONE(iwrite, .count = 3, .type = 4, .request = 5),
	FILE_ALONE(iread_all, .count = 3, .type = 4, .request = 5),
	FILE_ALONE(iwrite_all, .count = 3, .type = 4, .request = 5),
	FILE_ALONE(iread_at, .count = 4, .type = 5, .request = 6),
	FILE_ALONE(iwrite_at, .count = 4, .type = 5, .request = 6),
	FILE_ALONE(iread_at_all, .count = 4, .type = 5, .request = 6),
	FILE_ALONE(iwrite_at_all, .count = 4, .type = 5, .request = 6),
	FILE_ALONE(iread_shared, .count = 3, .type = 4, .request = 5),
	FILE_ALONE(iwrite_shared, .count = 3, .type = 4, .request = 5),
	FILE_TOGETHER(read_all_begin, .count = 3, .type = 4),
	FILE_TOGETHER(read_all_end, 0),
	FILE_TOGETHER(write_all_begin, .count = 3, .type = 4),
	FILE_TOGETHER(write_all_end, 0),
	FILE_TOGETHER(read_at_all_begin, .count = 4, .type = 5),
	FILE_TOGETHER(read_at_all_end, 0),
	FILE_TOGETHER(write_at_all_begin, .count = 4, .type = 5),
	FILE_TOGETHER(write_at_all_end, 0),
	FILE_TOGETHER(read_ordered_begin, .count = 3, .type = 4),
	FILE_TOGETHER(read_ordered_end, 0),
	FILE_TOGETHER(write_ordered_begin, .count = 3, .type = 4),
	FILE_TOGETHER(write_ordered_end, 0),

	/*
	 * Bookkeeping: no peer takes part, but an edge with such a call is not pure computation.
	 */
	POLLS(Comm_rank, .comm = 1),
	POLLS(Comm_size, .comm = 1),
	POLLS(Comm_remote_size, .comm = 1),
	POLLS(Comm_test_inter, .comm = 1),
	POLLS(Comm_compare, .comm = 1),
	POLLS(Comm_group, .comm = 1),
	POLLS(Comm_get_attr, .comm = 1),
	POLLS(Comm_get_name, .comm = 1),
	POLLS(Comm_set_name, .comm = 1),
	POLLS(Cart_coords, .comm = 1),
	POLLS(Cart_rank, .comm = 1),
	POLLS(Cart_shift, .comm = 1),
	POLLS(Cart_get, .comm = 1),
	POLLS(Cartdim_get, .comm = 1),
	POLLS(Graph_get, .comm = 1),
	POLLS(Graph_neighbors, .comm = 1),
	POLLS(Graph_neighbors_count, .comm = 1),
	POLLS(Dist_graph_neighbors, .comm = 1),
	POLLS(Dist_graph_neighbors_count, .comm = 1),
	POLLS(Topo_test, .comm = 1),
	POLLS(Attr_get, .comm = 1),
	POLLS(Group_rank, 0),
	POLLS(Group_size, 0),
	POLLS(Group_incl, 0),
	POLLS(Group_excl, 0),
	POLLS(Group_free, 0),
	POLLS(Group_translate_ranks, 0),
	POLLS(Type_size, 0),
	POLLS(Type_get_extent, 0),
	POLLS(Type_contiguous, 0),
	POLLS(Type_vector, 0),
	POLLS(Type_commit, 0),
	POLLS(Type_free, 0),
	POLLS(Pack, .count = 2, .type = 3, .comm = 7),
	POLLS(Unpack, .count = 5, .type = 6, .comm = 7),
	POLLS(Pack_size, .comm = 3),
	POLLS(Reduce_local, .count = 3, .type = 4, .op = 5),
	POLLS(Get_count, 0),
	POLLS(Get_elements, 0),
	POLLS(Get_address, 0),
	POLLS(Get_processor_name, 0),
	POLLS(Get_version, 0),
	POLLS(Status_set_cancelled, 0),
	POLLS(Status_set_elements, 0),
	POLLS(Alloc_mem, 0),
	POLLS(Free_mem, 0),
	POLLS(Info_create, 0),
	POLLS(Info_set, 0),
	POLLS(Info_get, 0),
	POLLS(Info_free, 0),
	POLLS(Initialized, 0),
	POLLS(Finalized, 0),
	POLLS(Query_thread, 0),
	POLLS(Is_thread_main, 0),
	POLLS(Error_string, 0),
	POLLS(Error_class, 0),
	POLLS(Pcontrol, 0),
	POLLS(Wtime, 0),
	POLLS(Wtick, 0),
};
/* clang-format on */

const unsigned int function_row_count = sizeof(function_rows) / sizeof(*function_rows);

bool functions__never_waits(const struct function_row *row)
{
	return row->class == VAPRO_COMMUNICATION && row->kind == KERNEL_ROW_CALL && !row->own_sites && !row->threads &&
	       !row->blocking && !row->polling;
}

/* Names of units, which are those of their functions. Those from FIRST_WAITING on can wait. */
static const char *const units[FUNCTIONS_UNITS] = {
    "Isend",
    "Irecv",
    "Start",
    "Startall",
    "others",
    "Put",
    "Get",
    "Accumulate",
    "Get_accumulate",
    "Fetch_and_op",
    "Win_lock",
    "Win_unlock",
    "Win_flush",
    "Win_flush_all",
    "Win_flush_local",
    "Win_flush_local_all",
};

#define OTHERS 4
#define FIRST_WAITING 5

_Static_assert(KERNEL_SET_POSTS == (1U << FIRST_WAITING) - 1, "functions that never wait are those that post");

int functions__other_unit(void)
{
	return OTHERS;
}

int functions__unit(unsigned int number)
{
	if (number >= function_row_count)
		return -1;
	for (int unit = 0; unit < FUNCTIONS_UNITS; unit++)
		if (!strcmp(function_rows[number].symbol + strlen("MPI_"), units[unit]))
			return unit;
	return functions__never_waits(&function_rows[number]) ? OTHERS : -1;
}

void functions__name_units(uint32_t set, char *text, size_t size)
{
	size_t used = 0;

	*text = '\0';
	for (int unit = 0; unit < FUNCTIONS_UNITS; unit++) {
		int n;

		if (!(set >> unit & 1))
			continue;
		n = snprintf(text + used, size - used, "%s%s", used ? "," : "", units[unit]);
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

bool functions__read_units(const char *text, uint32_t *set)
{
	*set = 0;
	for (size_t length;; text += length + 1) {
		uint32_t before = *set;

		length = strcspn(text, ",");
		for (int unit = 0; unit < FUNCTIONS_UNITS; unit++)
			if (strlen(units[unit]) == length && !strncmp(units[unit], text, length))
				*set |= 1U << unit;
		if (*set == before)
			return false;
		if (!text[length])
			return true;
	}
}

int functions__find(const char *symbol)
{
	if (symbol[0] == 'P')
		symbol++;
	if (strncmp(symbol, "MPI_", 4) != 0)
		return -1;
	for (unsigned int i = 0; i < function_row_count; i++)
		if (!strcmp(function_rows[i].symbol, symbol))
			return (int)i;
	return -1;
}

uint32_t functions__plain(const struct function_row *row)
{
	const struct vapro_roles *roles = &row->roles;
	const uint8_t read[] = {roles->count, roles->type, roles->peer, roles->root, roles->op, roles->comm};

	uint32_t arguments = 0;

	if (roles->requests || roles->count2 || roles->flags & VAPRO_ROLE_COUNT_ARRAY)
		return 0;
	for (size_t i = 0; i < sizeof(read); i++) {
		if (read[i] > KERNEL_PLAIN_ARGUMENTS)
			return 0;
		if (read[i])
			arguments |= 1U << (read[i] - 1);
	}
	return KERNEL_SITE_PLAIN | arguments << KERNEL_SITE_READS;
}

unsigned int functions__arguments(const struct function_row *row)
{
	const struct vapro_roles *roles = &row->roles;
	const uint8_t read[] = {roles->count, roles->type, roles->count2, roles->type2,	  roles->peer,
				roles->root,  roles->op,   roles->comm,	  roles->request, roles->done};
	unsigned int arguments = 0;

	for (size_t i = 0; i < sizeof(read); i++)
		if (read[i] && read[i] <= 6)
			arguments |= 1U << (read[i] - 1);
	/* Requests follow their number; a single one is the first argument. */
	if (roles->requests == 255)
		arguments |= 1U;
	else if (roles->requests && roles->requests < 6)
		arguments |= 3U << (roles->requests - 1);
	/* Indices follow their number. */
	if (roles->flags & VAPRO_ROLE_DONE_SOME && roles->done < 6)
		arguments |= 1U << roles->done;
	return arguments;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/labels.h"

#include <bpf/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "functions/functions.h"

/* Predefined handles of Open MPI, in the order of their numbers. */
static const char *const comm_objects[] = {"ompi_mpi_comm_world", "ompi_mpi_comm_self"};
static const char *const op_objects[] = {
    "ompi_mpi_op_null", "ompi_mpi_op_max",    "ompi_mpi_op_min",    "ompi_mpi_op_sum",	  "ompi_mpi_op_prod",
    "ompi_mpi_op_land", "ompi_mpi_op_band",   "ompi_mpi_op_lor",    "ompi_mpi_op_bor",	  "ompi_mpi_op_lxor",
    "ompi_mpi_op_bxor", "ompi_mpi_op_maxloc", "ompi_mpi_op_minloc", "ompi_mpi_op_replace"};
#define COMMS (sizeof(comm_objects) / sizeof(comm_objects[0]))
#define OPS (sizeof(op_objects) / sizeof(op_objects[0]))

static const char *syscall_name(unsigned int number)
{
	switch (number) {
	case SYS_read:
		return "read";
	case SYS_write:
		return "write";
	case SYS_pread64:
		return "pread";
	case SYS_pwrite64:
		return "pwrite";
	case SYS_readv:
		return "readv";
	case SYS_writev:
		return "writev";
	case SYS_openat:
		return "open";
#ifdef SYS_open
	case SYS_open:
		return "open";
#endif
	case SYS_close:
		return "close";
	case SYS_fsync:
		return "fsync";
	case SYS_fdatasync:
		return "fdatasync";
	}
	return "syscall";
}

static const char *function_name(unsigned int function)
{
	if (function >= KERNEL_FUNCTIONS)
		return syscall_name(function - KERNEL_FUNCTIONS);
	return functions__row(function) ? functions__row(function)->symbol : "calibration";
}

/* Returns the suffix of a function's name for a vertex at its end. */
static const char *end_name(const struct kernel_vertex_key *key)
{
	const struct function_row *row = functions__row(key->function);

	if (!(key->flags & KERNEL_VERTEX_EXIT))
		return "";
	return row && row->kind == KERNEL_ROW_OUTLINED ? ":barrier" : ":exit";
}

enum vapro_class labels__class(const struct kernel_vertex_key *key)
{
	if (key->function >= KERNEL_FUNCTIONS)
		return VAPRO_IO;
	return functions__row(key->function) ? functions__row(key->function)->class : VAPRO_COMMUNICATION;
}

/* Appends " key=value"; a pair that does not fit is left out. */
__attribute__((format(printf, 3, 4))) static void put(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;
	int n;

	if (used && used + 1 < size)
		text[used++] = ' ';
	va_start(args, format);
	n = vsnprintf(text + used, size - used, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= size - used)
		text[used ? used - 1 : 0] = '\0';
}

/*
 * Writes a cell (cell_of in bpf/logic.h) as its least size, marked ~ where the cell has others (from 16 on). All sizes
 * of a cell have one text, so that ranks and calls whose sizes differ a little share a state.
 */
static void put_size(char *text, size_t size, const char *which, uint16_t cell)
{
	unsigned long long least = cell < 8 ? cell : (8ULL + (cell & 7)) << ((cell >> 3) - 1);

	put(text, size, "%s.bytes=%s%llu", which, cell < 16 ? "" : "~", least);
}

/* Writes the size at an edge's end. */
static void put_side_size(char *text, size_t size, const char *which, const struct kernel_vertex_key *key)
{
	if (key->flags & KERNEL_VERTEX_NO_BYTES)
		put(text, size, "%s.bytes=unknown", which);
	else
		put_size(text, size, which, key->cell);
}

/* Names functions that are not probed: their calls may lie between two probed ones. */
static void put_set(char *text, size_t size, const struct kernel_vertex_key *key)
{
	char names[FUNCTIONS_UNITS_TEXT];

	if (!key->set)
		return;
	functions__name_units(key->set, names, sizeof(names));
	put(text, size, "without=%s", names);
}

static unsigned int comm_number(struct labels_process *process, uint16_t comm)
{
	unsigned int number = comm - 1u; /* the kernel side's number less 1, as 0 is none */

	if (number < COMMS)
		return number;
	for (unsigned int i = 0; i < process->comm_count; i++)
		if (process->comms[i] == number)
			return i + 2;
	if (process->comm_count == LABELS_COMMS)
		return LABELS_COMMS + 2;
	process->comms[process->comm_count++] = (uint16_t)number;
	return process->comm_count + 1u;
}

static const char *op_name(uint16_t op)
{
	unsigned int number = op - 1u;

	return number < OPS ? op_objects[number] + strlen("ompi_mpi_op_") : "user";
}

static const char *fd_kind(uint16_t kind)
{
	static const char *const names[16] = {
	    [1] = "fifo", [2] = "char", [4] = "directory", [6] = "block", [8] = "file", [12] = "socket"};

	return kind < 16 && names[kind] ? names[kind] : "other";
}

/* Writes an argument's rank, or `other` for ranks without a state of their own. */
static void put_rank(char *text, size_t size, const char *which, int rank, bool others)
{
	if (others)
		put(text, size, "%s=other", which);
	else
		put(text, size, "%s=%d", which, rank);
}

/* Says whether the call completes or starts requests: their number, 0 too, is part of its work. */
static bool names_requests(const struct kernel_vertex_key *key)
{
	return key->function < function_row_count && function_rows[key->function].roles.requests;
}

void labels__vertex(struct labels_process *process, const struct kernel_vertex_key *key, char *labels, char *common,
		    size_t size)
{
	const struct function_row *row = functions__row(key->function);
	bool others = key->flags & KERNEL_VERTEX_OTHERS;

	labels[0] = common[0] = '\0';
	if (key->flags & KERNEL_VERTEX_NO_BYTES) {
		put(labels, size, "bytes=unknown");
		put(common, size, "bytes=unknown");
	}
	if (key->comm == KERNEL_OTHER_HANDLES)
		put(labels, size, "comm=other");
	else if (key->comm)
		put(labels, size, "comm=%u", comm_number(process, key->comm));
	if (key->fd_kind && others) {
		put(labels, size, "fd_kind=%s file=other", fd_kind(key->fd_kind));
		put(common, size, "fd_kind=%s", fd_kind(key->fd_kind));
	} else if (key->fd_kind) {
		put(labels, size, "fd_kind=%s file=%u", fd_kind(key->fd_kind), key->file);
		put(common, size, "fd_kind=%s", fd_kind(key->fd_kind));
	}
	for (int i = 0; i < 2; i++) {
		char *text = i ? common : labels;

		put(text, size, "function=%s%s", function_name(key->function), end_name(key));
		if (key->mode)
			put(text, size, "mode=%#o", key->mode);
		if (key->flags & KERNEL_VERTEX_NO_RETURN)
			put(text, size, "no_return=1");
		if (key->op)
			put(text, size, "op=%s", op_name(key->op));
		if (!i && !(key->flags & KERNEL_VERTEX_NO_PEER))
			put_rank(text, size, "peer", key->peer, others);
		if (names_requests(key))
			put(text, size, "requests=%u", key->requests);
		if (!(key->flags & KERNEL_VERTEX_NO_ROOT))
			put_rank(text, size, "root", key->root, others);
		if (row && row->threads)
			put(text, size, "scope=process");
		if (key->flags & KERNEL_VERTEX_NO_SIZE)
			put(text, size, "unit=elements");
		put_set(text, size, key);
	}
}

static void side(char *text, size_t size, const char *which, const struct kernel_vertex_key *key)
{
	put_side_size(text, size, which, key);
	put(text, size, "%s.function=%s%s", which, function_name(key->function), end_name(key));
	if (key->op)
		put(text, size, "%s.op=%s", which, op_name(key->op));
	if (names_requests(key))
		put(text, size, "%s.requests=%u", which, key->requests);
	if (!(key->flags & KERNEL_VERTEX_NO_ROOT) && key->flags & KERNEL_VERTEX_OTHERS)
		put(text, size, "%s.root=other", which);
	else if (!(key->flags & KERNEL_VERTEX_NO_ROOT))
		put(text, size, "%s.root=%d", which, key->root);
	if (key->flags & KERNEL_VERTEX_NO_SIZE)
		put(text, size, "%s.unit=elements", which);
}

void labels__edge(const struct kernel_vertex_key *from, const struct kernel_vertex_key *to, bool polls, char *labels,
		  char *common, size_t size)
{
	labels[0] = '\0';
	side(labels, size, "from", from);
	if (polls)
		put(labels, size, "polls=1");
	side(labels, size, "to", to);
	put_set(labels, size, to);
	memcpy(common, labels, size);
}

/* Open MPI's, in the order of their numbers; MPICH's null is a number of its ABI, and the kernel finds its shared ones.
 */
static const char *const request_objects[] = {"ompi_request_null", "ompi_request_empty"};
static const uint32_t mpich_requests[] = {0x2c000000};

/* Handles of MPICH and of the standard ABI (MPI 5.0, Application Binary Interface) are numbers, here in the same order.
 */
static const uint32_t mpich_comms[COMMS] = {0x44000000, 0x44000001};
static const uint32_t mpich_ops[OPS] = {0x18000000, 0x58000001, 0x58000002, 0x58000003, 0x58000004,
					0x58000005, 0x58000006, 0x58000007, 0x58000008, 0x58000009,
					0x5800000a, 0x5800000c, 0x5800000b, 0x5800000d};

static const uint32_t standard_comms[COMMS] = {0x101, 0x102};
static const uint32_t standard_ops[OPS] = {0x20, 0x23, 0x22, 0x21, 0x24, 0x30, 0x28,
					   0x31, 0x29, 0x32, 0x2a, 0x39, 0x38, 0x3c};
static const uint32_t standard_requests[] = {0x180};

static void push_numbers(int map, pid_t pid, uint32_t kind, const uint32_t *numbers, size_t count)
{
	struct kernel_handle_key key = {.tgid = (uint32_t)pid, .kind = kind};

	for (uint32_t i = 0; i < count; i++) {
		key.handle = numbers[i];
		bpf_map_update_elem(map, &key, &i, BPF_ANY);
	}
}

static void push(struct callsites *callsites, int map, pid_t pid, uint32_t kind, const char *const *names, size_t count)
{
	struct kernel_handle_key key = {.tgid = (uint32_t)pid, .kind = kind};

	for (uint32_t i = 0; i < count; i++)
		if (!callsites__object(callsites, names[i], &key.handle))
			bpf_map_update_elem(map, &key, &i, BPF_ANY);
}

void labels__push_handles(struct callsites *callsites, int map, pid_t pid, enum process_mpi mpi)
{
	if (mpi == PROCESS_MPICH) {
		push_numbers(map, pid, KERNEL_COMM, mpich_comms, COMMS);
		push_numbers(map, pid, KERNEL_OP, mpich_ops, OPS);
		push_numbers(map, pid, KERNEL_REQUEST, mpich_requests, 1);
	} else if (mpi == PROCESS_STANDARD_ABI) {
		push_numbers(map, pid, KERNEL_COMM, standard_comms, COMMS);
		push_numbers(map, pid, KERNEL_OP, standard_ops, OPS);
		push_numbers(map, pid, KERNEL_REQUEST, standard_requests, 1);
	} else if (mpi == PROCESS_OPEN_MPI) {
		push(callsites, map, pid, KERNEL_COMM, comm_objects, COMMS);
		push(callsites, map, pid, KERNEL_OP, op_objects, OPS);
		push(callsites, map, pid, KERNEL_REQUEST, request_objects, 2);
	}
}

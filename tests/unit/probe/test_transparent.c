// SPDX-License-Identifier: GPL-2.0-or-later
/* Tables of transparent images, compared with functions whose frames are known and walked while they are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../bpf/logic.h"
#include "collect/labels.h"
#include "functions/functions.h"
#include "probe/elf/transparent.h"

static void test_names(void **state)
{
	(void)state;
	assert_true(transparent__is("libmpi_mpifh.so.40.30.4", ""));
	assert_true(transparent__is("libmpi_usempif08.so.40", ""));
	assert_true(transparent__is("libmpi_usempi_ignore_tkr.so.40.30.0", ""));
	assert_true(transparent__is("libmpichfort.so.12", ""));
	assert_false(transparent__is("libmpi.so.40", ""));
	assert_false(transparent__is("libmpich.so.12", ""));
	assert_false(transparent__is("libboost_mpi.so.1.74.0", ""));
	assert_true(transparent__is("libboost_mpi.so.1.74.0", "libboost_mpi*.so*"));
	assert_true(transparent__is("libboost_mpi.so.1.74.0", "MPI.*.so,libboost_mpi*.so*"));
	assert_true(transparent__is("MPI.cpython-311.so", ",MPI.*.so,,libboost_mpi*.so*"));
	assert_false(transparent__is("libother.so", "MPI.*.so,libboost_mpi*.so*,"));
}

#if defined(__x86_64__)

/*
 * outer calls framed, which keeps its frame by the frame pointer, which calls middle, which saves the
 * frame pointer and spoils it, which calls inner, which has room and a saved register, which calls callee.
 */
__asm__(".pushsection .text\n"
	".type t_inner, @function\n"
	"t_inner:\n .cfi_startproc\n push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_offset %rbx, -16\n"
	" sub $32, %rsp\n .cfi_adjust_cfa_offset 32\n call t_callee\n"
	".globl t_inner_back\nt_inner_back:\n add $32, %rsp\n .cfi_adjust_cfa_offset -32\n pop %rbx\n"
	" .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n .size t_inner, .-t_inner\n"
	".type t_middle, @function\n"
	"t_middle:\n .cfi_startproc\n push %rbp\n .cfi_adjust_cfa_offset 8\n .cfi_offset %rbp, -16\n"
	" xor %ebp, %ebp\n call t_inner\n"
	".globl t_middle_back\nt_middle_back:\n pop %rbp\n .cfi_adjust_cfa_offset -8\n .cfi_restore %rbp\n ret\n"
	" .cfi_endproc\n .size t_middle, .-t_middle\n"
	".globl t_outer\n.type t_outer, @function\n"
	"t_outer:\n .cfi_startproc\n sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n call t_framed\n"
	".globl t_outer_back\nt_outer_back:\n add $8, %rsp\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n"
	".size t_outer, .-t_outer\n"
	".type t_framed, @function\n"
	"t_framed:\n .cfi_startproc\n push %rbp\n .cfi_adjust_cfa_offset 8\n .cfi_offset %rbp, -16\n mov %rsp, %rbp\n"
	" .cfi_def_cfa_register %rbp\n sub $16, %rsp\n call t_middle\n"
	".globl t_framed_back\nt_framed_back:\n add $16, %rsp\n pop %rbp\n .cfi_def_cfa %rsp, 8\n ret\n .cfi_endproc\n"
	".size t_framed, .-t_framed\n"
	".popsection\n");

extern void t_outer(void);
extern const char t_inner_back[], t_middle_back[], t_outer_back[], t_framed_back[], __executable_start[];
void t_callee(void);

static struct transparent_call *calls;
static int call_count;
static uint64_t seen_site[4], seen_frame[4];
static int seen;

static const struct kernel_hop *hop_at(uint64_t address)
{
	for (int i = 0; i < call_count; i++)
		if (calls[i].vaddr == address - (uint64_t)(uintptr_t)__executable_start)
			return &calls[i].hop;
	return NULL;
}

/* Walks up the stack as the kernel side does. */
__attribute__((noinline, no_sanitize("address", "undefined"))) void t_callee(void)
{
	uint64_t sp = (uint64_t)(uintptr_t)__builtin_dwarf_cfa(), frame = 1, base;
	uint64_t site = (uint64_t)(uintptr_t)__builtin_return_address(0);

	for (seen = 0; seen < 4; seen++) {
		const struct kernel_hop *hop = hop_at(site);

		if (!hop)
			return;
		base = hop->by_frame ? frame : sp;
		site = *(const uint64_t *)(uintptr_t)(base + (uint64_t)(int64_t)hop->return_at);
		if (hop->frame_at != KERNEL_FRAME_UNCHANGED)
			frame = *(const uint64_t *)(uintptr_t)(base + (uint64_t)(int64_t)hop->frame_at);
		sp = base + (uint64_t)(int64_t)hop->sp;
		seen_site[seen] = site;
		seen_frame[seen] = frame;
	}
}

static void test_walk(void **state)
{
	struct image *image;
	const struct kernel_hop *hop;
	uint64_t own;
	char err[256];

	(void)state;
	image = image__open("/proc/self/exe", err, sizeof(err));
	assert_non_null(image);
	call_count = transparent__find(image, &calls);
	assert_true(call_count > 100);
	for (int i = 1; i < call_count; i++)
		assert_true(calls[i].vaddr > calls[i - 1].vaddr);

	hop = hop_at((uint64_t)(uintptr_t)t_inner_back);
	assert_non_null(hop);
	assert_int_equal(hop->return_at, 40);
	assert_int_equal(hop->sp, 48);
	assert_int_equal(hop->frame_at, KERNEL_FRAME_UNCHANGED);
	hop = hop_at((uint64_t)(uintptr_t)t_middle_back);
	assert_non_null(hop);
	assert_int_equal(hop->return_at, 8);
	assert_int_equal(hop->sp, 16);
	assert_int_equal(hop->frame_at, 0);
	assert_false(hop->by_frame);
	hop = hop_at((uint64_t)(uintptr_t)t_framed_back);
	assert_non_null(hop);
	assert_true(hop->by_frame);
	assert_int_equal(hop->return_at, 8);
	assert_int_equal(hop->sp, 16);
	assert_int_equal(hop->frame_at, 0);

	__asm__ volatile("mov %%rbp, %0" : "=r"(own));
	t_outer();
	assert_int_equal(seen, 4);
	assert_int_equal(seen_site[0], (uint64_t)(uintptr_t)t_middle_back);
	assert_int_equal(seen_site[1], (uint64_t)(uintptr_t)t_framed_back);
	assert_int_equal(seen_site[2], (uint64_t)(uintptr_t)t_outer_back);
	assert_int_equal(seen_frame[0], 1); /* inner does not change it */
	assert_true(seen_frame[1] < own);   /* the frame of framed */
	assert_int_equal(seen_frame[2], own);
	assert_int_equal(seen_frame[3], own);
	free(calls);
	image__free(image);
}

#endif

static struct kernel_vertex_key vertex(const char *symbol)
{
	return (struct kernel_vertex_key){.function = (uint16_t)functions__find(symbol),
					  .flags = KERNEL_VERTEX_NO_PEER | KERNEL_VERTEX_NO_ROOT};
}

static void test_labels(void **state)
{
	struct labels_process process = {0};
	struct kernel_vertex_key wait = vertex("MPI_Waitall"), send = vertex("MPI_Send");
	char labels[LABELS_MAX], common[LABELS_MAX];

	(void)state;
	wait.requests = 4;
	labels__vertex(&process, &wait, labels, common, LABELS_MAX);
	assert_string_equal(labels, "function=MPI_Waitall requests=4");
	assert_string_equal(common, labels);
	wait.requests = 0; /* all requests null: zero is a number too */
	labels__vertex(&process, &wait, labels, common, LABELS_MAX);
	assert_string_equal(labels, "function=MPI_Waitall requests=0");
	send.flags = KERNEL_VERTEX_NO_SIZE;
	send.peer = 3;
	labels__vertex(&process, &send, labels, common, LABELS_MAX);
	assert_string_equal(labels, "function=MPI_Send peer=3 root=0 unit=elements");
	assert_string_equal(common, "function=MPI_Send root=0 unit=elements");
	send.flags |= KERNEL_VERTEX_OTHERS;
	send.comm = KERNEL_OTHER_HANDLES;
	labels__vertex(&process, &send, labels, common, LABELS_MAX);
	assert_string_equal(labels, "comm=other function=MPI_Send peer=other root=other unit=elements");
	assert_string_equal(common, "function=MPI_Send root=other unit=elements");
	labels__edge(&send, &send, false, labels, common, LABELS_MAX);
	assert_non_null(strstr(labels, "from.root=other"));
	send.comm = 0;
	send.flags = KERNEL_VERTEX_NO_SIZE;
	send.flags |= KERNEL_VERTEX_NO_ROOT;
	wait.requests = 2;
	labels__edge(&wait, &send, false, labels, common, LABELS_MAX);
	assert_string_equal(labels, "from.bytes=0 from.function=MPI_Waitall from.requests=2 to.bytes=0 "
				    "to.function=MPI_Send to.unit=elements");
}

/* States of a set of functions name those left out, and completions of requests not followed are labelled. */
static void test_sets(void **state)
{
	struct labels_process process = {0};
	struct kernel_vertex_key wait = vertex("MPI_Waitall"), reduce = vertex("MPI_Reduce_scatter_block");
	char labels[LABELS_MAX], common[LABELS_MAX], names[FUNCTIONS_UNITS_TEXT], last[FUNCTIONS_UNITS_TEXT + 16];

	(void)state;
	wait.requests = 8;
	wait.set = 3;
	wait.flags |= KERNEL_VERTEX_NO_BYTES;
	labels__vertex(&process, &wait, labels, common, LABELS_MAX);
	assert_string_equal(labels, "bytes=unknown function=MPI_Waitall requests=8 without=Isend,Irecv");
	assert_string_equal(common, labels);
	labels__edge(&wait, &wait, false, labels, common, LABELS_MAX);
	assert_string_equal(labels, "from.bytes=unknown from.function=MPI_Waitall from.requests=8 to.bytes=unknown "
				    "to.function=MPI_Waitall to.requests=8 without=Isend,Irecv");
	/* the set's label stays, however long the other labels are */
	reduce.set = UINT16_MAX;
	reduce.op = 14;
	reduce.root = INT32_MIN;
	reduce.flags = KERNEL_VERTEX_NO_SIZE;
	reduce.cell = cell_of(UINT64_MAX);
	labels__edge(&reduce, &reduce, true, labels, common, LABELS_MAX);
	functions__name_units(UINT16_MAX, names, sizeof(names));
	snprintf(last, sizeof(last), " without=%s", names);
	assert_non_null(strstr(names, "others"));
	assert_string_equal(labels + strlen(labels) - strlen(last), last);
}

/* A size is exact where its cell has one value only, else the cell's least, marked; one text for all of a cell. */
static void test_sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {{0, "=0"},
		     {7, "=7"},
		     {8, "=8"},
		     {15, "=15"},
		     {16, "=~16"},
		     {17, "=~16"},
		     {160000, "=~147456"},
		     {147456, "=~147456"},
		     {163840, "=~163840"},
		     {1ULL << 40, "=~1099511627776"}};
	struct kernel_vertex_key from = vertex("MPI_Waitall"), to = vertex("MPI_Send");
	char labels[LABELS_MAX], common[LABELS_MAX], expected[LABELS_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		to.cell = cell_of(sizes[i].bytes);
		labels__edge(&from, &to, false, labels, common, LABELS_MAX);
		snprintf(expected, sizeof(expected), " to.bytes%s to.function=MPI_Send", sizes[i].text);
		assert_non_null(strstr(labels, expected));
		assert_string_equal(labels, common);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
#if defined(__x86_64__)
		cmocka_unit_test(test_walk),
#endif
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules of single frames of functions with known frames, as the confined reader looks them up. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/elf/frames.h"
#include "probe/elf/reader.h"
#include "target/image.h"

#if defined(__x86_64__)

/* A frame by the stack pointer, one by the frame pointer, one by an expression, and none. None is ever called. */
__asm__(".pushsection .text\n"
	".type f_plain, @function\n"
	"f_plain:\n .cfi_startproc\n sub $24, %rsp\n .cfi_adjust_cfa_offset 24\n call abort\n"
	".globl f_plain_back\nf_plain_back:\n add $24, %rsp\n .cfi_adjust_cfa_offset -24\n ret\n .cfi_endproc\n"
	".size f_plain, .-f_plain\n"
	".type f_framed, @function\n"
	"f_framed:\n .cfi_startproc\n push %rbp\n .cfi_adjust_cfa_offset 8\n .cfi_offset %rbp, -16\n mov %rsp, %rbp\n"
	" .cfi_def_cfa_register %rbp\n call abort\n"
	".globl f_framed_back\nf_framed_back:\n pop %rbp\n .cfi_def_cfa %rsp, 8\n ret\n .cfi_endproc\n"
	".size f_framed, .-f_framed\n"
	".type f_last, @function\n" /* nothing follows the call: its return address is the next function's */
	"f_last:\n .cfi_startproc\n sub $40, %rsp\n .cfi_adjust_cfa_offset 40\n call abort\n .cfi_endproc\n"
	".size f_last, .-f_last\n"
	".type f_aligned, @function\n"
	".globl f_last_back\nf_last_back:\n"
	"f_aligned:\n .cfi_startproc\n lea 8(%rsp), %r10\n .cfi_def_cfa %r10, 0\n and $-32, %rsp\n push -8(%r10)\n"
	" push %rbp\n mov %rsp, %rbp\n push %r10\n"
	" .cfi_escape 0x0f,0x03,0x76,0x78,0x06\n" /* DW_CFA_def_cfa_expression: *(rbp - 8) */
	" call abort\n"
	".globl f_aligned_back\nf_aligned_back:\n ret\n .cfi_endproc\n .size f_aligned, .-f_aligned\n"
	".type f_unseen, @function\n"
	"f_unseen:\n sub $8, %rsp\n call abort\n"
	".globl f_unseen_back\nf_unseen_back:\n add $8, %rsp\n ret\n .size f_unseen, .-f_unseen\n"
	".popsection\n");

extern const char f_plain_back[], f_framed_back[], f_last_back[], f_aligned_back[], f_unseen_back[],
    __executable_start[];

static const char *const backs[] = {f_plain_back, f_framed_back, f_last_back, f_aligned_back, f_unseen_back};
static const enum frame_rule rules[] = {FRAME_FOUND, FRAME_FOUND, FRAME_FOUND, FRAME_EXPRESSION, FRAME_NONE};
static const struct kernel_hop hops[] = {
    {.return_at = 24, .sp = 32, .frame_at = KERNEL_FRAME_UNCHANGED},
    {.return_at = 8, .sp = 16, .frame_at = 0, .by_frame = 1},
    {.return_at = 40, .sp = 48, .frame_at = KERNEL_FRAME_UNCHANGED},
    {0},
    {0},
};

#define FRAMES (sizeof(backs) / sizeof(backs[0]))

static void is(enum frame_rule rule, const struct kernel_hop *hop, size_t i)
{
	assert_int_equal(rule, rules[i]);
	assert_memory_equal(hop, &hops[i], sizeof(*hop));
}

static void test_rules(void **state)
{
	struct image *image;
	struct kernel_hop hop;
	char err[256];

	(void)state;
	image = image__open("/proc/self/exe", err, sizeof(err));
	assert_non_null(image);
	for (size_t i = 0; i < FRAMES; i++)
		is(frames__of(image, (uint64_t)(backs[i] - __executable_start), &hop), &hop, i);
	assert_int_equal(frames__of(image, 0, &hop), FRAME_NONE);
	assert_int_equal(frames__of(image, UINT64_MAX, &hop), FRAME_NONE);
	image__free(image);
}

static int look_up(int fd, const uint64_t *offsets, size_t count, struct frame *frames, char *err, size_t err_size)
{
	struct frames_lookup *lookup;
	uint64_t cpu_ns;
	int status = frames_lookup__begin(fd, 0, offsets, count, &lookup, err, err_size);

	if (status)
		return status;
	do {
		usleep(1000);
		status = frames_lookup__poll(lookup, frames, &cpu_ns, err, err_size);
	} while (status == -EAGAIN);
	frames_lookup__free(lookup);
	return status;
}

static void test_query(void **state)
{
	uint64_t offsets[FRAMES + 1];
	struct frame frames[FRAMES + 1];
	struct image *image;
	char err[256];
	int fd;

	(void)state;
	image = image__open("/proc/self/exe", err, sizeof(err));
	assert_non_null(image);
	for (size_t i = 0; i < FRAMES; i++)
		assert_int_equal(image__offset_of(image, (uint64_t)(backs[i] - __executable_start), &offsets[i]), 0);
	offsets[FRAMES] = UINT64_MAX; /* in no file */
	image__free(image);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(look_up(fd, offsets, FRAMES + 1, frames, err, sizeof(err)), 0);
	for (size_t i = 0; i < FRAMES; i++)
		is(frames[i].rule, &frames[i].hop, i);
	assert_int_equal(frames[FRAMES].rule, FRAME_NONE);
	close(fd);
}

/* A file that is no image costs one request. */
static void test_no_image(void **state)
{
	char path[] = "/tmp/vapro_frames.XXXXXX", err[256];
	uint64_t offset = 16;
	struct frame frame;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, path, sizeof(path)), sizeof(path));
	assert_int_equal(look_up(fd, &offset, 1, &frame, err, sizeof(err)), -EINVAL);
	assert_true(strlen(err) > 0);
	close(fd);
}

#endif

int main(int argc, char **argv)
{
	reader__main(argc, argv);
#if defined(__x86_64__)
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules),
	    cmocka_unit_test(test_query),
	    cmocka_unit_test(test_no_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	return 0;
#endif
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Probe sites: each rule of ARCHITECTURE section 2.2 on a function made for it (site_cases.S). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "functions/functions.h"
#include "probe/elf/iosites.h"
#include "probe/elf/site.h"
#include "target/image.h"

#define CASES "build/test/site_cases.so"
#define ALL 0x3f
#define RSI 0x2
#define RDX 0x4

struct find {
	const char *name;
	struct image_symbol found;
	int count;
};

static int find(const struct image_symbol *symbol, void *ctx)
{
	struct find *find = ctx;

	if (strcmp(symbol->name, find->name) != 0)
		return 0;
	find->found = *symbol;
	find->count++;
	return 0;
}

static struct image *open_image(const char *path)
{
	char err[256] = "";
	struct image *image = image__open(path, err, sizeof(err));

	if (!image)
		fail_msg("%s: %s", path, err);
	return image;
}

static struct image_symbol symbol_of(struct image *image, const char *name)
{
	struct find search = {.name = name};

	image__functions(image, true, find, &search);
	if (search.count != 1)
		fail_msg("%s: %d symbols", name, search.count);
	return search.found;
}

#if defined(__x86_64__)

static const struct expectation {
	const char *name;
	unsigned int arguments;
	uint32_t shift;
	enum site_class class;
	const char *reason; /* NULL: must be NULL */
} expectations[] = {
    /* the set that is emulated, at the entry */
    {"push_first", ALL, 0, SITE_EMULATED, NULL},
    {"push_rex", ALL, 0, SITE_EMULATED, NULL},
    {"nop_entry", ALL, 0, SITE_EMULATED, NULL},
    {"nop2_entry", ALL, 0, SITE_EMULATED, NULL},
    {"nop5_entry", ALL, 0, SITE_NOP5, NULL},
    {"push_immediate", ALL, 0, SITE_STEPPED, "stack pointer moved"},
    {"push_memory", ALL, 0, SITE_STEPPED, "stack pointer moved"},
    /* past the entry */
    {"mov_push", ALL, 7, SITE_EMULATED, NULL},
    {"mov_push_alias", ALL, 7, SITE_EMULATED, NULL},
    {"endbr_push", ALL, 4, SITE_EMULATED, NULL},
    {"nop4_middle", ALL, 3, SITE_EMULATED, NULL},
    {"nop7_entry", ALL, 7, SITE_EMULATED, NULL},
    {"jcc_later", ALL, 3, SITE_EMULATED, NULL},
    {"jcc_far_later", ALL, 3, SITE_EMULATED, NULL},
    {"call_later", ALL, 3, SITE_EMULATED, NULL},
    {"jump_later", ALL, 2, SITE_EMULATED, NULL},
    {"write", ALL, 7, SITE_EMULATED, NULL},
    /* AVX-512 */
    {"evex_push", ALL, 6, SITE_EMULATED, NULL},
    {"evex_writes_argument", ALL, 0, SITE_STEPPED, "argument written"},
    {"evex_writes_argument", ALL & ~RSI, 13, SITE_EMULATED, NULL},
    {"evex_behind_branch", ALL, 5, SITE_EMULATED, NULL},
    /* never a nop5 at k > 0 */
    {"nop5_middle", ALL, 8, SITE_EMULATED, NULL},
    {"nop5_only", ALL, 0, SITE_STEPPED, "control leaves the line"},
    /* (a) */
    {"ret_first", ALL, 0, SITE_STEPPED, "control leaves the line"},
    {"jump_indirect_first", ALL, 0, SITE_STEPPED, "control leaves the line"},
    {"call_indirect_before", ALL, 0, SITE_STEPPED, "control leaves the line"},
    {"loop_before", 0, 0, SITE_STEPPED, "control leaves the line"},
    {"syscall_before", 0, 0, SITE_STEPPED, "control leaves the line"},
    /* (b) */
    {"stack_moved", ALL, 0, SITE_STEPPED, "stack pointer moved"},
    {"cfa_moved", ALL, 0, SITE_STEPPED, "stack pointer moved"},
    {"cfa_other_register", ALL, 0, SITE_STEPPED, "no frame information"},
    {"no_frame", ALL, 0, SITE_STEPPED, "no frame information"},
    /* (c) */
    {"branch_onto", ALL, 0, SITE_STEPPED, "a branch lands before it"},
    {"branch_before", ALL, 0, SITE_STEPPED, "a branch lands before it"},
    {"branch_after", ALL, 3, SITE_EMULATED, NULL},
    {"branch_entry", ALL, 3, SITE_EMULATED, NULL},
    {"call_onto", ALL, 0, SITE_STEPPED, "a branch lands before it"},
    {"symbol_inside", ALL, 0, SITE_STEPPED, "a symbol lies before it"},
    {"table_same_stack", ALL, 0, SITE_STEPPED, "indirect jump"},
    {"table_other_stack", ALL, 5, SITE_EMULATED, NULL},
    {"tail_call_got", ALL, 5, SITE_EMULATED, NULL},
    {"undecodable_later", ALL, 0, SITE_STEPPED, "not all decodable"},
    {"no_size", ALL, 0, SITE_STEPPED, "size unknown"},
    /* (d) */
    {"argument_written", ALL, 0, SITE_STEPPED, "argument written"},
    {"argument_written", ALL & ~RSI, 5, SITE_EMULATED, NULL},
    {"argument_byte_written", RDX, 0, SITE_STEPPED, "argument written"},
    {"argument_byte_written", RSI, 2, SITE_EMULATED, NULL},
    {"argument_implicit", RDX, 0, SITE_STEPPED, "argument written"},
    {"argument_string", 0x1, 0, SITE_STEPPED, "argument written"},
    {"argument_string", 0x8, 0, SITE_STEPPED, "argument written"},
    {"argument_string", RSI, 2, SITE_EMULATED, NULL},
    {"argument_exchanged", 0x10, 0, SITE_STEPPED, "argument written"},
    {"argument_read", ALL, 9, SITE_EMULATED, NULL},
    /* instructions that must not be probed, although a later place may be */
    {"syscall_first", 0, 0, SITE_REFUSED, "system call instruction"},
    {"lock_first", ALL, 0, SITE_REFUSED, "lock prefix"},
    {"lock_then_push", ALL, 3, SITE_EMULATED, NULL},
    {"cs_nop_entry", ALL, 0, SITE_REFUSED, "segment prefix"},
    {"notrack_jump", ALL, 0, SITE_REFUSED, "segment prefix"},
    {"breakpoint_first", ALL, 0, SITE_REFUSED, "not in the kernel's table of instructions"},
    {"halt_first", ALL, 0, SITE_REFUSED, "not in the kernel's table of instructions"},
    {"vector_refused", ALL, 0, SITE_REFUSED, "not in the kernel's table of instructions"},
    {"vector_stepped", ALL, 0, SITE_STEPPED, "control leaves the line"},
    {"invalid_first", ALL, 0, SITE_REFUSED, "not decodable"},
    {"exchange_like_nop", ALL, 0, SITE_REFUSED, "xchg that the kernel takes for a nop"},
    {"word_branch", ALL, 0, SITE_REFUSED, "16-bit branch"},
    {"chosen_late", ALL, 0, SITE_REFUSED, "chosen at load time (IFUNC)"},
};

static void test_rules(void **state)
{
	struct image *image = open_image(CASES);

	(void)state;
	for (size_t i = 0; i < sizeof(expectations) / sizeof(*expectations); i++) {
		const struct expectation *want = &expectations[i];
		struct image_symbol symbol = symbol_of(image, want->name);
		struct site site;

		site__choose(image, &symbol, want->arguments, &site);
		if (site.shift != want->shift || site.class != want->class ||
		    (want->reason ? !site.reason || strcmp(site.reason, want->reason) != 0 : site.reason != NULL))
			fail_msg("%s: +%u %s %s", want->name, site.shift, site_class_name[site.class],
				 site.reason ? site.reason : "(no reason)");
		assert_int_equal(site.vaddr, symbol.vaddr + site.shift);
		assert_int_equal(site.offset, symbol.offset + site.shift);
		assert_non_null(site.instruction);
	}
	image__free(image);
}

static void test_outside(void **state)
{
	struct image *image = open_image(CASES);
	struct image_symbol symbol = {.name = "nowhere", .vaddr = 0x7fff0000, .size = 16};
	struct site site;

	(void)state;
	site__choose(image, &symbol, ALL, &site);
	assert_int_equal(site.class, SITE_REFUSED);
	/* A size that reaches past the segment must not be believed. */
	symbol = symbol_of(image, "mov_push");
	symbol.size = UINT64_MAX;
	site__choose(image, &symbol, ALL, &site);
	assert_int_equal(site.shift, 0);
	assert_int_equal(site.class, SITE_STEPPED);
	assert_string_equal(site.reason, "size out of range");
	/* A size that ends before the candidate must not be believed either. */
	symbol.size = 7;
	site__choose(image, &symbol, ALL, &site);
	assert_int_equal(site.shift, 0);
	image__free(image);
}

static void test_io_sites(void **state)
{
	struct image *image = open_image(CASES);
	struct image_symbol write = symbol_of(image, "write");
	struct io_site sites[8];

	(void)state;
	assert_int_equal(iosites__find(image, sites, 8), 2);
	assert_int_equal(sites[0].vaddr, write.vaddr + 16);
	assert_int_equal(sites[0].displacement, 0);
	assert_int_equal(sites[1].displacement, 40);
	assert_string_equal(sites[0].name, "write");
	assert_int_equal(sites[0].offset - write.offset, sites[0].vaddr - write.vaddr);
	assert_int_equal(iosites__find(image, sites, 1), 1);
	assert_int_equal(iosites__find(image, sites, 0), 0);
	image__free(image);
}

#else

static void test_rules(void **state)
{
	struct image *image = open_image(CASES);
	struct image_symbol symbol = symbol_of(image, "push_first");
	struct site site;

	(void)state;
	site__choose(image, &symbol, ALL, &site);
	assert_int_equal(site.shift, 0);
	assert_int_equal(site.class, SITE_STEPPED);
	image__free(image);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
#if defined(__x86_64__)
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_io_sites),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

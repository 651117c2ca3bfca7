// SPDX-License-Identifier: GPL-2.0-or-later
/* Exits of functions made for this test (exit_cases.S), and the probes that rows get from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/elf/exits.h"
#include "probe/elf/row_sites.h"
#include "probe/elf/reader.h"

#define CASES "build/test/exit_cases.so"

struct find {
	const char *name;
	struct image_symbol found;
	int count;
};

static int find(const struct image_symbol *symbol, void *ctx)
{
	struct find *find = ctx;

	if (!strcmp(symbol->name, find->name)) {
		find->found = *symbol;
		find->count++;
	}
	return 0;
}

static struct image *open_image(void)
{
	char err[256] = "";
	struct image *image = image__open(CASES, err, sizeof(err));

	if (!image)
		fail_msg("%s: %s", CASES, err);
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

#define NOWHERE UINT32_MAX

static const struct expectation {
	const char *name;
	bool follow;
	size_t count;
	uint32_t first; /* distance of the first exit from the function; NOWHERE: the exit lies outside */
	bool tail;
	enum site_class class;
	const char *reason, *unseen; /* NULL: must be NULL */
} expectations[] = {
#if defined(__x86_64__)
    {"two_returns", false, 2, 7, false, SITE_STEPPED, NULL, NULL},
    {"vectors", false, 2, 34, false, SITE_STEPPED, NULL, NULL},
    {"padded_return", false, 1, 2, false, SITE_STEPPED, NULL, NULL},
    {"thunk", false, 1, 2, false, SITE_STEPPED, NULL, NULL},
    {"tail_call", false, 1, 2, true, SITE_EMULATED, NULL, NULL},
    {"tail_call", true, 1, NOWHERE, false, SITE_STEPPED, NULL, NULL},
    {"tail_call_exported", true, 1, 2, true, SITE_EMULATED, NULL, NULL},
    {"tail_call_slot", true, 1, 2, true, SITE_STEPPED, NULL, NULL},
    {"tail_call_register", false, 1, 7, false, SITE_STEPPED, NULL, "a jump through a register may leave it"},
    {"table_inside", false, 1, 4, false, SITE_STEPPED, NULL, NULL},
    {"conditional", false, 1, 9, false, SITE_STEPPED, NULL, "a conditional tail call"},
    {"conditional", true, 2, NOWHERE, false, SITE_STEPPED, NULL, NULL},
    {"with_cold_part", false, 2, NOWHERE, false, SITE_STEPPED, NULL, NULL},
    {"refused_return", false, 0, 0, false, SITE_STEPPED, "no exit found",
     "an exit lies at an instruction that must not be probed"},
    {"no_exit", false, 0, 0, false, SITE_STEPPED, "no exit found", NULL},
    {"undecodable", false, 1, 2, false, SITE_STEPPED, "not all decodable", NULL},
    {"no_size", false, 1, 2, false, SITE_STEPPED, NULL, NULL},
    {"no_size_no_frame", false, 0, 0, false, SITE_STEPPED, "size unknown", NULL},
#elif defined(__aarch64__)
    {"two_returns", false, 2, 4, false, SITE_EMULATED, NULL, NULL},
    {"tail_call", false, 1, 4, true, SITE_EMULATED, NULL, NULL},
    {"tail_call", true, 1, NOWHERE, false, SITE_EMULATED, NULL, NULL},
#endif
};

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void test_exits(void **state)
{
	struct image *image = open_image();

	(void)state;
	for (size_t i = 0; i < sizeof(expectations) / sizeof(*expectations); i++) {
		const struct expectation *want = &expectations[i];
		struct image_symbol symbol = symbol_of(image, want->name);
		struct exits exits;
		uint64_t first;

		exits__find(image, &symbol, want->follow, &exits);
		if (exits.count != want->count || !same(exits.reason, want->reason) ||
		    !same(exits.unseen, want->unseen))
			fail_msg("%s: %zu exits, reason %s, unseen %s", want->name, exits.count, exits.reason,
				 exits.unseen);
		if (!want->count)
			continue;
		first = exits.sites[0].vaddr - symbol.vaddr;
		if (want->first == NOWHERE ? first < 64 : first != want->first)
			fail_msg("%s: first exit at %+lld", want->name, (long long)first);
		if (exits.sites[0].tail != want->tail || exits.sites[0].class != want->class)
			fail_msg("%s: %s %s", want->name, exits.sites[0].tail ? "jump" : "return",
				 site_class_name[exits.sites[0].class]);
		for (size_t j = 1; j < exits.count; j++)
			assert_true(exits.sites[j - 1].vaddr < exits.sites[j].vaddr);
	}
	image__free(image);
}

static void test_sizes_are_not_believed(void **state)
{
	struct image *image = open_image();
	struct image_symbol symbol = symbol_of(image, "two_returns");
	struct exits exits;

	(void)state;
	symbol.size = 1000000;
	exits__find(image, &symbol, true, &exits);
	assert_string_equal(exits.reason, "size out of range");
	symbol.size = UINT64_MAX;
	exits__find(image, &symbol, true, &exits);
	assert_string_equal(exits.reason, "size out of range");
	image__free(image);
}

static void test_names_of_outlined_functions(void **state)
{
	static const char *const names[] = {"main._omp_fn.0",	"hydro_._omp_fn.12", ".omp_outlined.",
					    ".omp_outlined..7", "main.omp_outlined", "_ZN1A1fEv._omp_fn.3",
					    "main..omp_par.2"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(row_sites__is_outlined(names[i]));
	assert_false(row_sites__is_outlined("omp_get_num_threads"));
	assert_false(row_sites__is_outlined("main"));
	assert_false(row_sites__is_outlined("main._omp_fn.0.cold")); /* a part of a function, which is never called */
}

static void test_names(void **state)
{
	(void)state;
	assert_true(row_sites__matches("solve_step", "solve_step"));
	assert_true(row_sites__matches("solve_step.constprop.0", "solve_step"));
	assert_true(row_sites__matches("solve_step.isra.0", "solve_step"));
	assert_false(row_sites__matches("solve_step.cold", "solve_step"));
	assert_false(row_sites__matches("solve_step._omp_fn.0", "solve_step"));
	assert_false(row_sites__matches("solve_steps", "solve_step"));
	assert_false(row_sites__matches("solve", "solve_step"));
	assert_true(row_sites__matches("_Z5solvePdS_", "solve"));
	assert_true(row_sites__matches("_Z5solvePdS_", "_Z5solvePdS_"));
	assert_true(row_sites__matches("_ZN3sim4stepEi", "sim::step"));
	assert_true(row_sites__matches("_ZNK3sim5world4stepEv", "sim::world::step"));
	assert_true(row_sites__matches("_ZL4stepv", "step"));
	assert_false(row_sites__matches("_ZN3sim4stepEi", "step"));
	assert_false(row_sites__matches("_Z5solveIdEvT_", "solve")); /* a template */
	assert_true(row_sites__matches("_Z5solveIdEvT_", "solve<double>"));
	assert_true(row_sites__matches("_Z5solveIdEvT_", "void solve<double>(double)"));
	assert_true(row_sites__matches("_ZN3sim4stepEi", "sim::step(int)"));
	assert_false(row_sites__matches("_ZN3sim4stepEi", "sim::step(long)"));
	assert_true(row_sites__matches("_ZN3sim4stepEid", "sim::step(int,double)"));
	assert_true(row_sites__matches("_ZN3sim4stepEi.constprop.0", "sim::step"));
	assert_false(row_sites__matches("_ZN3sim4stepEi.cold", "sim::step"));
	assert_true(row_sites__matches("_ZN4GridC2Ei", "Grid::Grid"));
	assert_true(row_sites__matches("_ZN4GridclEi", "Grid::operator()"));
	assert_true(row_sites__matches("_ZN12_GLOBAL__N_14stepEv", "(anonymous namespace)::step"));
	assert_true(row_sites__matches("_ZN3sim4step17h0123456789abcdefE", "sim::step")); /* Rust, both manglings */
	assert_true(row_sites__matches("_RNvCs1234_3sim4step", "sim::step"));
	assert_false(row_sites__matches("_Z99solve", "solve"));
	assert_false(row_sites__matches("_ZN", ""));
}

#if defined(__x86_64__)

static void test_sites_of_rows(void **state)
{
	const struct function_row wanted[] = {
	    {.symbol = "two_returns", .kind = KERNEL_ROW_BOUNDARY, .own_sites = true},
	    {.symbol = "tail_call_alone", .kind = KERNEL_ROW_BOUNDARY, .own_sites = true},
	    {.symbol = "jump_alone", .kind = KERNEL_ROW_BOUNDARY, .own_sites = true},
	    {.symbol = "undecodable", .kind = KERNEL_ROW_CALL, .own_sites = true},
	    {.symbol = "solve", .kind = KERNEL_ROW_BOUNDARY, .own_sites = true},
	};
	unsigned int rows[5];
	uint64_t entry = 0;
	struct row_sites *sites;
	char err[256] = "";
	size_t demangled = 0, mangled = 0;
	int fd;

	(void)state;
	for (int i = 0; i < 5; i++) {
		rows[i] = (unsigned int)functions__add(&wanted[i]);
		assert_string_equal(functions__row(rows[i])->symbol, wanted[i].symbol);
	}
	fd = open(CASES, O_RDONLY | O_CLOEXEC);
	sites = row_sites__query(fd, 0, CASES, rows, 5, err, sizeof(err));
	if (!sites)
		fail_msg("%s", err);
	assert_int_equal(sites->function_count, 2);
	assert_int_equal(sites->skip_count, 3);
	for (size_t i = 0; i < sites->function_count; i++) {
		struct row_function *function = &sites->functions[i];

		assert_int_equal(function->sites[0].cookie & KERNEL_SITE_ROW, function->row);
		assert_false(function->sites[0].cookie & KERNEL_SITE_EXIT);
		for (size_t j = 1; j < function->site_count; j++) {
			assert_int_equal(function->sites[j].cookie & (KERNEL_SITE_ROW | KERNEL_SITE_EXIT),
					 function->row | KERNEL_SITE_EXIT);
			assert_int_not_equal(function->sites[j].offset, function->sites[0].offset);
		}
		if (!strcmp(function->name, "two_returns"))
			entry = function->entry;
		if (strcmp(function->name, "tail_call_alone") != 0)
			continue;
		/* the jump is an exit, so that the probe of the entry cannot be there */
		assert_int_equal(function->sites[0].offset, function->entry);
		assert_true(function->sites[0].cookie & KERNEL_SITE_STEPPED);
	}
	for (size_t i = 0; i < sites->skip_count; i++)
		assert_string_equal(sites->skips[i].reason, !strcmp(sites->skips[i].function, "undecodable")
								? "not all decodable: 06 at +0x3"
								: "it is left where it is entered");
	row_sites__free(sites);

	/* by address: the function that begins there, without a name where it is local and stripped */
	sites = row_sites__query_at(fd, 0, CASES, entry, false, KERNEL_ROW_OUTLINED, err, sizeof(err));
	assert_non_null(sites);
	assert_int_equal(sites->function_count, 1);
	assert_string_equal(sites->functions[0].name, "two_returns");
	row_sites__number(&sites->functions[0], 77);
	assert_int_equal(sites->functions[0].sites[1].cookie & KERNEL_SITE_ROW, 77);
	row_sites__free(sites);
	sites = row_sites__query_at(fd, 0, CASES, entry + 1, false, KERNEL_ROW_OUTLINED, err, sizeof(err));
	assert_non_null(sites);
	assert_int_equal(sites->function_count, 0);
	row_sites__free(sites);

	/* with all other outlined functions, in one query; undecodable functions are named, with their place */
	sites = row_sites__query_at(fd, 0, CASES, entry, true, KERNEL_ROW_OUTLINED, err, sizeof(err));
	assert_non_null(sites);
	assert_int_equal(sites->function_count, 5);
	for (size_t i = 0; i < sites->function_count; i++) {
		const char *name = sites->functions[i].name;

		assert_true(sites->functions[i].entry == entry || row_sites__is_outlined(name));
		demangled += !strcmp(name, "sim::step(int,double*)._omp_fn.2");
		mangled += !strcmp(name, "_ZN3sim4stepEm._omp_fn.3");
	}
	assert_int_equal(demangled, 1);
	assert_int_equal(mangled, 1);
	assert_int_equal(sites->skip_count, 1);
	assert_string_equal(sites->skips[0].function, "region._omp_fn.1");
	assert_string_equal(sites->skips[0].reason, "not all decodable: 06 90 c3 at +0x1");
	assert_int_not_equal(sites->skips[0].entry, 0);
	row_sites__free(sites);
	close(fd);
	functions__clear();
	assert_null(functions__row(rows[0]));
}

#else

static void test_sites_of_rows(void **state)
{
	(void)state;
	skip();
}

#endif

static void test_numbers_are_used_again_late(void **state)
{
	const struct function_row row = {.symbol = "some", .image = "exe"};
	unsigned int first, count = 0;
	int number;

	(void)state;
	first = (unsigned int)functions__add(&row);
	functions__add(&row);
	functions__drop(first);
	functions__drop(first + 1);
	while ((number = functions__add(&row)) > (int)first + 1)
		count++;
	assert_int_equal(number, first); /* without other numbers the one dropped first is used */
	assert_int_equal(functions__end(), KERNEL_FUNCTIONS - 1);
	assert_int_equal(functions__add(&row), first + 1);
	assert_true(functions__add(&row) < 0);
	assert_int_equal(first + 2 + count, KERNEL_FUNCTIONS - 1);
	functions__clear();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_exits),	  cmocka_unit_test(test_sizes_are_not_believed),
	    cmocka_unit_test(test_names),	  cmocka_unit_test(test_names_of_outlined_functions),
	    cmocka_unit_test(test_sites_of_rows), cmocka_unit_test(test_numbers_are_used_again_late),
	};

	reader__main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

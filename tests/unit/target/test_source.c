// SPDX-License-Identifier: GPL-2.0-or-later
/* The confined reader's functions and lines of call-sites against those of addr2line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/demangle.h"
#include "target/image.h"
#include "target/source.h"

#define CASE(name) "build/test/source_cases_" name
#define CALLS_MAX 128

static const struct confine_service services[] = {
    {SOURCE_SERVICE, source__respond},
    {0},
};

/* Return addresses of a program's calls, by objdump. */
struct calls {
	uint64_t vaddr[CALLS_MAX], offset[CALLS_MAX];
	size_t count;
};

static void read_calls(const char *program, struct calls *calls)
{
	char command[256], line[64], err[256];
	struct image *image = image__open(program, err, sizeof(err));
	FILE *in;

	snprintf(
	    command, sizeof(command),
	    "objdump -d --no-show-raw-insn %s | awk '/\\t(call|bl|blr) .*/ {getline; sub(\":\", \"\", $1); print $1}'",
	    program);
	in = popen(command, "r");
	assert_non_null(in);
	assert_non_null(image);
	calls->count = 0;
	while (fgets(line, sizeof(line), in) && calls->count < CALLS_MAX) {
		uint64_t vaddr = strtoull(line, NULL, 16);

		if (!vaddr || image__offset_of(image, vaddr, &calls->offset[calls->count]))
			continue;
		calls->vaddr[calls->count++] = vaddr;
	}
	pclose(in);
	image__free(image);
	assert_true(calls->count > 8 && calls->count < CALLS_MAX);
}

static struct source *look_up(const char *program, const struct calls *calls)
{
	char err[256] = "";
	struct source *source = source__query(program, "", NULL, calls->offset, calls->count, err, sizeof(err));

	if (!source)
		fail_msg("%s: %s", program, err);
	return source;
}

static const struct source_place *places_of(const struct source *source)
{
	size_t count;

	return source__places(source, &count);
}

/* Returns the next line of a stream without its newline, or NULL. */
static char *next_line(FILE *in, char *line, int size)
{
	if (!fgets(line, size, in))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Returns a Fortran function's name as the source has it: of a module's procedure, a contained one, the program. */
static const char *as_written(char *function)
{
	char *at = strstr(function, "_MOD_");
	size_t length;

	if (!strcmp(function, "MAIN__"))
		return "steps";
	if (at)
		return at + strlen("_MOD_");
	length = strcspn(function, ".");
	function[length - (function[length - 1] == '_')] = '\0';
	return function;
}

struct expected {
	char function[1024], where[1024];
};

/* Runs addr2line; LLVM's for its own compiler, whose ranges of inlined functions the other does not read. */
static size_t run_addr2line(const char *program, uint64_t address, struct expected *frames, size_t most)
{
	char command[256];
	size_t count = 0;
	FILE *in;

	snprintf(command, sizeof(command), "%saddr2line -i -f -C -e %s %#llx", strstr(program, "clang") ? "llvm-" : "",
		 program, (unsigned long long)address);
	in = popen(command, "r");
	assert_non_null(in);
	while (count < most && next_line(in, frames[count].function, sizeof(frames[0].function)) &&
	       next_line(in, frames[count].where, sizeof(frames[0].where)) && strncmp(frames[count].where, "??", 2) &&
	       !strstr(frames[count].where, ":?") && !strstr(frames[count].where, ":0"))
		count++;
	pclose(in);
	return count;
}

/*
 * Compares one place with what addr2line writes of it. Returns how many frames have equal names. For an inlined
 * function whose name it does not find - an internal one, a constructor - addr2line writes the symbol of the code
 * around it.
 */
static size_t same_place(const char *program, uint64_t vaddr, const struct source_place *place, bool fortran)
{
	struct expected expected[40];
	size_t count = run_addr2line(program, vaddr - 1, expected, 40), named = 0;

	for (size_t i = 0; i < count; i++) {
		const struct source_frame *frame = &place->frames[i];
		char where[1024] = "";

		if (i >= place->count)
			fail_msg("%s %#llx: no %s", program, (unsigned long long)vaddr, expected[i].function);
		if (frame->file)
			snprintf(where, sizeof(where), "%s:%u", frame->file, frame->line);
		/* addr2line adds a discriminator for the parts of one line */
		expected[i].where[strcspn(expected[i].where, " ")] = '\0';
		if (!frame->function || strcmp(where, expected[i].where))
			fail_msg("%s %#llx: %s at %s, not %s at %s", program, (unsigned long long)vaddr,
				 frame->function ? frame->function : "?", where, expected[i].function,
				 expected[i].where);
		if (i + 1 < count && !strcmp(expected[i].function, expected[count - 1].function) &&
		    strcmp(frame->function, expected[i].function))
			continue;
		if (strcmp(frame->function, fortran ? as_written(expected[i].function) : expected[i].function))
			fail_msg("%s %#llx: %s, not %s (frame %zu of %zu)", program, (unsigned long long)vaddr,
				 frame->function, expected[i].function, i, count);
		named++;
	}
	if (count)
		assert_int_equal(place->count, count);
	return named;
}

static size_t same_as_addr2line(const char *program, const char *debug, bool fortran)
{
	struct calls calls;
	struct source *source;
	size_t named = 0;

	read_calls(program, &calls);
	source = look_up(program, &calls);
	assert_true(source__has_dwarf(source));
	for (size_t i = 0; i < calls.count; i++)
		named += same_place(debug, calls.vaddr[i], &places_of(source)[i], fortran);
	source__free(source);
	return named;
}

static void test_debug_information(void **state)
{
	(void)state;
	assert_true(same_as_addr2line(CASE("gcc"), CASE("gcc"), false) > 20);
	assert_true(same_as_addr2line(CASE("clang"), CASE("clang"), false) > 20);
	assert_true(same_as_addr2line(CASE("fortran"), CASE("fortran"), true) > 4);
	/* in a file of its own */
	assert_true(same_as_addr2line(CASE("split"), CASE("gcc"), false) > 20);
	assert_true(same_as_addr2line(CASE("linked"), CASE("gcc"), false) > 20);
}

/* A debug file that the caller has found, such as from a server. */
static void test_given_debug_file(void **state)
{
	struct calls calls;
	struct source *source;
	char err[256];

	(void)state;
	read_calls(CASE("gcc"), &calls);
	source = source__query(CASE("stripped"), "", CASE("split.debug"), calls.offset, calls.count, err, sizeof(err));
	assert_non_null(source);
	assert_true(source__has_dwarf(source));
	assert_non_null(places_of(source)[calls.count / 2].frames[0].function);
	source__free(source);
	/* another program's */
	source = source__query(CASE("stripped"), "", CASE("fortran"), calls.offset, calls.count, err, sizeof(err));
	assert_non_null(source);
	assert_false(source__has_dwarf(source));
	source__free(source);
}

static void test_symbols_alone(void **state)
{
	struct calls calls;
	struct source *source;
	size_t named = 0;

	(void)state;
	read_calls(CASE("gcc"), &calls);
	source = look_up(CASE("plain"), &calls);
	assert_false(source__has_dwarf(source));
	assert_true(source__has_symbols(source));
	for (size_t i = 0; i < calls.count; i++) {
		const struct source_place *place = &places_of(source)[i];

		if (!place->count)
			continue;
		assert_int_equal(place->count, 1);
		assert_null(place->frames[0].file);
		assert_int_equal(place->frames[0].line, 0);
		assert_true(place->frames[0].offset > 0);
		named += !strcmp(place->frames[0].function, "double solver::relax<double, 2>(solver::Grid&, double)");
	}
	assert_true(named > 3);
	source__free(source);
	source = look_up(CASE("stripped"), &calls);
	assert_false(source__has_dwarf(source));
	assert_false(source__has_symbols(source));
	for (size_t i = 0; i < calls.count; i++)
		assert_int_equal(places_of(source)[i].count, 0);
	source__free(source);
}

static void test_refused(void **state)
{
	static const uint64_t offsets[] = {0, 1, UINT64_MAX};
	struct source *source;
	char err[256];

	(void)state;
	assert_null(source__query(CASE("gcc"), "0123456789ab", NULL, offsets, 3, err, sizeof(err)));
	assert_non_null(strstr(err, "another build"));
	assert_null(source__query("/nonexistent/program", "", NULL, offsets, 3, err, sizeof(err)));
	assert_non_null(strstr(err, "No such file"));
	assert_null(source__query("tests/unit/source_cases.cpp", "", NULL, offsets, 3, err, sizeof(err)));
	source = source__query(CASE("gcc"), "", NULL, offsets, 3, err, sizeof(err));
	assert_non_null(source);
	for (int i = 0; i < 3; i++)
		assert_int_equal(places_of(source)[i].count, 0);
	source__free(source);
}

static void test_demangle(void **state)
{
	static const struct {
		const char *symbol, *whole, *name;
	} diagnoses[] = {
	    {"_ZN3sim4stepEid", "sim::step(int, double)", "sim::step"},
	    {"_Z5relaxIdLi2EEvT_", "void relax<double, 2>(double)", "relax<double, 2>"},
	    {"_ZN3sim4step17h0123456789abcdefE", "sim::step", "sim::step"},
	    {"_RNvCs1234_3sim4step", "sim::step", "sim::step"},
	    {"__plib_module_MOD_irecv_d_3d", "plib_module::irecv_d_3d", "plib_module::irecv_d_3d"},
	    {"__solver_MOD_sweep._omp_fn.0", "solver::sweep._omp_fn.0", "solver::sweep._omp_fn.0"},
	    {"___MOD_sweep", NULL, NULL},
	    {"__MOD_", NULL, NULL},
	    {"__solver_MOD_", NULL, NULL},
	    {"solver_MOD_sweep", NULL, NULL},
	    {"main", NULL, NULL},
	    {"_Z99x", NULL, NULL},
	    {"", NULL, NULL},
	    {"_start", NULL, NULL},
	};
	char name[64], *deep = malloc(40000);

	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(diagnoses[0]); i++) {
		assert_int_equal(demangle(diagnoses[i].symbol, DEMANGLE_WHOLE, name, sizeof(name)),
				 !!diagnoses[i].whole);
		if (!diagnoses[i].whole)
			continue;
		assert_string_equal(name, diagnoses[i].whole);
		assert_true(demangle(diagnoses[i].symbol, DEMANGLE_NAME, name, sizeof(name)));
		assert_string_equal(name, diagnoses[i].name);
	}
	/* long names are cut, and depth is bounded */
	assert_true(demangle("_ZN3sim4stepEid", DEMANGLE_WHOLE, name, 8));
	assert_string_equal(name, "sim::st");
	assert_non_null(deep);
	memset(deep, 'P', 39999);
	memcpy(deep, "_Z1f", 4);
	deep[39999] = '\0';
	assert_false(demangle(deep, DEMANGLE_WHOLE, name, sizeof(name)));
	deep[8000] = '\0';
	demangle(deep, DEMANGLE_WHOLE, name, sizeof(name));
	free(deep);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_debug_information), cmocka_unit_test(test_given_debug_file),
	    cmocka_unit_test(test_symbols_alone),     cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_demangle),
	};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

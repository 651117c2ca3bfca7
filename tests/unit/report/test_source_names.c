// SPDX-License-Identifier: GPL-2.0-or-later
/* How call-sites and computations are worded, with and without functions and lines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "report/source_names.h"

#define A "prog@00112233445566778899+0x1000"
#define B "prog@00112233445566778899+0x2000"
#define C "libw.so@aabbccddeeff+0x30"

static void add(struct source_names *names, const char *site, uint32_t depth, const char *function, const char *file,
		uint32_t line)
{
	const struct stream_name name = {
	    .site = site, .depth = depth, .function = function, .offset = line ? 0 : 0x1c, .file = file, .line = line};

	assert_int_equal(source_names__add(names, &name), 0);
}

static void says(const struct source_names *names, const char *from, const char *to, const char *from_symbol,
		 const char *to_symbol, const char *wanted)
{
	const struct vapro_state state = {.from = from, .to = to, .from_symbol = from_symbol, .to_symbol = to_symbol};
	char *words = source_names__words(names, &state);

	assert_string_equal(words, wanted);
	free(words);
}

static void unnamed_sites_fall_back(void **unused)
{
	struct source_names *names = source_names__new();

	(void)unused;
	says(NULL, NULL, A, NULL, NULL, "prog+0x1000");
	says(names, A, B, NULL, "g+0x4", "prog+0x1000 -> g+0x4");
	says(names, NULL, A " < " C, NULL, "f+0x8 < libw.so@aabbccddeeff+0x30", "f+0x8 < libw.so@aabbccddeeff+0x30");
	says(names, NULL, A, NULL, "f+0x8 < g+0x9", "f+0x8 < g+0x9"); /* more symbols than places */
	says(names, NULL, "anywhere", NULL, NULL, "anywhere");
	says(names, NULL, "anonymous@0+0x7f00", NULL, NULL, "anonymous+0x7f00");
	add(names, A, 0, "solver::go(int)", NULL, 0);
	says(names, NULL, A, NULL, "_ZN6solver2goEi+0x1c", "solver::go+0x1c");
	source_names__free(names);
}

static void computations_are_worded_by_function(void **unused)
{
	struct source_names *names = source_names__new();

	(void)unused;
	add(names, A, 0, "solve", "/src/cg.c", 12);
	add(names, B, 0, "solve", "/src/cg.c", 30);
	add(names, C, 0, "wrap", "w.c", 3);
	says(names, NULL, A, NULL, NULL, "solve (cg.c:12)");
	says(names, A, B, NULL, NULL, "solve (cg.c:12 to 30)");
	says(names, B, A, NULL, NULL, "solve (cg.c:30 to 12)");
	says(names, A, A, NULL, NULL, "solve (cg.c:12)");
	says(names, A, C, NULL, NULL, "solve (cg.c:12) -> wrap (w.c:3)");
	says(names, C " < " A, C " < " A, NULL, NULL, "wrap (w.c:3) < solve (cg.c:12)");
	says(names, C " < " A, C " < " B, NULL, NULL,
	     "wrap (w.c:3) < solve (cg.c:12) -> wrap (w.c:3) < solve (cg.c:30)");
	says(names, NULL, A "#path:0123abcd", NULL, NULL, "solve (cg.c:12)");
	source_names__free(names);
}

static void inlined_functions_are_worded(void **unused)
{
	struct source_names *names = source_names__new();
	const struct source_frame *frames;
	size_t count;

	(void)unused;
	add(names, A, 0, "halo(Grid&)", "h.hpp", 5);
	add(names, A, 1, "main", "m.cpp", 80);
	add(names, B, 0, "norm(Grid&)", "n.hpp", 7);
	add(names, B, 1, "main", "m.cpp", 81);
	says(names, NULL, A, NULL, NULL, "halo (h.hpp:5) in main (m.cpp:80)");
	says(names, A, B, NULL, NULL, "halo (h.hpp:5) -> norm (n.hpp:7) in main (m.cpp:80 to 81)");
	/* one function, inlined at two places */
	add(names, B, 0, "halo(Grid&)", "h.hpp", 5);
	add(names, B, 1, "main", "m.cpp", 81);
	says(names, A, B, NULL, NULL, "halo (h.hpp:5) -> halo (h.hpp:5) in main (m.cpp:80 to 81)");
	frames = source_names__of(names, B, strlen(B), &count);
	assert_int_equal(count, 2);
	assert_string_equal(frames[1].function, "main");
	/* depths out of order are ignored */
	add(names, B, 3, "other", "o.c", 1);
	add(names, C, 1, "other", "o.c", 1);
	assert_non_null(source_names__of(names, B, strlen(B), &count));
	assert_int_equal(count, 2);
	assert_null(source_names__of(names, C, strlen(C), &count));
	source_names__free(names);
}

static void functions_are_shortened(void **unused)
{
	static const struct {
		const char *function, *words;
	} diagnoses[] = {
	    {"main", "main (f.cpp:1)"},
	    {"double solver::relax<double>(solver::Grid&, double)", "solver::relax<double> (f.cpp:1)"},
	    {"std::vector<int> a::b<std::map<int, std::string>, int>(int (*)(int))", "a::b<...> (f.cpp:1)"},
	    {"(anonymous namespace)::go(int)", "(anonymous namespace)::go (f.cpp:1)"},
	    {"void (anonymous namespace)::go<int>(int)", "(anonymous namespace)::go<int> (f.cpp:1)"},
	    {"Grid::operator()(int) const", "Grid::operator() (f.cpp:1)"},
	    {"Grid::operator<(Grid const&)", "Grid::operator< (f.cpp:1)"},
	    {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator() (f.cpp:1)"},
	    {"run(int)::{lambda(int)#1}::operator()(int) const", "run::{lambda(int)#1}::operator() (f.cpp:1)"},
	    {"<core::option::Option<T> as app::Go>::go", "<...>::go (f.cpp:1)"},
	    {"broken<(", "broken<( (f.cpp:1)"},
	    {"", " (f.cpp:1)"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(diagnoses[0]); i++) {
		struct source_names *names = source_names__new();

		add(names, A, 0, diagnoses[i].function, "f.cpp", 1);
		says(names, NULL, A, NULL, NULL, diagnoses[i].words);
		source_names__free(names);
	}
}

static void records_have_frames(void **unused)
{
	struct source_names *names = source_names__new();
	const struct vapro_state state = {.from = A, .to = B};
	cJSON *object = cJSON_CreateObject();
	char *text;

	(void)unused;
	add(names, A, 0, "halo(Grid&)", "/s/h.hpp", 5);
	add(names, A, 1, "main", "/s/m.cpp", 80);
	add(names, B, 0, "main", "/s/m.cpp", 82);
	assert_true(source_names__add_json(names, object, &state));
	text = cJSON_PrintUnformatted(object);
	assert_string_equal(
	    text, "{\"source\":\"halo (h.hpp:5) -> main (m.cpp:82) in main (m.cpp:80 to 82)\","
		  "\"to_frames\":[{\"function\":\"main\",\"file\":\"/s/m.cpp\",\"line\":82,\"inlined\":false}],"
		  "\"from_frames\":[{\"function\":\"halo(Grid&)\",\"file\":\"/s/h.hpp\",\"line\":5,\"inlined\":true},"
		  "{\"function\":\"main\",\"file\":\"/s/m.cpp\",\"line\":80,\"inlined\":false}]}");
	free(text);
	cJSON_Delete(object);
	source_names__free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(unnamed_sites_fall_back),	    cmocka_unit_test(computations_are_worded_by_function),
	    cmocka_unit_test(inlined_functions_are_worded), cmocka_unit_test(functions_are_shortened),
	    cmocka_unit_test(records_have_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

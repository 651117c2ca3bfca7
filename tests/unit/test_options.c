// SPDX-License-Identifier: GPL-2.0-or-later
/* The options of commands: forms of names and values, errors, suggestions, help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/options.h"

enum { ROW_OUTPUT = 1, ROW_STRICT, ROW_WIDTH };

static const struct option_row rows[] = {
    OPTIONS_GROUP("Output"),
    {"output", "FILE|-",
     "where lines go, in a text so long that it is broken into lines of words at some place after "
     "the column of the texts",
     ROW_OUTPUT, 'o'},
    {"strict", NULL, "the first bad line ends it", ROW_STRICT, 0},
    {"width", "COLUMNS", "width", ROW_WIDTH, 'w'},
    {"breadth", "COLUMNS", NULL, ROW_WIDTH, 0},
};

static struct options of(char **argv)
{
	struct options options = {
	    .program = "test", .rows = rows, .row_count = sizeof(rows) / sizeof(*rows), .argv = argv};

	while (argv[options.argc])
		options.argc++;
	return options;
}

/* Returns the next option, and what is printed on standard error. */
static int caught(struct options *options, char *text, size_t size)
{
	FILE *to = tmpfile();
	int before = dup(STDERR_FILENO), id;
	size_t length;

	assert_non_null(to);
	fflush(stderr);
	dup2(fileno(to), STDERR_FILENO);
	id = options__next(options);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(to);
	length = fread(text, 1, size - 1, to);
	text[length] = '\0';
	fclose(to);
	return id;
}

static void all_forms(void **state)
{
	char *argv[] = {"test", "--output", "a",   "--output=b",    "-o", "c",	      "-od",	   "--strict",
			"-",	"file",	    "-w7", "--breadth=8=9", "--", "--strict", (char *)NULL};
	static const struct {
		int id;
		const char *value;
	} expected[] = {{ROW_OUTPUT, "a"},	   {ROW_OUTPUT, "b"},
			{ROW_OUTPUT, "c"},	   {ROW_OUTPUT, "d"},
			{ROW_STRICT, NULL},	   {OPTIONS_OPERAND, "-"},
			{OPTIONS_OPERAND, "file"}, {ROW_WIDTH, "7"},
			{ROW_WIDTH, "8=9"},	   {OPTIONS_OPERAND, "--strict"}};
	struct options options = of(argv);

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		assert_int_equal(options__next(&options), expected[i].id);
		if (expected[i].value)
			assert_string_equal(options.value, expected[i].value);
		else
			assert_null(options.value);
	}
	assert_int_equal(options__next(&options), OPTIONS_END);
	assert_int_equal(options__next(&options), OPTIONS_END);
}

static void errors_name_the_cure(void **state)
{
	static const struct {
		char *argument;
		const char *text;
	} cases[] = {
	    {"--outptu=x", "test: unknown option '--outptu=x' (did you mean '--output'?); --help lists them\n"},
	    {"--out", "test: unknown option '--out' (did you mean '--output'?); --help lists them\n"},
	    {"--hepl", "test: unknown option '--hepl' (did you mean '--help'?); --help lists them\n"},
	    {"--zebra", "test: unknown option '--zebra'; --help lists them\n"},
	    {"-x", "test: unknown option '-x'; --help lists them\n"},
	    {"--output", "test: --output needs a value: FILE|-\n"},
	    {"-o", "test: --output needs a value: FILE|-\n"},
	    {"--strict=yes", "test: --strict has no value\n"},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *argv[] = {"test", cases[i].argument, NULL};
		struct options options = of(argv);

		assert_int_equal(caught(&options, text, sizeof(text)), OPTIONS_ERROR);
		assert_string_equal(text, cases[i].text);
	}
}

static void long_names_do_no_harm(void **state)
{
	char name[300] = "--", text[512];
	char *argv[] = {"test", name, NULL};
	struct options options = of(argv);

	(void)state;
	memset(name + 2, 'x', sizeof(name) - 3);
	assert_int_equal(caught(&options, text, sizeof(text)), OPTIONS_ERROR);
	name[2 + 64] = '\0';
	options = of(argv);
	assert_int_equal(caught(&options, text, sizeof(text)), OPTIONS_ERROR);
}

static void tunables_are_options_where_wanted(void **state)
{
	char *argv[] = {"test", "--window", "5s", "--no-return", "--no-return=no", "--windov", NULL};
	struct options options = of(argv);
	char text[256];

	(void)state;
	assert_int_equal(caught(&options, text, sizeof(text)), OPTIONS_ERROR);
	options = of(argv);
	options.tunables = true;
	assert_int_equal(options__next(&options), OPTIONS_TUNABLE);
	assert_string_equal(options.tunable->name, "window");
	assert_string_equal(options.value, "5s");
	assert_int_equal(options__next(&options), OPTIONS_TUNABLE);
	assert_string_equal(options.value, "true");
	assert_int_equal(options__next(&options), OPTIONS_TUNABLE);
	assert_string_equal(options.value, "no");
	assert_int_equal(caught(&options, text, sizeof(text)), OPTIONS_ERROR);
	assert_non_null(strstr(text, "did you mean '--window'?"));
}

static void help_comes_before_all(void **state)
{
	char *argv[] = {"test", "-h", "--help", NULL};
	struct options options = of(argv);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(options__next(&options), OPTIONS_HELP);
	assert_int_equal(options__next(&options), OPTIONS_HELP);
	options__help(&options, out);
	fclose(out);
	assert_non_null(strstr(text, "Output:\n  -o, --output FILE|-     where lines go,"));
	assert_non_null(strstr(text, "\n                          "));
	assert_null(strstr(text, "breadth"));
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		assert_true(strchr(line, '\n') - line <= 110);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_forms),
	    cmocka_unit_test(errors_name_the_cure),
	    cmocka_unit_test(long_names_do_no_harm),
	    cmocka_unit_test(tunables_are_options_where_wanted),
	    cmocka_unit_test(help_comes_before_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

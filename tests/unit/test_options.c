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
	} diagnoses[] = {
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
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		char *argv[] = {"test", diagnoses[i].argument, NULL};
		struct options options = of(argv);

		assert_int_equal(caught(&options, text, sizeof(text)), OPTIONS_ERROR);
		assert_string_equal(text, diagnoses[i].text);
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

static char *help_of(const struct options *options, const char *what)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	options__help(options, what, out);
	fclose(out);
	return text;
}

static void help_comes_before_all(void **state)
{
	char *argv[] = {"test", "-h", "--help", "--help=all", "--help=", NULL};
	struct options options = of(argv);
	char *text, message[128];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(options__next(&options), OPTIONS_HELP);
	assert_string_equal(options.value, "all");
	assert_int_equal(caught(&options, message, sizeof(message)), OPTIONS_ERROR);
	assert_non_null(strstr(message, "expected all"));
	text = help_of(&options, NULL);
	assert_non_null(strstr(text, "Output:\n  -o, --output FILE|-       where lines go,"));
	assert_null(strstr(text, "breadth"));
	free(text);
}

static void help_fits_the_terminal(void **state)
{
	char *argv[] = {"test", NULL};
	const struct options options = of(argv);

	(void)state;
	for (int width = 50; width <= 200; width += 50) {
		char columns[8], *text;

		snprintf(columns, sizeof(columns), "%d", width);
		setenv("COLUMNS", columns, 1);
		text = help_of(&options, NULL);
		for (const char *line = text; *line; line = strchr(line, '\n') + 1)
			assert_true(strchr(line, '\n') - line <= width);
		assert_true(width < 100 || !strstr(text, "\n                            after"));
		free(text);
	}
	unsetenv("COLUMNS");
}

/* Returns how many tunables of a group, or of all groups, a help lists. */
static size_t listed(const char *text, int group)
{
	size_t count = 0;

	for (size_t i = 0; i < vapro_option_count; i++) {
		char name[80];

		snprintf(name, sizeof(name), "\n  --%s%c", vapro_options[i].name,
			 vapro_options[i].type == VAPRO_OPT_BOOL ? '[' : ' ');
		count += (group < 0 || vapro_options[i].group == (enum vapro_group)group) && strstr(text, name);
	}
	return count;
}

static void tunables_stand_in_their_groups(void **state)
{
	static const struct option_row grouped[] = {
	    OPTIONS_SECTION(VAPRO_GROUP_OVERHEAD),
	    {"cpus", "LIST", "CPUs", 1, 0},
	    OPTIONS_SECTION(VAPRO_GROUP_KERNEL_EXPERT),
	    OPTIONS_GROUP("Other"),
	    OPTIONS_HELP_ALL_ROW,
	};
	struct options options = {.program = "test", .rows = grouped, .row_count = 5, .tunables = true};
	char *text = help_of(&options, NULL);
	const char *cpus = strstr(text, "--cpus"), *budget = strstr(text, "--overhead-budget");

	(void)state;
	assert_true(strstr(text, "Overhead:") < cpus && cpus < budget && budget < strstr(text, "Other:"));
	assert_int_equal(listed(text, -1), listed(text, VAPRO_GROUP_OVERHEAD));
	assert_null(strstr(text, "expert)"));
	free(text);
	text = help_of(&options, "all");
	assert_true(listed(text, VAPRO_GROUP_KERNEL_EXPERT) > 5);
	assert_int_equal(listed(text, VAPRO_GROUP_ANALYSIS), 0);
	free(text);
	text = help_of(&options, "man");
	assert_non_null(strstr(text, ".SS Overhead\n.TP\n.B \\-\\-cpus LIST\nCPUs\n"));
	free(text);
}

static void letters_stand_together(void **state)
{
	static const struct option_row letters[] = {{"quiet", NULL, "quiet", 1, 'q'},
						    {"verbose", NULL, "verbose", 2, 'v'},
						    {"output", "FILE", "output", 3, 'o'}};
	char *argv[] = {"test", "-qvofile", "-vx", NULL};
	struct options options = {.program = "test", .rows = letters, .row_count = 3, .argc = 3, .argv = argv};
	char text[128];

	(void)state;
	assert_int_equal(options__next(&options), 1);
	assert_int_equal(options__next(&options), 2);
	assert_int_equal(options__next(&options), 3);
	assert_string_equal(options.value, "file");
	assert_int_equal(options__next(&options), 2);
	assert_int_equal(caught(&options, text, sizeof(text)), OPTIONS_ERROR);
	assert_string_equal(text, "test: unknown option '-x'; --help lists them\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_forms),
	    cmocka_unit_test(errors_name_the_cure),
	    cmocka_unit_test(long_names_do_no_harm),
	    cmocka_unit_test(tunables_are_options_where_wanted),
	    cmocka_unit_test(help_comes_before_all),
	    cmocka_unit_test(help_fits_the_terminal),
	    cmocka_unit_test(tunables_stand_in_their_groups),
	    cmocka_unit_test(letters_stand_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

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

#include "cli/command.h"

/* What the options set. */
struct values {
	const char *output;
	bool strict, quiet;
	int width, level, count;
	struct vapro_config config;
	struct option_list operands, globs;
	enum { DARK, LIGHT } shade;
	double speed, duration_s;
	uint64_t pause_ns, room;
};

/* clang-format off */
static const struct option_row rows[] = {
    OPTION_HEADING_ROW("Output"),
    {.type = OPTION_STRING, OPTION_AT(struct values, output), .name = "output", .letter = 'o', .value = "FILE|-",
     .help = "where lines go, in a text so long that it is broken into lines of words at some place after the column "
	     "of the texts"},
    {.type = OPTION_SWITCH, OPTION_AT(struct values, strict), .name = "strict", .help = "the first bad line ends it"},
    {.type = OPTION_INT, OPTION_AT(struct values, width), .name = "width", .letter = 'w', .value = "COLUMNS", .min = 1,
     .max = 1000, .help = "width"},
    OPTION_ALIAS_ROW("breadth", "width"),
    OPTION_ALIAS_ROW("pane", "window"),
    {.type = OPTION_LIST, OPTION_AT(struct values, globs), .name = "exe", .help = "globs"},
    {.type = OPTION_WORD, OPTION_AT(struct values, shade), .name = "shade", .words = "dark|light", .help = "shade"},
    {.type = OPTION_LEVEL, OPTION_AT(struct values, level), .name = "quiet", .letter = 'q', .min = 1, .help = "quiet"},
    {.type = OPTION_LEVEL, OPTION_AT(struct values, level), .name = "verbose", .letter = 'v', .min = 3, .help = "more"},
    {.type = OPTION_NS, OPTION_AT(struct values, pause_ns), .name = "pause", .min = 1, .max = 60, .help = "pause"},
    {.type = OPTION_POWER, OPTION_AT(struct values, room), .name = "room", .min = 1024, .max = 1048576, .help = "room"},
};
/* clang-format on */

static const struct command command = {.name = "test",
				       .program = "test it",
				       .synopsis = "[option]...",
				       .about = "About.",
				       .rows = rows,
				       .row_count = sizeof(rows) / sizeof(*rows),
				       .config = offsetof(struct values, config),
				       .operands = offsetof(struct values, operands)};

static int count(char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return argc;
}

/* Runs command__parse; what it prints on standard output and standard error is in text. */
static int parse(const struct command *of, struct values *values, char **argv, char *text, size_t size)
{
	FILE *to = tmpfile();
	int before[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)}, code;
	size_t length;

	assert_non_null(to);
	fflush(stdout);
	fflush(stderr);
	dup2(fileno(to), STDOUT_FILENO);
	dup2(fileno(to), STDERR_FILENO);
	code = command__parse(of, values, count(argv), argv);
	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		dup2(before[i], STDOUT_FILENO + i);
		close(before[i]);
	}
	rewind(to);
	length = fread(text, 1, size - 1, to);
	text[length] = '\0';
	fclose(to);
	return code;
}

static void clear(struct values *values)
{
	option_list__clear(&values->operands);
	option_list__clear(&values->globs);
	*values = (struct values){.output = NULL};
}

static void all_forms(void **state)
{
	char *argv[] = {"test", "--output", "a",    "--output=b", "-o", "c",	    "-od",   "--strict",
			"-",	"--exe=a*", "file", "-w7",	  "--", "--strict", "--exe", (char *)NULL};
	struct values values = {.output = NULL};
	char text[256];

	(void)state;
	assert_int_equal(parse(&command, &values, argv, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_string_equal(values.output, "d");
	assert_true(values.strict);
	assert_int_equal(values.width, 7);
	assert_int_equal(values.globs.count, 1);
	assert_string_equal(values.globs.items[0], "a*");
	assert_int_equal(values.operands.count, 4);
	assert_string_equal(values.operands.items[0], "-");
	assert_string_equal(values.operands.items[1], "file");
	assert_string_equal(values.operands.items[2], "--strict");
	clear(&values);
}

/* Older names set the same, of the command and of tunables, and no help has them. */
static void older_names(void **state)
{
	char *argv[] = {"test", "--breadth=8", "--pane", "5s", NULL}, *bad[] = {"test", "--breadth=x", NULL};
	struct command tunable = command;
	struct values values = {.output = NULL};
	char text[4096];

	(void)state;
	tunable.tunables = true;
	assert_int_equal(parse(&tunable, &values, argv, text, sizeof(text)), 0);
	assert_int_equal(values.width, 8);
	assert_true(values.config.window_s == 5);
	assert_int_equal(parse(&tunable, &values, bad, text, sizeof(text)), EXIT_USAGE);
	assert_string_equal(text, "test it: --width: invalid number 'x'; expected 1 to 1000\n");
	clear(&values);
}

/* Each type is refused in one form: option, what it is, the text, what is expected. */
static void refusals(void **state)
{
	static const struct {
		char *argument;
		const char *text;
	} refused[] = {
	    {"--width=0", "--width: invalid number '0'; expected 1 to 1000"},
	    {"--width=1.5", "--width: invalid number '1.5'; expected 1 to 1000"},
	    {"--output=", "--output: invalid value ''; expected FILE|-"},
	    {"--exe=", "--exe: invalid value ''; expected TEXT"},
	    {"--shade=grey", "--shade: invalid word 'grey'; expected dark or light"},
	    {"--shade=", "--shade: invalid word ''; expected dark or light"},
	    {"--pause=5x", "--pause: invalid duration '5x'; expected 1s to 1m, such as 30, 500ms, 5m or 1h"},
	    {"--room=3K", "--room: invalid size '3K'; expected 1K to 1M, a power of two, such as 64K, 256M or 1G"},
	};
	struct values values = {.output = NULL}, before = values;
	char text[256], expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		char *argv[] = {"test", refused[i].argument, NULL};

		assert_int_equal(parse(&command, &values, argv, text, sizeof(text)), EXIT_USAGE);
		snprintf(expected, sizeof(expected), "test it: %s\n", refused[i].text);
		assert_string_equal(text, expected);
		assert_memory_equal(&values, &before, sizeof(values));
	}
}

static void types_are_stored(void **state)
{
	char *argv[] = {"test", "--shade", "light", "--pause=1500ms", "--room", "4K", "-qv", NULL};
	struct values values = {.output = NULL};
	char text[256], value[64];

	(void)state;
	assert_int_equal(parse(&command, &values, argv, text, sizeof(text)), 0);
	assert_int_equal(values.shade, LIGHT);
	assert_int_equal(values.pause_ns, 1500000000);
	assert_int_equal(values.room, 4096);
	assert_int_equal(values.level, 3);
	assert_true(option__format(command__row(&command, "pause"), &values, 0, value, sizeof(value)));
	assert_string_equal(value, "1.5s");
	assert_true(option__format(command__row(&command, "shade"), &values, 0, value, sizeof(value)));
	assert_string_equal(value, "light");
	assert_true(option__format(command__row(&command, "verbose"), &values, 0, value, sizeof(value)));
	assert_false(option__format(command__row(&command, "quiet"), &values, 0, value, sizeof(value)));
	assert_false(option__format(command__row(&command, "output"), &values, 0, value, sizeof(value)));
	values.pause_ns = 0; /* 0 is no valid value: none was given */
	assert_false(option__format(command__row(&command, "pause"), &values, 0, value, sizeof(value)));
	clear(&values);
}

static void errors_name_the_cure(void **state)
{
	static const struct {
		char *argument;
		const char *text;
	} diagnoses[] = {
	    {"--outptu=x", "test it: unknown option '--outptu=x' (did you mean '--output'?); --help lists them\n"},
	    {"--out", "test it: unknown option '--out' (did you mean '--output'?); --help lists them\n"},
	    {"--hepl", "test it: unknown option '--hepl' (did you mean '--help'?); --help lists them\n"},
	    {"--zebra", "test it: unknown option '--zebra'; --help lists them\n"},
	    {"-x", "test it: unknown option '-x'; --help lists them\n"},
	    {"--output", "test it: --output needs a value: FILE|-\n"},
	    {"-o", "test it: --output needs a value: FILE|-\n"},
	    {"--strict=yes", "test it: --strict has no value\n"},
	};
	struct values values = {.output = NULL};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		char *argv[] = {"test", diagnoses[i].argument, NULL};

		assert_int_equal(parse(&command, &values, argv, text, sizeof(text)), EXIT_USAGE);
		assert_string_equal(text, diagnoses[i].text);
	}
}

static void long_names_do_no_harm(void **state)
{
	char name[300] = "--", text[512];
	char *argv[] = {"test", name, NULL};
	struct values values = {.output = NULL};

	(void)state;
	memset(name + 2, 'x', sizeof(name) - 3);
	assert_int_equal(parse(&command, &values, argv, text, sizeof(text)), EXIT_USAGE);
	name[2 + 64] = '\0';
	assert_int_equal(parse(&command, &values, argv, text, sizeof(text)), EXIT_USAGE);
}

static void tunables_are_options_where_wanted(void **state)
{
	char *good[] = {"test", "--window", "5s", "--no-return", NULL}, *no[] = {"test", "--no-return=no", NULL};
	char *misspelt[] = {"test", "--windov", NULL};
	struct command tunable = command;
	struct values values = {.output = NULL};
	char text[256];

	(void)state;
	assert_int_equal(parse(&command, &values, good, text, sizeof(text)), EXIT_USAGE);
	tunable.tunables = true;
	assert_int_equal(parse(&tunable, &values, good, text, sizeof(text)), 0);
	assert_true(values.config.window_s == 5 && values.config.no_return);
	assert_int_equal(parse(&tunable, &values, no, text, sizeof(text)), 0);
	assert_false(values.config.no_return);
	assert_int_equal(parse(&tunable, &values, misspelt, text, sizeof(text)), EXIT_USAGE);
	assert_non_null(strstr(text, "did you mean '--window'?"));
}

static char *help_of(const struct command *of, const char *what)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	command__help(of, what, out);
	fclose(out);
	return text;
}

/* Help is printed wherever it stands, before any value is read. */
static void help_comes_before_all(void **state)
{
	char *good[][4] = {{"test", "--width=x", "-h", NULL}, {"test", "--help", NULL}, {"test", "--help=all", NULL}};
	char *bad[] = {"test", "--help=", NULL};
	struct values values = {.output = NULL};
	char text[4096];

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(parse(&command, &values, good[i], text, sizeof(text)), COMMAND_DONE);
		assert_non_null(strstr(text, "Output:\n  -o, --output FILE|-       where lines go,"));
		assert_null(strstr(text, "breadth"));
	}
	assert_int_equal(parse(&command, &values, bad, text, sizeof(text)), EXIT_USAGE);
	assert_non_null(strstr(text, "expected all or man"));
}

/* A command without operands refuses them, and a program knows `help` and `version` as words. */
static void words_of_programs(void **state)
{
	static const struct option_row version[] = {
	    {.type = OPTION_VERSION, .name = "version", .letter = 'V', .help = "print the version"}, OPTIONS_HELP_ROW};
	const struct command program = {
	    .name = "test", .program = "test", .synopsis = "", .about = "About.", .rows = version, .row_count = 2};
	struct values values = {.output = NULL};
	char text[1024], *words[] = {"version", "--version", "-V"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		char *argv[] = {"test", words[i], NULL};

		assert_int_equal(parse(&program, &values, argv, text, sizeof(text)), COMMAND_DONE);
		assert_int_equal(strncmp(text, "test 0.", 7), 0);
	}
	assert_int_equal(parse(&program, &values, (char *[]){"test", "help", NULL}, text, sizeof(text)), COMMAND_DONE);
	assert_non_null(strstr(text, "print the version"));
	assert_int_equal(parse(&program, &values, (char *[]){"test", "more", NULL}, text, sizeof(text)), EXIT_USAGE);
	assert_string_equal(text, "test: unknown argument 'more'; --help lists the options\n");
}

static void help_fits_the_terminal(void **state)
{
	(void)state;
	for (int width = 50; width <= 200; width += 50) {
		char columns[8], *text;

		snprintf(columns, sizeof(columns), "%d", width);
		setenv("COLUMNS", columns, 1);
		text = help_of(&command, NULL);
		for (const char *line = text; *line; line = strchr(line, '\n') + 1)
			assert_true(strchr(line, '\n') - line <= width);
		assert_true(width < 100 || !strstr(text, "\n                            after"));
		free(text);
	}
	unsetenv("COLUMNS");
}

/* Returns how many tunables of a level and a group, or of all groups, a help lists; *all: how many there are. */
static size_t listed(const char *text, enum option_level level, int group, size_t *all)
{
	size_t found = 0;

	*all = 0;
	for (size_t i = 0; i < vapro_tunable_count; i++) {
		const struct option_row *row = &vapro_tunables[i];
		char name[80];

		if (row->level != level || (group >= 0 && row->group != (enum vapro_group)group))
			continue;
		snprintf(name, sizeof(name), "\n  --%s%c", row->name, row->type == OPTION_BOOL ? '[' : ' ');
		found += strstr(text, name) != NULL;
		++*all;
	}
	return found;
}

static void tunables_stand_in_their_groups(void **state)
{
	static const struct option_row grouped[] = {
	    OPTION_GROUP_ROW(VAPRO_GROUP_OVERHEAD),
	    {.type = OPTION_STRING, .name = "cpus", .value = "LIST", .help = "CPUs; some of them"},
	    OPTION_GROUP_ROW(VAPRO_GROUP_KERNEL),
	    OPTION_HEADING_ROW("Other"),
	    OPTIONS_HELP_ALL_ROW,
	};
	const struct command of = {
	    .program = "test", .synopsis = "", .about = "", .rows = grouped, .row_count = 5, .tunables = true};
	char *text = help_of(&of, NULL);
	const char *cpus = strstr(text, "--cpus"), *budget = strstr(text, "--overhead-budget");
	size_t all, found;

	(void)state;
	assert_true(strstr(text, "Overhead:") < cpus && cpus < budget && budget < strstr(text, "Other:"));
	assert_null(strstr(text, "some of them")); /* the first clause is enough */
	found = listed(text, OPTION_USUAL, VAPRO_GROUP_OVERHEAD, &all);
	assert_int_equal(found, all);
	assert_int_equal(listed(text, OPTION_EXPERT, -1, &all), 0);
	assert_null(strstr(text, "Kernel:")); /* a heading without an option */
	free(text);
	text = help_of(&of, "all");
	assert_non_null(strstr(text, "some of them"));
	found = listed(text, OPTION_EXPERT, VAPRO_GROUP_KERNEL, &all);
	assert_int_equal(found, all);
	assert_true(all > 3);
	assert_int_equal(listed(text, OPTION_FILE, -1, &all) + listed(text, OPTION_HIDDEN, -1, &all), 0);
	assert_int_equal(listed(text, OPTION_USUAL, VAPRO_GROUP_ANALYSIS, &all), 0);
	free(text);
	text = help_of(&of, "man");
	assert_non_null(strstr(text, ".SS Overhead\n.TP\n.B \\-\\-cpus LIST\nCPUs; some of them\n"));
	assert_non_null(strstr(text, ".SS Only in the configuration file\n"));
	assert_non_null(strstr(text, ".B ring\\-bytes = SIZE"));
	free(text);
}

static void letters_stand_together(void **state)
{
	char *argv[] = {"test", "-qvofile", NULL}, *bad[] = {"test", "-vx", NULL};
	struct values values = {.output = NULL};
	char text[128];

	(void)state;
	assert_int_equal(parse(&command, &values, argv, text, sizeof(text)), 0);
	assert_int_equal(values.level, 3);
	assert_string_equal(values.output, "file");
	assert_int_equal(parse(&command, &values, bad, text, sizeof(text)), EXIT_USAGE);
	assert_string_equal(text, "test it: unknown option '-x'; --help lists them\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_forms),
	    cmocka_unit_test(older_names),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(types_are_stored),
	    cmocka_unit_test(errors_name_the_cure),
	    cmocka_unit_test(long_names_do_no_harm),
	    cmocka_unit_test(tunables_are_options_where_wanted),
	    cmocka_unit_test(help_comes_before_all),
	    cmocka_unit_test(words_of_programs),
	    cmocka_unit_test(help_fits_the_terminal),
	    cmocka_unit_test(tunables_stand_in_their_groups),
	    cmocka_unit_test(letters_stand_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

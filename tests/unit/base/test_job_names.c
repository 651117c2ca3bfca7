// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/job_names.h"
#include "base/utf8.h"

static void texts_are_short_and_harmless(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
	    {NULL, ""},
	    {"heat", "heat"},
	    {"a b=\"c\"", "a b=\"c\""},
	    {"\x1b[31mred\n", "?[31mred?"},
	    {"h\xc3\xa4t", "h\xc3\xa4t"},
	    {"\xc3(\xff", "?(?"},
	    {"ab\xe2\x80\xaetxt", "ab???txt"}, /* U+202E */
	};
	char to[JOB_NAME_SIZE], *large = malloc(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		job_names__copy(to, cases[i].from);
		assert_string_equal(to, cases[i].to);
	}
	memset(large, 'x', 1 << 20);
	large[(1 << 20) - 1] = '\0';
	job_names__copy(to, large);
	assert_int_equal(strlen(to), JOB_NAME_SIZE - 1);
	for (size_t i = 0; i + 1 < 1 << 20; i++)
		large[i] = i % 2 ? '\xa4' : '\xc3'; /* characters of two bytes: none is cut in half */
	job_names__copy(to, large);
	for (const char *at = to; *at; at += utf8__length(at))
		assert_int_equal(utf8__length(at), 2);
	free(large);
}

static void nodes_are_numbers(void **state)
{
	(void)state;
	assert_int_equal(job_names__nodes("128"), 128);
	assert_int_equal(job_names__nodes("-1"), 0);
	assert_int_equal(job_names__nodes("2 "), 0);
	assert_int_equal(job_names__nodes(""), 0);
	assert_int_equal(job_names__nodes(NULL), 0);
	assert_int_equal(job_names__nodes("99999999999999999999"), 0);
	assert_int_equal(job_names__nodes("10000001"), 0);
}

static void a_file_is_that_of_its_user(void **state)
{
	static const char file[] =
	    "uid=1001\nname=heat\x07 run\naccount=phys\npartition=main\nnodes=2\nuser=ann\nother=1\n";
	char text[sizeof(file)];
	struct job_names names;

	(void)state;
	strcpy(text, file);
	assert_true(job_names__parse(text, 1001, &names));
	assert_int_equal(names.source, JOB_NAMES_PROLOG);
	assert_string_equal(names.name, "heat? run");
	assert_string_equal(names.account, "phys");
	assert_string_equal(names.partition, "main");
	assert_string_equal(names.user, "ann");
	assert_int_equal(names.nodes, 2);
	strcpy(text, file);
	assert_false(job_names__parse(text, 1002, &names));
	strcpy(text, "uid=1001\naccount=phys\n");
	assert_false(job_names__parse(text, 1001, &names)); /* no name */
	strcpy(text, "name=heat\nno line of its own: uid=1001");
	assert_false(job_names__parse(text, 1001, &names));
	strcpy(text, "uid=10010\nname=heat");
	assert_false(job_names__parse(text, 1001, &names));
}

static void a_number_selects_all_steps(void **state)
{
	static const struct {
		const char *wanted, *identity;
		bool match;
	} cases[] = {
	    {NULL, "slurm:123.0", true},
	    {NULL, NULL, true},
	    {"123", NULL, false},
	    {"", "slurm:123.0", false},
	    {"123", "slurm:123", true},
	    {"123", "slurm:123.0", true},
	    {"123", "slurm:123.372310017@192.0.2.2", true}, /* mpirun inside of sbatch */
	    {"123", "slurm:1234.0", false},
	    {"123", "slurm:12", false},
	    {"12", "slurm:123.0", false},
	    {"slurm:123", "slurm:123.0", true},
	    {"slurm:123", "slurm:123.372310017@192.0.2.2", true},
	    {"slurm:123.0", "slurm:123.0", true},
	    {"slurm:123.0", "slurm:123.1", false},
	    {"slurm:123.0", "slurm:123.01", false},
	    {"123.0", "slurm:123.0", true},
	    {"pbs:123", "slurm:123.0", false},
	    {"slurm:", "slurm:123", false},
	    {"123", "pbs:123.server.4", true},
	    {"f2N3eXY", "flux:f2N3eXY", true},
	    {"pmix:77", "pmix:77@node1", true},
	    {"77", "pmix:77@node1", false},
	    {"pid-7", "none:pid-7@vm", false},
	    {"none:pid-7", "none:pid-7@vm", true},
	    {".", "slurm:.x", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (job_names__match(cases[i].wanted, cases[i].identity) != cases[i].match)
			fail_msg("%s and %s", cases[i].wanted, cases[i].identity);
	}
}

static void identities_are_short(void **state)
{
	static const struct {
		const char *identity, *text;
	} cases[] = {
	    {"slurm:2.0", "slurm 2.0"},
	    {"slurm:2", "slurm 2"},
	    {"slurm:2.372310017@192.0.2.2", "slurm 2"},
	    {"pbs:77.server", "pbs 77.server"},
	    {"pmix:1924530177@192.0.2.2", "pmix 1924530177"},
	    {"mpi:launcher-44789.1@node7", "mpi launcher-44789.1"},
	    {"none:pid-7857@vm", "process 7857"},
	    {"", ""},
	    {"odd", "odd"},
	    {"@", "@"},
	};
	char buf[JOB_IDENTITY_SHORT_SIZE], odd[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(job_names__short(cases[i].identity, buf), cases[i].text);
	memset(odd, 'k', sizeof(odd));
	odd[2000] = ':';
	odd[sizeof(odd) - 1] = '\0';
	assert_true(strlen(job_names__short(odd, buf)) < sizeof(buf));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(texts_are_short_and_harmless), cmocka_unit_test(nodes_are_numbers),
	    cmocka_unit_test(a_file_is_that_of_its_user),   cmocka_unit_test(a_number_selects_all_steps),
	    cmocka_unit_test(identities_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Who maps an image is searched for again only where it may have changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/verdicts.h"

#define S 1000000000ULL

static const char *const absent[] = {"a-program-that-does-not-run"};
static const struct selection all, none = {.globs = absent, .glob_count = 1};

/* This test's executable, which no other process maps, under the name of an MPI library. */
static struct process_mapping own_image(const char *path)
{
	struct process_mapping mapping = {0};
	struct process *process;
	char err[128];

	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	mapping = *process__executable(process);
	mapping.path = path;
	process__free(process);
	return mapping;
}

static struct verdicts reported = {.reported = true};

/* Another selection makes this process a stranger, which only a search of the processes notices. */
static void what_is_not_shared_remains_so(void **state)
{
	struct process_mapping mpi = own_image("/usr/lib/libmpi.so.40");
	struct verdicts verdicts = reported;

	(void)state;
	assert_false(verdicts__is_alone(&verdicts, &all, &mpi, 0, 1 * S));
	assert_false(verdicts__is_alone(&verdicts, &none, &mpi, 0, 1000 * S));
	verdicts__mapped(&verdicts, "/usr/lib/libc.so.6");
	assert_false(verdicts__is_alone(&verdicts, &none, &mpi, 0, 1000 * S));
	assert_false(verdicts__concern(&verdicts, "/usr/lib/libc.so.6"));
	assert_true(verdicts__concern(&verdicts, "/mnt/container/libmpi.so.40"));
	verdicts__mapped(&verdicts, "/mnt/container/libmpi.so.40");
	assert_true(verdicts__is_alone(&verdicts, &none, &mpi, 0, 1000 * S));
	assert_true(verdicts__is_shared(&verdicts, &none, &mpi, 1000 * S));
}

static void what_is_shared_is_looked_at_again(void **state)
{
	struct process_mapping mpi = own_image("/usr/lib/libmpi.so.40");
	struct verdicts verdicts = reported;

	(void)state;
	assert_true(verdicts__is_alone(&verdicts, &none, &mpi, 0, 1 * S));
	assert_true(verdicts__is_alone(&verdicts, &all, &mpi, 1, 2 * S)); /* ranks of one job */
	assert_false(verdicts__is_alone(&verdicts, &all, &mpi, 1, 2 * S + 1));
}

/* Few targets have links of their own though no other process maps the image; beside others any number has. */
static void few_targets_are_alone_in_any_case(void **state)
{
	struct process_mapping mpi = own_image("/usr/lib/libmpi.so.40");
	/* more than there are tests of this program at a time, each of which maps the image */
	struct verdicts verdicts = {.reported = true, .few = 64};

	(void)state;
	assert_true(verdicts__is_alone(&verdicts, &all, &mpi, 0, 1 * S));
	assert_true(verdicts__is_alone(&verdicts, &all, &mpi, 63, 9 * S));
	assert_false(verdicts__is_alone(&verdicts, &all, &mpi, 64, 9 * S));
	assert_false(verdicts__is_shared(&verdicts, &all, &mpi, 9 * S));
	verdicts__mapped(&verdicts, "libmpi.so.40");
	assert_true(verdicts__is_alone(&verdicts, &none, &mpi, 100, 9 * S));
}

static void unreported_mappings_are_looked_for(void **state)
{
	struct process_mapping mpi = own_image("/usr/lib/libmpi.so.40");
	struct verdicts unreported = {0}, verdicts = reported;

	(void)state;
	assert_false(verdicts__is_alone(&unreported, &all, &mpi, 0, 1 * S));
	assert_true(verdicts__is_alone(&unreported, &none, &mpi, 0, 3 * S));
	assert_false(verdicts__is_alone(&verdicts, &all, &mpi, 0, 1 * S));
	verdicts__outdated(&verdicts); /* some were lost */
	assert_true(verdicts__is_alone(&verdicts, &none, &mpi, 0, 1 * S));
}

static void several_images_are_known(void **state)
{
	struct process_mapping mpi = own_image("/usr/lib/libmpi.so.40"), other = mpi;
	struct verdicts verdicts = reported;

	(void)state;
	assert_false(verdicts__is_alone(&verdicts, &all, &mpi, 0, 1 * S));
	for (int i = 0; i < VERDICTS - 1; i++) {
		other.inode++; /* no process maps that */
		assert_false(verdicts__is_alone(&verdicts, &none, &other, 0, 1 * S));
		assert_false(verdicts__is_alone(&verdicts, &none, &mpi, 0, 1 * S));
	}
	other.inode++;
	assert_false(verdicts__is_alone(&verdicts, &none, &other, 0, 1 * S));
	assert_true(verdicts__is_alone(&verdicts, &none, &mpi, 0, 1 * S)); /* it was the oldest */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_not_shared_remains_so),	 cmocka_unit_test(what_is_shared_is_looked_at_again),
	    cmocka_unit_test(few_targets_are_alone_in_any_case), cmocka_unit_test(unreported_mappings_are_looked_for),
	    cmocka_unit_test(several_images_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* A measurement while vaprod runs, on a kernel side that only counts: the child is a real one. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "overhead/recalibrate.h"

#define STEPS 1000 /* of a loop that would stand still if one of them waited */

struct kernel_side {
	struct kernel_shared shared;
	struct kernel_counters counters[KERNEL_SLOTS];
	pid_t child;
	int signal; /* for the child once it is tracked */
	int tracked, linked;
	bool frugal;
};

static struct kernel_side side;

bool kernel_side__frugal(const struct kernel_side *of)
{
	return of->frugal;
}

const struct kernel_shared *kernel_side__shared(const struct kernel_side *of)
{
	return &of->shared;
}

int kernel_side__map(struct kernel_side *of, enum kernel_map map)
{
	(void)of;
	return (int)map;
}

int kernel_side__track(struct kernel_side *of, pid_t pid, const struct bpf_process_state *process)
{
	(void)process;
	of->child = pid;
	of->tracked++;
	return of->signal ? kill(pid, of->signal) : 0;
}

int kernel_side__untrack(struct kernel_side *of, pid_t pid)
{
	(void)pid;
	of->tracked--;
	return 0;
}

int kernel_side__link(struct kernel_side *of, const struct kernel_sites *sites, struct kernel_link **link)
{
	assert_int_equal(sites->count, 1);
	assert_int_equal(sites->pid, of->child);
	of->linked++;
	*link = malloc(1);
	return 0;
}

void kernel_side__unlink(struct kernel_side *of, struct kernel_link *link)
{
	of->linked -= link != NULL;
	free(link);
}

int bpf_map_update_elem(int map, const void *key, const void *value, unsigned long long flags)
{
	(void)key, (void)value, (void)flags;
	assert_int_equal(map, KERNEL_MAP_FUNCTIONS);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	side = (struct kernel_side){0};
	side.shared.counters = side.counters;
	return 0;
}

/* Goes on until the child is tracked and probed. */
static void probe(struct recalibration *recalibration)
{
	double found;

	while (!side.linked) {
		assert_false(recalibrate__step(recalibration, &side, &found));
		usleep(1000);
	}
}

static void goes_on(struct recalibration *recalibration)
{
	double found;

	while (!recalibrate__step(recalibration, &side, &found))
		usleep(1000);
	assert_true(found >= 0);
	assert_null(recalibration->measuring);
	assert_int_equal(side.linked, 0);
	assert_int_equal(side.tracked, 0);
	assert_true(kill(side.child, 0) && errno == ESRCH);
}

static void no_step_waits_for_the_child(void **state)
{
	struct recalibration recalibration = {0};
	double found;

	(void)state;
	side.signal = SIGSTOP; /* it has no CPU */
	probe(&recalibration);
	for (int i = 0; i < STEPS; i++)
		assert_false(recalibrate__step(&recalibration, &side, &found));
	assert_int_equal(side.linked, 1);
	kill(side.child, SIGCONT);
	goes_on(&recalibration);
}

static void a_child_that_is_killed_ends_it(void **state)
{
	struct recalibration recalibration = {0};

	(void)state;
	side.signal = SIGKILL;
	probe(&recalibration);
	goes_on(&recalibration);
}

static void it_is_given_up_at_the_end(void **state)
{
	struct recalibration recalibration = {0};

	(void)state;
	recalibrate__stop(&recalibration); /* none is under way */
	side.signal = SIGSTOP;
	probe(&recalibration);
	recalibrate__stop(&recalibration);
	assert_null(recalibration.measuring);
	assert_int_equal(side.linked, 0);
	assert_int_equal(side.tracked, 0);
	assert_true(kill(side.child, 0) && errno == ESRCH);
}

/* The last descriptor of a link removes its probes: a child that had a copy would leave them in place. */
static void the_child_has_no_descriptor_of_others(void **state)
{
	struct recalibration recalibration = {0};
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	side.signal = SIGSTOP;
	probe(&recalibration);
	close(ends[1]);
	assert_int_equal(poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, 0), 1);
	close(ends[0]);
	recalibrate__stop(&recalibration);
}

static void nothing_is_measured_where_it_would_disturb(void **state)
{
	struct recalibration recalibration = {0};
	double found = 1;

	(void)state;
	side.frugal = true;
	assert_true(recalibrate__step(&recalibration, &side, &found));
	assert_true(found == 0);
	assert_null(recalibration.measuring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(no_step_waits_for_the_child, begin),
	    cmocka_unit_test_setup(a_child_that_is_killed_ends_it, begin),
	    cmocka_unit_test_setup(it_is_given_up_at_the_end, begin),
	    cmocka_unit_test_setup(the_child_has_no_descriptor_of_others, begin),
	    cmocka_unit_test_setup(nothing_is_measured_where_it_would_disturb, begin),
	};

	signal(SIGPIPE, SIG_IGN); /* as vaprod does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What attaching costs: from the first candidate until the attachments have settled, without what goes on anyway. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/attach_costs.h"

#define US 1000ULL
#define MS (1000 * US)
#define S (1000 * MS)

static const struct attach_image mpi = {.device = 1, .inode = 7};
static const struct attach_image mpi_linked = {.device = 1, .inode = 7, .linked = true};
static const struct attach_image other = {.device = 2, .inode = 7};

/* Steps where that is due. Returns whether it was. */
static bool step(struct attach_costs *costs, bool expecting, uint64_t cpu_ns, uint64_t now_ns)
{
	bool due = attach_costs__is_due(costs, now_ns);

	attach_costs__step(costs, expecting, cpu_ns, now_ns);
	return due;
}

static void test_divided(void **state)
{
	struct attach_costs costs = {0};

	(void)state;
	assert_int_equal(attach_costs__of(&costs, &mpi), 0);
	assert_int_equal(attach_costs__first(&costs, mpi.device, mpi.inode), 0);
	attach_costs__candidate(&costs, 100 * MS, 10 * S);
	attach_costs__candidate(&costs, 105 * MS, 10 * S + 5 * MS); /* the second rank: the same measurement */
	attach_costs__attached(&costs, &mpi, 8 * MS, 10 * S + 100 * MS);
	attach_costs__attached(&costs, &mpi_linked, 1 * MS, 10 * S + 110 * MS);
	assert_false(step(&costs, false, 115 * MS, 10 * S + 400 * MS));
	assert_int_equal(attach_costs__of(&costs, &mpi), 0);
	assert_true(step(&costs, false, 126 * MS, 10 * S + 620 * MS));
	/* resolving the first records counts as well, but most of it will not be done again */
	assert_int_equal(attach_costs__of(&costs, &mpi), 3250 * US);
	assert_int_equal(attach_costs__of(&costs, &mpi_linked), 0); /* its links were opened in the same measurement */
	assert_int_equal(attach_costs__of(&costs, &other), 0);
	assert_int_equal(attach_costs__first(&costs, mpi.device, mpi.inode), 10 * S + 100 * MS);
	/* a process that joins is measured by itself */
	attach_costs__candidate(&costs, 200 * MS, 20 * S);
	attach_costs__attached(&costs, &mpi_linked, 2 * MS, 20 * S + 100 * MS);
	assert_true(step(&costs, false, 203 * MS, 20 * S + 620 * MS));
	assert_int_equal(attach_costs__of(&costs, &mpi_linked), 3 * MS);
	assert_int_equal(attach_costs__of(&costs, &mpi), 3250 * US);
	assert_int_equal(attach_costs__first(&costs, mpi.device, mpi.inode), 10 * S + 100 * MS);
	/* the next job is measured in full */
	attach_costs__candidate(&costs, 300 * MS, 30 * S);
	attach_costs__attached(&costs, &mpi, 8 * MS, 30 * S + 100 * MS);
	attach_costs__attached(&costs, &mpi_linked, 1 * MS, 30 * S + 110 * MS);
	assert_true(step(&costs, false, 320 * MS, 30 * S + 620 * MS));
	assert_int_equal(attach_costs__of(&costs, &mpi), 10 * MS);
	assert_int_equal(attach_costs__of(&costs, &mpi_linked), 3 * MS);
}

/* Other jobs are watched meanwhile, and something else takes long. */
static void test_beside_other_work(void **state)
{
	struct attach_costs costs = {0};

	(void)state;
	step(&costs, false, 1000 * MS, 10 * S);
	step(&costs, false, 1010 * MS, 11 * S); /* 1 % */
	attach_costs__candidate(&costs, 1012 * MS, 11 * S + 200 * MS);
	attach_costs__attached(&costs, &mpi, 8 * MS, 11 * S + 700 * MS);
	step(&costs, false, 1042 * MS, 12 * S + 200 * MS);
	assert_int_equal(attach_costs__of(&costs, &mpi), 5 * MS); /* a quarter of what it cost at first */
	/* a window of a large job ended */
	attach_costs__candidate(&costs, 1100 * MS, 20 * S);
	attach_costs__attached(&costs, &mpi, 8 * MS, 20 * S + 100 * MS);
	step(&costs, false, 1900 * MS, 20 * S + 600 * MS);
	assert_int_equal(attach_costs__of(&costs, &mpi), 32 * MS);
	/* less than before attaching: a job has ended meanwhile, and nothing is learned */
	step(&costs, false, 2000 * MS, 22 * S);
	step(&costs, false, 2500 * MS, 23 * S);
	attach_costs__candidate(&costs, 2500 * MS, 23 * S);
	attach_costs__attached(&costs, &mpi, 8 * MS, 23 * S + 100 * MS);
	step(&costs, false, 2510 * MS, 23 * S + 600 * MS);
	assert_int_equal(attach_costs__of(&costs, &mpi), 32 * MS);
}

/* Candidates that come to nothing, or whose attachment is put off. */
static void test_candidates(void **state)
{
	struct attach_costs costs = {0};

	(void)state;
	attach_costs__candidate(&costs, 0, 10 * S);
	step(&costs, true, 5 * MS, 12 * S); /* it is waited for */
	attach_costs__attached(&costs, &mpi, 8 * MS, 13 * S);
	step(&costs, false, 20 * MS, 13 * S + 500 * MS);
	assert_int_equal(attach_costs__of(&costs, &mpi), 5 * MS);
	attach_costs__candidate(&costs, 100 * MS, 20 * S);
	step(&costs, false, 105 * MS, 21 * S); /* a shell: it ends with nothing */
	attach_costs__candidate(&costs, 110 * MS, 30 * S);
	attach_costs__attached(&costs, &mpi, 8 * MS, 30 * S);
	step(&costs, false, 122 * MS, 31 * S);
	assert_int_equal(attach_costs__of(&costs, &mpi), 12 * MS);
	/* a process that was no candidate before: its image is known, and its cost is not */
	attach_costs__attached(&costs, &other, 8 * MS, 40 * S);
	step(&costs, false, 130 * MS, 41 * S);
	assert_int_equal(attach_costs__of(&costs, &other), 0);
	assert_int_equal(attach_costs__first(&costs, other.device, other.inode), 40 * S);
}

/* More images than there is room for: the oldest is forgotten. */
static void test_many_images(void **state)
{
	struct attach_costs costs = {0};

	(void)state;
	for (uint64_t i = 0; i <= ATTACH_COSTS_IMAGES; i++) {
		struct attach_image image = {.device = 3, .inode = i};

		attach_costs__candidate(&costs, i * S, (10 + i) * S);
		attach_costs__attached(&costs, &image, 8 * MS, (10 + i) * S);
		step(&costs, false, i * S + 9 * MS, (10 + i) * S + 600 * MS);
		assert_int_equal(attach_costs__of(&costs, &image), 2250 * US);
	}
	assert_int_equal(attach_costs__first(&costs, 3, 0), 0);
	assert_int_equal(attach_costs__first(&costs, 3, 1), 11 * S);
	/* of many at once the first ones are measured */
	attach_costs__candidate(&costs, 50 * S, 50 * S);
	for (uint64_t i = 0; i <= ATTACH_COSTS_AT_ONCE; i++)
		attach_costs__attached(&costs, &(struct attach_image){.device = 4, .inode = i}, 8 * MS, 50 * S);
	step(&costs, false, 50 * S + 20 * MS, 51 * S);
	assert_int_equal(attach_costs__of(&costs, &(struct attach_image){.device = 4, .inode = 0}), 1 * MS);
	assert_int_equal(attach_costs__of(&costs, &(struct attach_image){.device = 4, .inode = ATTACH_COSTS_AT_ONCE}),
			 0);
}

/* A user's processes of a library that all use, each expensive to attach to, put off the user's own only. */
static void test_owners(void **state)
{
	static const struct attach_image theirs = {.device = 1, .inode = 7, .owner = 1001};
	struct attach_costs costs = {0};

	(void)state;
	attach_costs__candidate(&costs, 0, 10 * S);
	attach_costs__attached(&costs, &mpi, 1 * MS, 10 * S);
	assert_true(step(&costs, false, 1 * MS, 10 * S + 600 * MS));
	attach_costs__candidate(&costs, 1 * S, 20 * S);
	attach_costs__attached(&costs, &theirs, 60 * MS, 20 * S);
	assert_true(step(&costs, false, 1 * S + 90 * MS, 20 * S + 600 * MS));
	assert_int_equal(attach_costs__of(&costs, &theirs), 90 * MS);
	assert_int_equal(attach_costs__of(&costs, &mpi), 250 * US);
	/* both in one measurement: by what each attachment itself cost; of theirs there are two */
	attach_costs__candidate(&costs, 2 * S, 30 * S);
	attach_costs__attached(&costs, &theirs, 49 * MS, 30 * S);
	attach_costs__attached(&costs, &mpi, 2 * MS, 30 * S);
	attach_costs__attached(&costs, &theirs, 49 * MS, 30 * S);
	assert_true(step(&costs, false, 2 * S + 200 * MS, 30 * S + 600 * MS));
	assert_int_equal(attach_costs__of(&costs, &theirs), 98 * MS);
	assert_int_equal(attach_costs__of(&costs, &mpi), 4 * MS);
	/* read for the first time on this node is what any owner's process had read */
	assert_int_equal(attach_costs__first(&costs, 1, 7), 10 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_divided), cmocka_unit_test(test_beside_other_work),
					   cmocka_unit_test(test_candidates), cmocka_unit_test(test_many_images),
					   cmocka_unit_test(test_owners)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

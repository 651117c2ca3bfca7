// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of MPI functions: which are opened, closed, left out, refused and moved. */
#include "fake_kernel_side.h"
#include "base/grow.h"
#include "probe/attach/attacher.h"
#include "probe/attach/mpi_image.h"

/* ---- an image as the confined reader would find it */

static const struct process_mapping mapping = {.device = 1, .inode = 2, .path = "libmpi.so"};

#define MANY 40 /* processes */

enum { BCAST = 100, REDUCE = 200, ISEND = 300, FREE = 400, TEST = 500, FLUSH = 600 }; /* offsets of functions */

static unsigned int row_of(const char *name)
{
	int row = functions__find(name);

	assert_true(row >= 0);
	return (unsigned int)row;
}

static struct probe probe_of(const struct attacher *attacher, uint64_t offset, const char *name)
{
	unsigned int row = row_of(name);
	int unit = functions__unit(row);
	bool can_wait = unit < 0 || functions__unit_waits(unit);
	bool alone = kernel_side__frugal(attacher->base.side) || (!can_wait && unit != functions__other_unit());

	return (struct probe){.offset = offset,
			      .entry = offset,
			      .row = row,
			      .name = name,
			      .unit = unit,
			      .set = alone	? (int64_t)row
				     : can_wait ? SET_CALM
						: SET_OTHERS};
}

static struct mpi_image *add_image(struct attacher *attacher)
{
	struct mpi_image *image = calloc(1, sizeof(*image));
	struct learning *learning = &image->learning;

	image->base.public.device = mapping.device;
	image->base.public.inode = mapping.inode;
	image->base.file = -1;
	assert_false(grow(&image->probes, &image->probe_room, 4, sizeof(*image->probes)));
	image->probes[image->probe_count++] = probe_of(attacher, BCAST, "MPI_Bcast");
	image->probes[image->probe_count++] = probe_of(attacher, REDUCE, "MPI_Allreduce");
	image->probes[image->probe_count++] = probe_of(attacher, ISEND, "MPI_Isend");
	image->probes[image->probe_count++] = probe_of(attacher, FREE, "MPI_Request_free");
	assert_false(grow(&learning->probes, &learning->room, 1, sizeof(*learning->probes)));
	learning->probes[learning->count++] = probe_of(attacher, TEST, "MPI_Test");
	assert_false(grow(&attacher->base.images, &attacher->base.room, attacher->base.count + 1,
			  sizeof(*attacher->base.images)));
	attacher->base.images[attacher->base.count++] = &image->base;
	return image;
}

static struct attacher *begin(enum attach_mode mode, double learn_s, struct mpi_image **image)
{
	struct attacher *attacher;

	fake__reset(mode);
	attacher = attacher__new(&side, learn_s);
	assert_non_null(attacher);
	*image = add_image(attacher);
	return attacher;
}

static struct functions_spared spared; /* what attach() begins without */

static int attach(struct attacher *attacher, pid_t pid, bool alone)
{
	const struct process process = {.pid = pid};
	const struct attached_image *image;
	char err[256] = "";
	int status = attacher__attach(attacher, &process, &mapping, alone, &spared, &image, err, sizeof(err));

	assert_int_equal(!status, !err[0]);
	return status;
}

static void end(struct attacher *attacher)
{
	attacher__pause(attacher);
	assert_int_equal(side.count, 0);
	attacher__free(attacher);
}

/* ---- */

/* Closes an image's most expensive functions, and opens the links of the others. */
static void close_and_keep(struct attacher *attacher, const struct mpi_image *image, double keep,
			   struct attacher_closed *closed)
{
	attacher__close(attacher, &image->base.public, keep, 1, closed);
	assert_false(attacher__detaching(attacher) || attacher__still_hit(attacher));
	assert_int_equal(attacher__open_remaining(attacher, &image->base.public), 0);
}

static void links_of_processes_give_way_to_one_for_all(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);

	(void)state;
	assert_int_equal(attach(attacher, 10, true), 0);
	assert_int_equal(attach(attacher, 11, true), 0);
	assert_true(is_open(&side, BCAST, 10) && is_open(&side, FREE, 11));
	assert_int_equal(side.count, 8);
	assert_false(attacher__linked(attacher, &mapping));
	assert_int_equal(attach(attacher, 12, false), 0);
	assert_true(attacher__linked(attacher, &mapping));
	assert_int_equal(side.count, 4);
	assert_true(is_open(&side, BCAST, 0) && is_open(&side, REDUCE, 0) && is_open(&side, ISEND, 0));
	attacher__release(attacher, 12);
	assert_true(attacher__linked(attacher, &mapping)); /* the others are seen through it */
	assert_int_equal(attach(attacher, 13, true), 0);
	assert_int_equal(side.count, 4);
	attacher__release(attacher, 10);
	attacher__release(attacher, 11);
	assert_int_equal(side.count, 4);
	assert_true(attacher__linked(attacher, &mapping));
	attacher__release(attacher, 13);
	assert_int_equal(side.count, 0);
	assert_int_equal(attacher->base.count, 0);
	end(attacher);
}

/* Any number of processes has links of their own; a closed image stays closed for each of them. */
static void many_processes_have_links_of_their_own(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_MULTI, 0, &image);

	(void)state;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(attach(attacher, 10 + i, true), 0);
	assert_int_equal(side.count, 4 * MANY);
	assert_int_equal(image->base.public.filtered, MANY);
	assert_false(attacher__any_linked(attacher));
	attacher__release(attacher, 10);
	assert_false(is_open(&side, BCAST, 10));
	assert_int_equal(image->base.public.filtered, MANY - 1);
	end(attacher);
}

/* Links for all take the place of those of each, and give way again in two steps: no other process is reached in
 * between. */
static void images_are_shared_and_parted(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);

	(void)state;
	for (int pid = 10; pid < 13; pid++)
		assert_int_equal(attach(attacher, pid, true), 0);
	assert_int_equal(attacher__share(attacher, &image->base.public), 0);
	assert_int_equal(side.count, 4);
	assert_true(is_open(&side, BCAST, 0) && attacher__any_linked(attacher));
	assert_int_equal(image->base.public.filtered, 0);
	assert_int_equal(attacher__share(attacher, &image->base.public), 0);
	assert_int_equal(attach(attacher, 13, true), 0);
	assert_int_equal(side.count, 4);
	attacher__close_shared(attacher);
	assert_int_equal(side.count, 0);
	assert_int_equal(attacher__part(attacher), 0);
	assert_int_equal(side.count, 16);
	assert_true(is_open(&side, BCAST, 13) && is_open(&side, FREE, 10) && !attacher__any_linked(attacher));
	side.order[0] = '\0';
	attacher__close_shared(attacher);
	assert_int_equal(attacher__part(attacher), 0);
	assert_string_equal(side.order, "");
	end(attacher);
}

/* What is closed to keep the budget stays closed when links are made again. */
static void closed_functions_stay_closed_when_parted(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	struct attacher_closed closed;

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 0);
	assert_int_equal(attach(attacher, 11, false), 0);
	attacher__close(attacher, &image->base.public, 0, 1, &closed);
	assert_int_equal(side.count, 0);
	attacher__close_shared(attacher);
	assert_int_equal(attacher__part(attacher), 0);
	assert_int_equal(side.count, 0);
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_int_equal(side.count, 8);
	assert_true(is_open(&side, BCAST, 10) && !is_open(&side, BCAST, 0));
	end(attacher);
}

static void the_costliest_functions_are_closed_and_opened_again(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	struct attacher_closed closed;

	(void)state;
	assert_int_equal(attach(attacher, 10, true), 0);
	side.calls[row_of("MPI_Allreduce")] = 1000;
	side.calls[row_of("MPI_Isend")] = 900;
	side.calls[row_of("MPI_Bcast")] = 10;
	close_and_keep(attacher, image, 0.1, &closed);
	assert_string_equal(closed.name, "MPI_Allreduce");
	assert_int_equal(closed.functions, 2);
	assert_int_equal(closed.of, 4);
	assert_true(closed.parted && image->base.public.closed);
	assert_true(is_open(&side, BCAST, 10) && is_open(&side, FREE, 10));
	assert_int_equal(side.count, 2);
	/* a process that comes meanwhile has no more probes than the others */
	assert_int_equal(attach(attacher, 11, true), 0);
	assert_true(is_open(&side, BCAST, 11) && is_open(&side, FREE, 11));
	assert_int_equal(side.count, 4);
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_int_equal(side.count, 8);
	/* those that can wait stay divided: the same choice again opens nothing again */
	side.calls[row_of("MPI_Allreduce")] += 1000;
	side.calls[row_of("MPI_Isend")] += 900;
	side.order[0] = '\0';
	close_and_keep(attacher, image, 0.1, &closed);
	assert_false(closed.parted);
	assert_null(strchr(side.order, '+'));
	assert_int_equal(side.count, 4);
	close_and_keep(attacher, image, 0, &closed);
	assert_int_equal(closed.functions, 4);
	assert_int_equal(side.count, 0);
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_int_equal(side.count, 8);
	end(attacher);
}

/* Probes may have to be closed before any call is counted: those that were closed before, or all. */
static void without_calls_the_former_functions_are_closed(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	struct functions_spared found = {0};
	struct attacher_closed closed;

	(void)state;
	assert_int_equal(attach(attacher, 10, true), 0);
	close_and_keep(attacher, image, 0.1, &closed);
	assert_int_equal(closed.functions, 4);
	assert_int_equal(side.count, 0);
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	side.calls[row_of("MPI_Bcast")] = 1000;
	close_and_keep(attacher, image, 0.1, &closed);
	assert_int_equal(closed.functions, 1);
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	close_and_keep(attacher, image, 0.1, &closed);
	assert_int_equal(closed.functions, 1);
	assert_false(is_open(&side, BCAST, 10));
	attacher__costly(attacher, &image->base.public, &found);
	assert_true(functions__is_costly(&found, row_of("MPI_Bcast")));
	end(attacher);
}

/* What may be called most is seen last, and closed in one step: waiting for one link would let another cost on. */
static void the_expensive_links_are_open_for_least_time(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 1000, &image);
	struct attacher_closed closed;

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 0);
	assert_string_equal(side.order, "+0:500 +0:300 +0:100 +0:200 +0:400 ");
	side.calls[row_of("MPI_Bcast")] = 1000;
	side.order[0] = '\0';
	close_and_keep(attacher, image, 0.1, &closed);
	assert_null(strstr(strchr(side.order, '+'), "-")); /* nothing is opened before all is closed */
	assert_false(is_open(&side, TEST, 0) || is_open(&side, BCAST, 0));
	assert_true(is_open(&side, REDUCE, 0));
	/* polling calls are learnt again once the probes are open */
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_int_equal(attach(attacher, 11, false), 0);
	assert_true(is_open(&side, TEST, 0));
	end(attacher);
}

/* A program that was expensive before begins with its costly functions closed, and the others open. */
static void a_known_program_begins_without_its_costly_functions(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	struct functions_spared found = {0};
	struct attacher_closed closed;

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 0);
	side.calls[row_of("MPI_Bcast")] = 1000;
	side.calls[row_of("MPI_Allreduce")] = 1;
	close_and_keep(attacher, image, 0.1, &closed);
	close_and_keep(attacher, image, 0, &closed);
	attacher__costly(attacher, &image->base.public, &found); /* all are closed, one for its cost */
	assert_true(functions__is_costly(&found, row_of("MPI_Bcast")));
	assert_false(functions__is_costly(&found, row_of("MPI_Allreduce")));
	end(attacher);

	attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	spared = found;
	spared.closed = true;
	spared.units = 1U << functions__unit(row_of("MPI_Isend"));
	assert_int_equal(attach(attacher, 11, false), 0);
	assert_int_equal(attach(attacher, 12, false), 0);
	spared = (struct functions_spared){0};
	assert_true(image->base.public.closed);
	assert_int_equal(image->base.public.without, 1U << functions__unit(row_of("MPI_Isend")));
	assert_string_equal(side.order, "+0:200 +0:400 ");
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_true(is_open(&side, BCAST, 0) && !is_open(&side, ISEND, 0));
	found = (struct functions_spared){0};
	attacher__costly(attacher, &image->base.public, &found);
	assert_true(functions__is_costly(&found, row_of("MPI_Bcast")));
	end(attacher);
}

static void units_are_left_out_while_others_are_closed(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	int unit = functions__unit(row_of("MPI_Isend"));
	double shares[FUNCTIONS_UNITS];
	struct attacher_closed closed;
	bool parted;

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 0);
	side.calls[row_of("MPI_Isend")] = 300;
	side.calls[row_of("MPI_Bcast")] = 100;
	attacher__unit_shares(attacher, &image->base.public, 1, shares);
	assert_true(shares[unit] > 0.74 && shares[unit] < 0.76);
	assert_int_equal(attacher__leave_out(attacher, &image->base.public, 1U << unit, &parted), 0);
	assert_false(parted);
	assert_false(is_open(&side, ISEND, 0));
	assert_int_equal(side.count, 3);
	attacher__unit_shares(attacher, &image->base.public, 1, shares); /* counting began again */
	assert_true(shares[unit] == 0);
	side.calls[row_of("MPI_Bcast")] += 100;
	close_and_keep(attacher, image, 0.5, &closed);
	assert_int_equal(side.count, 2);
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_int_equal(side.count, 3);
	assert_false(is_open(&side, ISEND, 0));
	assert_int_equal(attacher__leave_out(attacher, &image->base.public, 0, &parted), 0);
	assert_int_equal(side.count, 4);
	end(attacher);
}

/* Adds MPI_Win_flush to an image without links. Returns its unit. */
static int add_flush(struct attacher *attacher, struct mpi_image *image)
{
	assert_false(grow(&image->probes, &image->probe_room, image->probe_count + 1, sizeof(*image->probes)));
	image->probes[image->probe_count++] = probe_of(attacher, FLUSH, "MPI_Win_flush");
	return functions__unit(row_of("MPI_Win_flush"));
}

/* A function that can wait has a share of the cost only where few of its calls take long, and these not in all. */
static void functions_are_short_by_their_calls(void **state)
{
	static const struct {
		uint64_t calls, waits, waited_ns;
		bool is_short;
	} cases[] = {{999, 0, 0, false},
		     {1000, 0, 0, true},
		     {1000, 1, 10000, true},
		     {1784, 11, 173728, true}, /* on a busy machine: interrupts, and caches that others use */
		     {1000, 10, 100000, true},
		     {1000, 11, 110000, false},
		     {1000, 1, 1000001, false},
		     {100000, 100, 100000000, true},
		     {100000, 100, 100000001, false},
		     {100000, 1001, 10000000, false}};
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	unsigned int row = row_of("MPI_Win_flush");
	double shares[FUNCTIONS_UNITS];
	int unit;

	(void)state;
	unit = add_flush(attacher, image);
	assert_int_equal(attach(attacher, 10, false), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		attacher__begin_count(attacher, &image->base.public);
		side.calls[row] += cases[i].calls;
		side.waits[row] += cases[i].waits;
		side.waited_ns[row] += cases[i].waited_ns;
		side.calls[row_of("MPI_Bcast")] += cases[i].calls;
		attacher__unit_shares(attacher, &image->base.public, 1, shares);
		assert_true(shares[unit] == (cases[i].is_short ? 0.5 : 0));
	}
	end(attacher);
}

/* A function that shares links is left out: the others are linked again, once, and never again for its sake. */
static void a_short_function_gets_links_of_its_own(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	bool parted;
	int unit;

	(void)state;
	unit = add_flush(attacher, image);
	assert_int_equal(attach(attacher, 10, true), 0);
	assert_int_equal(attach(attacher, 11, true), 0);
	assert_true(is_open(&side, FLUSH, 10) && is_open(&side, BCAST, 10));
	assert_int_equal(attacher__leave_out(attacher, &image->base.public, 1U << unit, &parted), 0);
	assert_true(parted);
	assert_false(is_open(&side, FLUSH, 10) || is_open(&side, BCAST, 10) || is_open(&side, BCAST, 11));
	assert_true(is_open(&side, ISEND, 10));
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_true(is_open(&side, BCAST, 10) && is_open(&side, BCAST, 11) && is_open(&side, REDUCE, 10));
	assert_false(is_open(&side, FLUSH, 10) || is_open(&side, FLUSH, 11));
	side.order[0] = '\0';
	assert_int_equal(attacher__leave_out(attacher, &image->base.public, 0, &parted), 0);
	assert_false(parted);
	assert_true(is_open(&side, FLUSH, 10) && is_open(&side, FLUSH, 11));
	assert_int_equal(attacher__leave_out(attacher, &image->base.public, 1U << unit, &parted), 0);
	assert_false(parted);
	assert_null(strstr(side.order, ":100")); /* MPI_Bcast's links stayed */
	assert_int_equal(attach(attacher, 12, true), 0);
	assert_true(is_open(&side, BCAST, 12) && !is_open(&side, FLUSH, 12));
	end(attacher);

	attacher = begin(ATTACH_MODE_SESSION, 0, &image);
	add_flush(attacher, image);
	spared.units = 1U << unit;
	assert_int_equal(attach(attacher, 13, true), 0);
	spared = (struct functions_spared){0};
	assert_true(is_open(&side, BCAST, 13) && !is_open(&side, FLUSH, 13));
	end(attacher);
}

static void refused_functions_are_named_and_the_others_probed(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);

	(void)state;
	image->probes[0].offset = image->probes[2].offset = REFUSED; /* one of a set, and a set of one */
	assert_int_equal(attach(attacher, 10, true), 0);
	assert_int_equal(image->base.public.functions, 2);
	assert_int_equal(image->base.public.skipped_count, 2);
	assert_string_equal(image->base.public.skipped[0].function, "MPI_Isend");
	assert_string_equal(image->base.public.skipped[1].function, "MPI_Bcast");
	assert_true(is_open(&side, REDUCE, 10) && is_open(&side, FREE, 10));
	image->probes[0].offset = image->probes[1].offset = REFUSED;
	assert_int_equal(attach(attacher, 11, true), -EOPNOTSUPP);
	assert_int_equal(side.count, 2); /* those of the first process */
	assert_int_equal(image->base.public.functions, 0);
	attacher__release(attacher, 11);
	end(attacher);
}

static void a_probe_moves_without_a_gap(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 0);
	side.order[0] = '\0';
	mpi_image__move(attacher, image, &image->probes[2], ISEND + 1, SITE_EMULATED);
	assert_string_equal(side.order, "+0:301 -0:300 ");
	side.order[0] = '\0';
	mpi_image__move(attacher, image, &image->probes[2], REFUSED, SITE_STEPPED);
	assert_string_equal(side.order, "-0:301 ");
	assert_int_equal(image->probe_count, 3);
	end(attacher);
}

static void returns_that_stay_away_move_a_probe_to_its_entry(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 0, &image);

	(void)state;
	image->probes[2].offset = ISEND + 1;
	assert_int_equal(attach(attacher, 10, false), 0);
	side.calls[row_of("MPI_Isend")] = 3;	   /* which never return */
	assert_null(attacher__check(attacher, 3)); /* all may be under way */
	assert_null(attacher__check(attacher, 2));
	assert_null(attacher__check(attacher, 2));
	assert_true(is_open(&side, ISEND + 1, 0));
	assert_string_equal(attacher__check(attacher, 2), "MPI_Isend");
	assert_true(is_open(&side, ISEND, 0) && !is_open(&side, ISEND + 1, 0));
	assert_null(attacher__check(attacher, 2));
	end(attacher);
}

static void polling_calls_are_linked_for_a_while(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 1000, &image);

	(void)state;
	assert_int_equal(attach(attacher, 10, true), 0);
	assert_true(is_open(&side, TEST, 10));
	assert_int_equal(attach(attacher, 11, false), 0);
	assert_true(is_open(&side, TEST, 0) && !is_open(&side, TEST, 10));
	assert_int_equal(side.count, 5);
	attacher__learn(attacher, image->learning.until_ns - 1);
	assert_true(is_open(&side, TEST, 0));
	attacher__learn(attacher, image->learning.until_ns);
	assert_int_equal(side.count, 4);
	assert_int_equal(attach(attacher, 12, false), 0);
	assert_true(is_open(&side, TEST, 0));
	side.polls += 1000000;
	attacher__learn(attacher, 1);
	assert_false(is_open(&side, TEST, 0));
	end(attacher);
}

static void polling_calls_that_cost_most_go_alone(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 1000, &image);
	struct attacher_closed closed;

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 0);
	side.polls += 100000;
	side.calls[row_of("MPI_Bcast")] = 90000;
	assert_true(attacher__end_learning(attacher, &image->base.public, 1));
	assert_false(image->base.public.closed || is_open(&side, TEST, 0));
	assert_int_equal(side.count, 4);
	assert_false(attacher__end_learning(attacher, &image->base.public, 1));
	/* also where the learning ended by itself just before */
	assert_int_equal(attach(attacher, 11, false), 0);
	side.polls += 100000;
	attacher__learn(attacher, 1);
	assert_false(is_open(&side, TEST, 0));
	assert_true(attacher__end_learning(attacher, &image->base.public, 1));
	/* calls that cost more are the reason */
	assert_int_equal(attach(attacher, 12, false), 0);
	side.polls += 100000;
	side.calls[row_of("MPI_Bcast")] += 110000;
	assert_false(attacher__end_learning(attacher, &image->base.public, 1));
	assert_true(is_open(&side, TEST, 0));
	close_and_keep(attacher, image, 0.0625, &closed);
	assert_true(image->base.public.closed && !is_open(&side, BCAST, 0) && !is_open(&side, TEST, 0));
	end(attacher);
}

/* Where costly functions begin closed, polling calls are learnt once these are open: an edge has two calls. */
static void polling_calls_are_learnt_in_the_first_open_period(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_SESSION, 1000, &image);
	unsigned int row = row_of("MPI_Bcast");

	(void)state;
	spared = (struct functions_spared){.closed = true};
	spared.costly[row / 64] = 1ULL << row % 64;
	assert_int_equal(attach(attacher, 10, false), 0);
	spared = (struct functions_spared){0};
	assert_false(is_open(&side, TEST, 0) || is_open(&side, BCAST, 0));
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_true(is_open(&side, TEST, 0) && is_open(&side, BCAST, 0));
	attacher__learn(attacher, image->learning.until_ns);
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_false(is_open(&side, TEST, 0)); /* only once */
	end(attacher);
}

static void slow_links_have_one_function_each(void **state)
{
	struct mpi_image *image;
	struct attacher *attacher = begin(ATTACH_MODE_PERF, 1000, &image);
	struct attacher_closed closed;

	(void)state;
	assert_int_equal(attach(attacher, 10, true), 0);
	assert_int_equal(side.count, 4); /* and nothing is learnt */
	side.calls[row_of("MPI_Bcast")] = 10;
	side.order[0] = '\0';
	close_and_keep(attacher, image, 0.5, &closed);
	assert_false(closed.parted);
	assert_string_equal(side.order, "-10:100 ");
	assert_int_equal(attacher__open(attacher, &image->base.public), 0);
	assert_int_equal(side.count, 4);
	end(attacher);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(links_of_processes_give_way_to_one_for_all),
	    cmocka_unit_test(many_processes_have_links_of_their_own),
	    cmocka_unit_test(images_are_shared_and_parted),
	    cmocka_unit_test(closed_functions_stay_closed_when_parted),
	    cmocka_unit_test(the_costliest_functions_are_closed_and_opened_again),
	    cmocka_unit_test(without_calls_the_former_functions_are_closed),
	    cmocka_unit_test(the_expensive_links_are_open_for_least_time),
	    cmocka_unit_test(a_known_program_begins_without_its_costly_functions),
	    cmocka_unit_test(units_are_left_out_while_others_are_closed),
	    cmocka_unit_test(functions_are_short_by_their_calls),
	    cmocka_unit_test(a_short_function_gets_links_of_its_own),
	    cmocka_unit_test(refused_functions_are_named_and_the_others_probed),
	    cmocka_unit_test(a_probe_moves_without_a_gap),
	    cmocka_unit_test(returns_that_stay_away_move_a_probe_to_its_entry),
	    cmocka_unit_test(polling_calls_are_linked_for_a_while),
	    cmocka_unit_test(polling_calls_that_cost_most_go_alone),
	    cmocka_unit_test(polling_calls_are_learnt_in_the_first_open_period),
	    cmocka_unit_test(slow_links_have_one_function_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

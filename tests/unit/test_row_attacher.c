// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions with exit sites: sets by group and rate, closed and opened again, refused. */
#include <unistd.h>

#include <math.h>

#include "row_images.h"

#define SECOND_NS 1000000000ULL

static void functions_called_about_equally_often_share_links(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, &image);
	struct row_probe *rare = add(attacher, image, ROW_USER, 100, 101, 1);
	struct row_probe *other = add(attacher, image, ROW_USER, 200, 101, 2); /* they end in the same function */
	struct row_probe *often = add(attacher, image, ROW_USER, 300, 301, 5000);
	struct row_probe *thread = add(attacher, image, ROW_THREADS, 400, 401, 1);

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 3);
	assert_int_equal(side.count, 7); /* the common end has one probe */
	assert_true(rare->set == other->set && rare->set != often->set && rare->set != thread->set);
	assert_int_equal(image->base.public.functions, 4);
	side.order[0] = '\0';
	row_image__close(attacher, image, other);
	assert_string_equal(side.order, "-0:100 -0:101 -0:200 ");
	assert_int_equal(other->state, ROW_LEFT_OUT);
	assert_int_equal(rare->state, ROW_FITTING);
	assert_int_equal(often->state, ROW_OPEN);
	side.order[0] = '\0';
	assert_int_equal(row_image__open(attacher, image), 0);
	assert_string_equal(side.order, "+0:100 +0:101 ");
	assert_int_equal(image->base.public.functions, 3);
	assert_int_equal(image->base.public.skipped_count, 1);
	end(attacher);
}

static void each_mapper_has_links_of_all_open_sets(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_MULTI, &image);

	(void)state;
	add(attacher, image, ROW_USER, 100, 101, 1);
	add(attacher, image, ROW_USER, 300, 301, 5000);
	assert_int_equal(attach(attacher, 10, true), 2);
	assert_int_equal(attach(attacher, 11, true), 2);
	assert_int_equal(attach(attacher, 11, true), 2);
	assert_int_equal(side.count, 8);
	assert_false(row_attacher__linked(attacher, &mapping));
	row_image__close(attacher, image, image->probes[1]);
	assert_int_equal(side.count, 4);
	assert_int_equal(attach(attacher, 12, true), 2);
	assert_true(is_open(&side, 100, 12) && !is_open(&side, 300, 12));
	row_attacher__release(attacher, 10);
	assert_false(is_open(&side, 100, 10));
	assert_int_equal(side.count, 4);
	image->probes[1]->state = ROW_FITTING;
	assert_int_equal(row_image__open(attacher, image), 0);
	assert_true(is_open(&side, 301, 11) && is_open(&side, 301, 12) && !is_open(&side, 301, 10));
	row_attacher__release(attacher, 11);
	row_attacher__release(attacher, 12);
	assert_int_equal(attacher->base.count, 0);
	end(attacher);
}

/* More targets map the image than may have links of their own: no call is seen by two links. */
static void links_for_all_replace_those_of_processes(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_MULTI, &image);

	(void)state;
	add(attacher, image, ROW_USER, 100, 101, 1);
	add(attacher, image, ROW_USER, 300, 301, 5000);
	assert_int_equal(attach(attacher, 10, true), 2);
	assert_int_equal(attach(attacher, 11, true), 2);
	assert_int_equal(side.count, 8);
	assert_int_equal(attach(attacher, 12, false), 2);
	assert_true(row_attacher__linked(attacher, &mapping));
	assert_int_equal(side.count, 4);
	assert_true(is_open(&side, 100, 0) && is_open(&side, 101, 0) && is_open(&side, 300, 0) &&
		    is_open(&side, 301, 0));
	/* neither who comes later nor a set that is opened again has links of its own */
	assert_int_equal(attach(attacher, 13, true), 2);
	row_image__close(attacher, image, image->probes[1]);
	image->probes[1]->state = ROW_FITTING;
	assert_int_equal(row_image__open(attacher, image), 0);
	assert_int_equal(side.count, 4);
	/* the first processes end, and the links for all stay */
	row_attacher__release(attacher, 10);
	row_attacher__release(attacher, 11);
	assert_int_equal(side.count, 4);
	end(attacher);
}

static void a_function_is_seen_entirely_or_not_at_all(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, &image);
	struct row_probe *refused = add(attacher, image, ROW_USER, 100, REFUSED, 1);
	struct row_probe *other = add(attacher, image, ROW_USER, 200, 201, 2);

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 1);
	assert_int_equal(refused->state, ROW_REFUSED);
	assert_int_equal(other->state, ROW_OPEN);
	assert_int_equal(side.count, 2);
	assert_true(is_open(&side, 200, 0) && is_open(&side, 201, 0));
	assert_int_equal(image->base.public.skipped_count, 1);
	end(attacher);
}

/* Nothing is probed of processes whose calls are not seen, unless another process maps the image. */
static void functions_rest_until_their_processes_are_seen(void **state)
{
	static const pid_t pids[] = {11, 10};
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, &image);
	struct row_probe *probe = add(attacher, image, ROW_USER, 100, 101, 1);
	uint64_t until_ns;

	(void)state;
	assert_int_equal(attach(attacher, 10, false), 1);
	assert_int_equal(attach(attacher, 11, false), 1);
	attacher->budget = 0.005;
	until_ns = mono_now() + 3600 * 1000000000ULL;
	row_attacher__rest(attacher, pids, 1, until_ns);
	assert_int_equal(probe->state, ROW_OPEN);
	row_attacher__rest(attacher, pids, 2, until_ns);
	assert_int_equal(probe->state, ROW_LEFT_OUT);
	assert_int_equal(side.count, 0);
	row_attacher__govern(attacher, 0, until_ns - 1, NULL, NULL);
	assert_int_equal(side.count, 0);
	row_attacher__govern(attacher, 0, until_ns, NULL, NULL);
	assert_int_equal(probe->state, ROW_OPEN);
	assert_true(side.count > 0);
	end(attacher);
}

/* Where calls of MPI alone exceed the budget, no duty cycle of functions makes it worse. */
static void expensive_functions_have_no_duty_cycle_while_the_budget_is_scarce(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, &image);
	struct row_probe *cheap = add(attacher, image, ROW_USER, 100, 101, 1);
	struct row_probe *open = add(attacher, image, ROW_USER, 200, 201, 5000);
	struct row_probe *closed = add(attacher, image, ROW_USER, 300, 301, 5000);
	uint64_t until_ns = mono_now() + 1000000000, levels;
	const pid_t pids[] = {10};

	(void)state;
	attacher->budget = 0.005;
	assert_int_equal(attach(attacher, 10, false), 3);
	cheap->family_share = 0.001;
	open->family_share = closed->family_share = 0.02;
	row_image__close(attacher, image, closed);
	closed->in_duty_cycle = true;
	closed->backoff.until_ns = until_ns - 500000000;
	row_attacher__rest(attacher, pids, 1, until_ns);
	assert_true(cheap->state == ROW_LEFT_OUT && cheap->in_duty_cycle && cheap->backoff.until_ns == until_ns);
	assert_true(open->state == ROW_LEFT_OUT && !open->in_duty_cycle && !closed->in_duty_cycle);
	assert_true(open->backoff.until_ns > until_ns + 5000000000ULL);
	assert_true(closed->backoff.until_ns > until_ns + 5000000000ULL);
	levels = open->backoff.level + closed->backoff.level;
	row_attacher__rest(attacher, pids, 1, until_ns); /* each pass of a closed period does so */
	assert_int_equal(open->backoff.level + closed->backoff.level, levels);
	assert_true(image->scarce_until_ns > until_ns);
	end(attacher);
}

/* The calls of a process may leave less than functions may cost otherwise. */
static void functions_have_what_calls_leave(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, &image);
	struct row_probe *probe = add(attacher, image, ROW_USER, 100, 101, 1);
	uint64_t now_ns = mono_now(), later_ns = now_ns + 3600 * SECOND_NS;

	(void)state;
	attacher->budget = 0.005;
	assert_int_equal(attach(attacher, 10, false), 1);
	assert_int_equal(attach(attacher, 11, false), 1);
	probe->group = ROW_THREADS;
	probe->share = probe->own_share = probe->family_share = 0.002;
	row_image__close(attacher, image, probe);
	probe->state = ROW_LEFT_OUT;
	probe->in_duty_cycle = true;
	probe->backoff.until_ns = now_ns;
	row_attacher__limit(attacher, 12, 0.001, now_ns); /* it does not map the image */
	row_attacher__limit(attacher, 10, 0.005, now_ns); /* as much as they may cost anyway */
	assert_false(row_image__is_scarce(image, now_ns));
	row_attacher__limit(attacher, 10, -0.003, now_ns);
	assert_true(!row_image__is_scarce(image, now_ns) && row_image__limit(image, now_ns) < 0.001);
	/* what did not last leaves duty cycles */
	row_attacher__limit(attacher, 10, 0.006, now_ns + 2 * SECOND_NS);
	row_attacher__limit(attacher, 10, -0.003, now_ns + 3 * SECOND_NS);
	assert_false(row_image__is_scarce(image, now_ns + 3 * SECOND_NS));
	now_ns += 8 * SECOND_NS;
	row_attacher__limit(attacher, 10, -0.003, now_ns);
	assert_true(row_image__is_scarce(image, now_ns) && row_image__limit(image, now_ns) < 0.001);
	row_attacher__limit(attacher, 10, 0.001, now_ns);
	assert_true(fabs(row_image__limit(image, now_ns) - 0.001) < 1e-9);
	/* a look at what is no longer called says nothing: it stays left out */
	row_attacher__govern(attacher, 0, now_ns + 1000000, NULL, NULL);
	assert_int_equal(probe->state, ROW_LEFT_OUT);
	/* another process leaves more, and one leaves less */
	row_attacher__limit(attacher, 11, 0.004, now_ns + 1000000);
	assert_true(row_image__limit(image, now_ns + 1000000) < 0.002);
	/* enough again, and then no limit for long */
	row_attacher__limit(attacher, 10, 0.006, now_ns + 1000000);
	assert_true(row_image__limit(image, now_ns + 1000000) > 0.005);
	assert_false(row_image__is_scarce(image, later_ns));
	probe->in_duty_cycle = true;
	row_attacher__govern(attacher, 0, later_ns, NULL, NULL);
	assert_int_equal(probe->state, ROW_OPEN);
	/* what users requested has its part in any case */
	add(attacher, image, ROW_USER, 300, 301, 1);
	row_attacher__limit(attacher, 10, 0.001, later_ns);
	assert_false(row_image__is_scarce(image, later_ns));
	end(attacher);
}

static void slow_links_have_one_function_each(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_PERF, &image);

	(void)state;
	add(attacher, image, ROW_USER, 100, 101, 1);
	add(attacher, image, ROW_USER, 200, 201, 1);
	assert_int_equal(attach(attacher, 10, false), 2);
	assert_int_not_equal(image->probes[0]->set, image->probes[1]->set);
	side.order[0] = '\0';
	row_image__close(attacher, image, image->probes[0]);
	assert_string_equal(side.order, "-0:100 -0:101 ");
	end(attacher);
}

/* Through two links, a shared exit would be hit twice: the fake kernel side refuses that. */

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(functions_called_about_equally_often_share_links),
	    cmocka_unit_test(each_mapper_has_links_of_all_open_sets),
	    cmocka_unit_test(links_for_all_replace_those_of_processes),
	    cmocka_unit_test(a_function_is_seen_entirely_or_not_at_all),
	    cmocka_unit_test(functions_rest_until_their_processes_are_seen),
	    cmocka_unit_test(expensive_functions_have_no_duty_cycle_while_the_budget_is_scarce),
	    cmocka_unit_test(functions_have_what_calls_leave),
	    cmocka_unit_test(slow_links_have_one_function_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

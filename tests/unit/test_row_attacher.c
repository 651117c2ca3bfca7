// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of functions with exit sites: sets by group and rate, closed and opened again, refused. */
#include "fake_kernel_side.h"
#include "base/clock.h"
#include "base/grow.h"
#include "probe/attach/row_attacher_private.h"

static const struct process_mapping mapping = {.device = 1, .inode = 2, .path = "libgomp.so"};
static const struct costs costs = {.entry_ns = 1000};

static struct row_attacher *begin(enum attach_mode mode, struct row_image **image)
{
	struct row_attacher *attacher;
	char err[64];

	fake__reset(mode);
	attacher = row_attacher__new(&side, &costs, 0, 1);
	assert_non_null(attacher);
	*image = calloc(1, sizeof(**image));
	(*image)->base.public.device = mapping.device;
	(*image)->base.public.inode = mapping.inode;
	(*image)->base.file = -1;
	assert_int_equal(attacher->base.policy->read(&attacher->base, &(*image)->base, err, sizeof(err)), 0);
	(*image)->read = 1U << ROW_USER | 1U << ROW_THREADS; /* as the confined reader would have */
	assert_false(grow(&attacher->base.images, &attacher->base.room, 1, sizeof(*attacher->base.images)));
	attacher->base.images[attacher->base.count++] = &(*image)->base;
	return attacher;
}

/* Adds a function that begins at an offset and ends at another. */
static struct row_probe *add(const struct row_attacher *attacher, struct row_image *image, enum row_group group,
			     uint64_t entry, uint64_t end, double calls_per_s)
{
	struct row_probe *probe = calloc(1, sizeof(*probe));

	assert_false(grow(&image->probes, &image->probe_room, image->probe_count + 1, sizeof(*image->probes)));
	probe->cpu = calloc(attacher->base.cpus, sizeof(*probe->cpu));
	probe->function.row = function_row_count + (unsigned int)image->probe_count;
	probe->function.name = strdup("function");
	probe->function.entry = entry;
	probe->function.site_count = 2;
	probe->function.sites = calloc(2, sizeof(*probe->function.sites));
	probe->function.sites[0].offset = entry;
	probe->function.sites[1].offset = end;
	probe->group = group;
	probe->state = ROW_FITTING;
	probe->calls_per_s = calls_per_s;
	image->probes[image->probe_count++] = probe;
	return probe;
}

static int attach(struct row_attacher *attacher, pid_t pid, bool alone)
{
	const struct process process = {.pid = pid};
	char err[256] = "";
	int status = row_attacher__attach(attacher, &process, &mapping, ROW_USER, NULL, 0, alone, err, sizeof(err));

	assert_int_equal(status >= 0, !err[0]);
	return status;
}

static void end(struct row_attacher *attacher)
{
	row_attacher__pause(attacher);
	assert_int_equal(side.count, 0);
	row_attacher__free(attacher);
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(functions_called_about_equally_often_share_links),
	    cmocka_unit_test(each_mapper_has_links_of_all_open_sets),
	    cmocka_unit_test(links_for_all_replace_those_of_processes),
	    cmocka_unit_test(a_function_is_seen_entirely_or_not_at_all),
	    cmocka_unit_test(functions_rest_until_their_processes_are_seen),
	    cmocka_unit_test(slow_links_have_one_function_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

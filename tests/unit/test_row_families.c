// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions that share exits are decided together; what exceeds the budget of its process has no duty cycle. */
#include <unistd.h>

#include "row_images.h"
#include "probe/attach/row_report.h"
#include "probe/attach/row_backoff.h"

static void functions_that_share_exits_are_opened_by_one_link(void **state)
{
	static const enum attach_mode modes[] = {ATTACH_MODE_SESSION, ATTACH_MODE_PERF};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct row_image *image;
		struct row_attacher *attacher = begin(modes[i], &image);
		struct row_probe *rare = add(attacher, image, ROW_USER, 100, 101, 0);
		struct row_probe *often = add(attacher, image, ROW_THREADS, 200, 101, 5000);
		struct row_probe *alone = add(attacher, image, ROW_USER, 300, 301, 0);
		struct row_probe *later;

		assert_int_equal(attach(attacher, 10, false), 2);
		assert_true(rare->set == often->set && alone->set != rare->set);
		/* one that is found later is opened together with them */
		later = add(attacher, image, ROW_USER, 400, 101, 0);
		side.order[0] = '\0';
		attach(attacher, 11, false);
		assert_true(later->state == ROW_OPEN && rare->set == later->set && often->set == later->set);
		assert_string_equal(side.order, "-0:100 -0:101 -0:200 +0:100 +0:101 +0:200 +0:400 ");
		end(attacher);
	}
}

static void families_are_joined_by_a_common_member(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, &image);
	struct row_probe *first = add(attacher, image, ROW_USER, 100, 101, 1);
	struct row_probe *like_first = add(attacher, image, ROW_USER, 200, 101, 1);
	struct row_probe *second = add(attacher, image, ROW_USER, 300, 301, 1);
	struct row_probe *like_second = add(attacher, image, ROW_USER, 400, 301, 1);
	struct row_probe *alone = add(attacher, image, ROW_USER, 500, 501, 1);
	struct row_probe *both = add(attacher, image, ROW_USER, 600, 101, 1);

	(void)state;
	assert_true(row_probe__same_family(first, like_first) && row_probe__same_family(second, like_second));
	assert_false(row_probe__same_family(first, second) || row_probe__same_family(first, alone));
	assert_true(row_probe__same_family(both, first));
	/* it ends in two functions */
	both->function.sites = realloc(both->function.sites, 3 * sizeof(*both->function.sites));
	both->function.sites[both->function.site_count++] = (struct row_site){.offset = 301};
	row_image__join_family(image, both);
	assert_true(row_probe__same_family(first, like_second) && row_probe__same_family(like_first, second));
	assert_false(alone->family);
	end(attacher);
}

static struct {
	enum row_decision_kind kind;
	size_t decisions, count;
	char functions[512];
	bool in_duty_cycle;
} seen;

static void note_decision(void *ctx, const struct row_decision *decision)
{
	(void)ctx;
	seen.kind = decision->kind;
	seen.decisions++;
	seen.count = decision->count;
	seen.in_duty_cycle = decision->in_duty_cycle;
	snprintf(seen.functions, sizeof(seen.functions), "%s", decision->functions);
}

static const char *symbol_of(const struct row_probe *probe)
{
	return functions__row(probe->function.row)->symbol;
}

#define FAMILY 5 /* functions that share an exit: the last is called, as often as that is hit */

static struct row_attacher *begin_family(struct row_image **image, double calls_per_s)
{
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, image);

	attacher->budget = 0.005;
	for (uint64_t i = 0; i < FAMILY; i++)
		add(attacher, *image, ROW_USER, 100 + 10 * i, 101, 0)->state = ROW_NEW;
	side.entries_per_s[(*image)->probes[FAMILY - 1]->function.row] = calls_per_s;
	side.exits_per_s[(*image)->probes[FAMILY - 1]->function.row] = calls_per_s;
	attach(attacher, 10, false);
	memset(&seen, 0, sizeof(seen));
	return attacher;
}

static void assert_states(const struct row_image *image, enum row_state state)
{
	for (size_t i = 0; i < FAMILY; i++)
		assert_int_equal(image->probes[i]->state, state);
}

/* Asserts that a family is left out in one decision, and why. */
static void assert_left_out_as_one(const struct row_image *image, bool in_duty_cycle)
{
	const struct row_probe *called = image->probes[FAMILY - 1];
	char expected[128];

	assert_states(image, ROW_LEFT_OUT);
	assert_true(seen.decisions == 1 && seen.kind == ROWS_LEFT_OUT && seen.count == FAMILY);
	assert_int_equal(seen.in_duty_cycle, in_duty_cycle);
	assert_ptr_equal(strstr(seen.functions, symbol_of(called)), seen.functions);
	assert_string_equal(strstr(seen.functions, " and "), " and 4 that share its exits");
	snprintf(expected, sizeof(expected), "shares exits with %s, which is too expensive%s", symbol_of(called),
		 in_duty_cycle ? " to stay open" : "");
	for (size_t i = 0; i < FAMILY - 1; i++) {
		assert_int_equal(image->probes[i]->backoff.until_ns, called->backoff.until_ns);
		assert_int_equal(image->probes[i]->in_duty_cycle, in_duty_cycle);
		assert_string_equal(image->probes[i]->left_out, expected);
	}
	assert_non_null(strstr(called->left_out, "calls/s would cost"));
}

static void a_family_has_one_duty_cycle(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin_family(&image, 5000); /* 1 % of the time, where 0.5 % are allowed */
	uint64_t until_ns;

	(void)state;
	row_attacher__govern(attacher, 0, mono_now(), note_decision, NULL);
	assert_states(image, ROW_OPEN);
	assert_int_equal(seen.decisions, 0);
	for (uint64_t i = 1; i < 100 && !seen.decisions; i++) {
		usleep(20000);
		row_attacher__govern(attacher, i << 32, mono_now(), note_decision, NULL);
	}
	assert_left_out_as_one(image, true);
	until_ns = image->probes[0]->backoff.until_ns;
	row_attacher__govern(attacher, 0, until_ns - 1, note_decision, NULL);
	assert_states(image, ROW_LEFT_OUT);
	row_attacher__govern(attacher, 0, until_ns, note_decision, NULL);
	assert_states(image, ROW_OPEN);
	assert_int_equal(seen.decisions, 1);
	end(attacher);
}

static void a_family_is_left_out_for_the_same_time(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin_family(&image, 100000); /* 20 % */
	struct row_probe *later;
	uint64_t until_ns;

	(void)state;
	image->probes[1]->backoff.level = 2; /* it was left out before */
	row_attacher__govern(attacher, 0, mono_now(), note_decision, NULL);
	assert_left_out_as_one(image, false);
	until_ns = image->probes[1]->backoff.until_ns;
	assert_true(until_ns > mono_now() + 150 * 1000000000ULL);
	/* one that is found meanwhile is left out with them, without a look */
	later = add(attacher, image, ROW_USER, 900, 101, 0);
	later->state = ROW_NEW;
	row_attacher__govern(attacher, 0, mono_now(), note_decision, NULL);
	assert_true(later->state == ROW_LEFT_OUT && later->backoff.until_ns == until_ns);
	assert_true(side.count == 0 && seen.decisions == 1);
	/* the program calls it less often now */
	side.entries_per_s[image->probes[FAMILY - 1]->function.row] = 0;
	side.exits_per_s[image->probes[FAMILY - 1]->function.row] = 1000;
	side.begin_ns = mono_now();
	row_attacher__govern(attacher, 0, until_ns, note_decision, NULL);
	assert_states(image, ROW_OPEN);
	assert_true(later->state == ROW_OPEN && seen.decisions == 2 && seen.kind == ROWS_OPENED);
	end(attacher);
}

static void what_a_process_overdraws_by_has_no_duty_cycle(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, &image);
	struct row_probe *probe = add(attacher, image, ROW_USER, 100, 101, 5000);
	uint64_t now_ns = mono_now();

	(void)state;
	attacher->budget = 0.005;
	assert_int_equal(attach(attacher, 10, false), 1);
	probe->share = probe->own_share = 0.02;
	image->account.mean = 0.004; /* the image's own account is in order */
	assert_true(row_attacher__close_costliest(attacher, 10, 0.012, 0.008, 1e6, now_ns, note_decision, NULL));
	assert_true(probe->state == ROW_LEFT_OUT && !probe->in_duty_cycle);
	assert_true(probe->backoff.until_ns >= now_ns + ROW_BACKOFF_FIRST_S * 1000000000ULL);
	/* nothing but the functions, and what the process waits for vaprod at first: they have what they can pay */
	image->scarce_until_ns = 0;
	probe->state = ROW_FITTING;
	assert_int_equal(row_image__open(attacher, image), 0);
	assert_true(row_attacher__close_costliest(attacher, 10, 0.012, 0, 1e6, now_ns, note_decision, NULL));
	assert_true(probe->state == ROW_LEFT_OUT && probe->in_duty_cycle);
	end(attacher);
}

static void exits_of_a_family_that_does_not_fit_are_not_counted(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher =
	    begin_family(&image, 15000); /* at least 3 %, by its entries and estimated exits */

	(void)state;
	attacher->budget = 0.003; /* ten times 0.24 % may open: each function that is not called would fit */
	side.exits_per_s[image->probes[FAMILY - 1]->function.row] = 0;
	row_attacher__govern(attacher, 0, mono_now(), note_decision, NULL);
	assert_states(image, ROW_LEFT_OUT);
	assert_null(strstr(side.order, ":101"));
	end(attacher);
}

/* What is open costs a shared exit once: the rest of the budget is for others. */
static void a_shared_exit_is_paid_once(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin_family(&image, 750); /* 0.15 % of 0.4 %; 0.45 % if each paid the exit */
	struct row_probe *other;

	(void)state;
	attacher->looked_ns = mono_now(); /* nothing is measured once it is open */
	row_attacher__govern(attacher, 0, mono_now(), note_decision, NULL);
	assert_states(image, ROW_OPEN);
	other = add(attacher, image, ROW_USER, 900, 901, 0);
	other->state = ROW_NEW;
	side.entries_per_s[other->function.row] = 200;
	row_attacher__govern(attacher, 0, mono_now(), note_decision, NULL);
	assert_int_equal(other->state, ROW_OPEN);
	assert_int_equal(seen.decisions, 0);
	end(attacher);
}

static void functions_that_are_not_called_are_counted_with_those_that_are(void **state)
{
	struct row_image *image;
	struct row_attacher *attacher = begin(ATTACH_MODE_SESSION, &image);
	struct row_picked picked;
	char text[1024], expected[1024], *end_of;

	(void)state;
	add(attacher, image, ROW_USER, 100, 101, 0)->share = 0.01;
	add(attacher, image, ROW_USER, 200, 101, 700)->share = 0.013;
	add(attacher, image, ROW_USER, 300, 301, 0)->share = 0.02;
	picked = (struct row_picked){image->probes, 2};
	row_report__name(&picked, text, sizeof(text));
	snprintf(expected, sizeof(expected), "%s (700 calls/s, 1.3 %%) and 1 that shares its exits",
		 symbol_of(image->probes[1]));
	assert_string_equal(text, expected);
	picked.count = 3;
	row_report__name(&picked, text, sizeof(text));
	snprintf(expected, sizeof(expected), "%s (700 calls/s, 1.3 %%), 1 more and 1 that shares its exits",
		 symbol_of(image->probes[1]));
	assert_string_equal(text, expected);
	/* what is called and ends like it is not probed */
	picked = (struct row_picked){image->probes + 2, 1};
	row_report__name(&picked, text, sizeof(text));
	snprintf(expected, sizeof(expected), "%s (not called, hits at its exits: 2 %%)", symbol_of(image->probes[2]));
	assert_string_equal(text, expected);
	for (uint64_t i = 0; i < 8; i++)
		add(attacher, image, ROW_USER, 400 + i, 101, 10);
	picked = (struct row_picked){image->probes, image->probe_count};
	row_report__name(&picked, text, sizeof(text));
	end_of = strrchr(text, ')');
	assert_string_equal(end_of, "), 4 more and 1 that shares their exits");
	end(attacher);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(functions_that_share_exits_are_opened_by_one_link),
	    cmocka_unit_test(families_are_joined_by_a_common_member),
	    cmocka_unit_test(a_family_has_one_duty_cycle),
	    cmocka_unit_test(a_family_is_left_out_for_the_same_time),
	    cmocka_unit_test(what_a_process_overdraws_by_has_no_duty_cycle),
	    cmocka_unit_test(exits_of_a_family_that_does_not_fit_are_not_counted),
	    cmocka_unit_test(a_shared_exit_is_paid_once),
	    cmocka_unit_test(functions_that_are_not_called_are_counted_with_those_that_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

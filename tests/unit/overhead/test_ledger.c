// SPDX-License-Identifier: GPL-2.0-or-later
/* What vaprod ran, by owner and by process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "overhead/ledger.h"
#include <vapro/bpf/abi.h>

#define MS 1000000ULL

static struct ledger ledger;
static struct ledger_entry entries[3];
static struct kernel_counters counters[3];
static uint64_t records[3];

/* Two processes of one owner, and one of another. */
static void begin(void)
{
	static const uid_t owners[] = {1, 1, 2};

	ledger = (struct ledger){.read_ns = 5 * MS};
	for (int i = 0; i < 3; i++) {
		records[i] = 1000;
		counters[i] = (struct kernel_counters){0};
		assert_int_equal(ledger__enter(&ledger, &entries[i], owners[i], &records[i], &counters[i]), 0);
	}
}

static void end(void)
{
	for (int i = 0; i < 3; i++)
		ledger__leave(&ledger, &entries[i]);
	assert_null(ledger.owners);
	assert_null(ledger.entries);
}

static void records_divide_time(void **state)
{
	(void)state;
	begin();
	records[0] += 599;
	records[1] += 299;
	records[2] += 99;
	ledger__by_records(&ledger, 15 * MS);
	assert_float_equal(entries[0].worked_ns, 6e6, 1);
	assert_float_equal(entries[1].worked_ns, 3e6, 1);
	assert_float_equal(entries[2].worked_ns, 1e6, 1);
	assert_float_equal(ledger__share(&ledger, entries[0].owner), 0.9, 1e-9);
	assert_float_equal(ledger__share(&ledger, entries[2].owner), 0.1, 1e-9);
	/* records count once */
	records[2] += 1;
	ledger__by_records(&ledger, 15 * MS + 4);
	assert_float_equal(entries[0].worked_ns, 6e6 + 1, 1e-3);
	assert_float_equal(entries[2].worked_ns, 1e6 + 2, 1e-3);
	end();
}

static void states_divide_a_window(void **state)
{
	(void)state;
	begin();
	counters[2].vertices = 800;
	counters[2].edges = 98;
	counters[0].edges = 99;
	ledger__by_records(&ledger, 5 * MS);
	/* entries that were given back since were analysed all the same */
	counters[2].vertices = counters[2].edges = 0;
	ledger__by_states(&ledger, 6 * MS);
	assert_float_equal(entries[0].worked_ns, 1e5, 1);
	assert_float_equal(entries[2].worked_ns, 8.99e5, 1);
	ledger__by_states(&ledger, 6 * MS + 102);
	assert_float_equal(entries[2].worked_ns, 8.99e5 + 1, 1);
	end();
}

static void attachment_is_its_owners(void **state)
{
	(void)state;
	begin();
	ledger__for(&ledger, 8 * MS, 2);
	assert_float_equal(ledger__share(&ledger, entries[2].owner), 1, 1e-9);
	ledger__for(&ledger, 9 * MS, 3); /* of no process */
	assert_float_equal(ledger__ran(&ledger), 4e6, 1);
	assert_float_equal(ledger__share(&ledger, entries[2].owner), 0.75, 1e-9);
	assert_float_equal(ledger__share(&ledger, entries[0].owner), 0, 1e-9);
	end();
}

static void waits_are_billed_to_the_cause(void **state)
{
	(void)state;
	begin();
	records[0] += 599;
	records[1] += 299;
	records[2] += 99;
	ledger__by_records(&ledger, 15 * MS);
	ledger__bill(&ledger, entries[2].owner, 5e6);
	assert_float_equal(ledger__due(&entries[0]), 3e6, 1);
	assert_float_equal(ledger__due(&entries[1]), 1.5e6, 1);
	assert_float_equal(ledger__due(&entries[2]), 0, 1e-9);
	/* no process is billed for more than what vaprod ran for that process */
	ledger__bill(&ledger, entries[2].owner, 100e6);
	assert_float_equal(ledger__due(&entries[0]), 6e6, 1);
	ledger__begin(&ledger);
	assert_float_equal(ledger__due(&entries[0]), 0, 1e-9);
	assert_float_equal(ledger__ran(&ledger), 0, 1e-9);
	assert_float_equal(ledger__share(&ledger, entries[0].owner), 1, 1e-9);
	end();
}

static void one_owner_has_all(void **state)
{
	(void)state;
	ledger = (struct ledger){0};
	ledger__by_records(&ledger, 7 * MS); /* no process yet */
	assert_int_equal(ledger__enter(&ledger, &entries[0], 1, NULL, &counters[0]), 0);
	ledger__by_records(&ledger, 9 * MS);
	assert_float_equal(ledger__share(&ledger, entries[0].owner), 1, 1e-9);
	ledger__leave(&ledger, &entries[0]);
	ledger__leave(&ledger, &entries[0]);
	assert_null(ledger.owners);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(records_divide_time),	cmocka_unit_test(states_divide_a_window),
	    cmocka_unit_test(attachment_is_its_owners), cmocka_unit_test(waits_are_billed_to_the_cause),
	    cmocka_unit_test(one_owner_has_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

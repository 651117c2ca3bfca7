// SPDX-License-Identifier: GPL-2.0-or-later
/* The exit codes of --fail-on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/exit_codes.h"
#include "report/outcome.h"

static void severities(void **state)
{
	struct outcome_limit limit = {.given = false};

	(void)state;
	assert_int_equal(outcome__parse("critical", &limit), 0);
	assert_true(limit.given && limit.least == VAPRO_CRITICAL);
	assert_int_equal(outcome__parse("alarm", &limit), 0);
	assert_int_equal(limit.least, VAPRO_INFO);
	assert_int_equal(outcome__parse("Critical", &limit), -EINVAL);
}

static void codes(void **state)
{
	static const struct {
		struct outcome outcome;
		int code[VAPRO_SEVERITIES]; /* with the limits info, warning, critical */
	} diagnoses[] = {
	    {{{1, 0, 0}, 10, 5}, {EXIT_ALARM, EXIT_OK, EXIT_OK}},
	    {{{0, 2, 0}, 10, 5}, {EXIT_ALARM, EXIT_ALARM, EXIT_OK}},
	    {{{0, 0, 1}, 10, 0}, {EXIT_ALARM, EXIT_ALARM, EXIT_ALARM}}, /* of time that the kernel attributes */
	    {{{0, 0, 0}, 10, 5}, {EXIT_OK, EXIT_OK, EXIT_OK}},
	    {{{0, 0, 0}, 10, 0}, {EXIT_NOTHING_JUDGED, EXIT_NOTHING_JUDGED, EXIT_NOTHING_JUDGED}},
	    {{{0, 0, 0}, 0, 0}, {EXIT_NOTHING_WATCHED, EXIT_NOTHING_WATCHED, EXIT_NOTHING_WATCHED}},
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		struct outcome_limit limit = {.given = false};

		assert_int_equal(outcome__code(&diagnoses[i].outcome, &limit, text, sizeof(text)), EXIT_OK);
		for (int least = 0; least < VAPRO_SEVERITIES; least++) {
			limit = (struct outcome_limit){.given = true, .least = (enum vapro_severity)least};
			text[0] = '\0';
			assert_int_equal(outcome__code(&diagnoses[i].outcome, &limit, text, sizeof(text)),
					 diagnoses[i].code[least]);
			assert_int_equal(strlen(text) > 0, diagnoses[i].code[least] != EXIT_OK);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(severities), cmocka_unit_test(codes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

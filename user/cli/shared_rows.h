/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that several commands have: --fail-on, of a struct outcome_limit; --run and --rank, of an int; --since and
 * --until. */
#ifndef VAPRO_SHARED_ROWS_H
#define VAPRO_SHARED_ROWS_H

#include <stdint.h>

#include "config/option.h"
#include "query/region_option.h"
#include "report/outcome.h"
#include "report/run_option.h"

int shared_rows__read_fail_on(void *member, const char *value, char *why, size_t why_size);
bool shared_rows__write_fail_on(const void *member, size_t n, char *text, size_t size);
int shared_rows__read_run(void *member, const char *value, char *why, size_t why_size);

/* clang-format off */
#define FAIL_ON_ROW(structure, member)                                                                                 \
	{.type = OPTION_CUSTOM, OPTION_AT(structure, member), .name = "fail-on", .value = OUTCOME_SEVERITIES,          \
	 .noun = "severity", .expected = OUTCOME_EXPECTED, .read = shared_rows__read_fail_on, .write = shared_rows__write_fail_on, \
	 .help = OUTCOME_HELP}
#define RUN_ROW(structure, member, of)                                                                                 \
	{.type = OPTION_CUSTOM, OPTION_AT(structure, member), .name = "run", .value = "N", .noun = "run",              \
	 .expected = RUN_OPTION_RANGE, .read = shared_rows__read_run,                                                  \
	 .help = of " several runs: 1 = the first, -1 = the last (-1)"}
#define RANK_ROW(structure, member, rank_help)                                                                         \
	{.type = OPTION_INT, OPTION_AT(structure, member), .name = "rank", .letter = 'r', .noun = "rank",              \
	 .expected = "0 or more", .max = INT32_MAX, .help = rank_help}

/* Of a struct time_option. */
#define SINCE_ROW(structure, member, since_help)                                                                       \
	{.type = OPTION_STRING, OPTION_AT(structure, member.since), .name = "since", .letter = 'S', .value = "TIME",   \
	 .help = since_help}
#define UNTIL_ROW(structure, member)                                                                                   \
	{.type = OPTION_STRING, OPTION_AT(structure, member.until), .name = "until", .letter = 'U', .value = "TIME",   \
	 .help = UNTIL_HELP}
/* clang-format on */

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A board with the jobs of two users, for tests of what is shown live. */
#ifndef VAPRO_TESTS_BOARDED_H
#define VAPRO_TESTS_BOARDED_H

#include <stdlib.h>
#include <string.h>

#include "report/board.h"
#include "report/window_json.h"
#include "sample.h"

#define BOARDED_USER 1001  /* as in struct vapro_thread: uid 1000 */
#define BOARDED_OTHER 2001 /* uid 2000 */
#define BOARDED_PROCESSES 5

static inline int boarded__line(void *board, enum record_object type, const char *line)
{
	board__line(board, type, line);
	return 0;
}

static inline void boarded__window(struct board *board, const struct job_result *result)
{
	const struct json_context context = {.host = "n1", .daemon_cpu_pct = 0.5, .io_traced_pct = 0, .io_tax_pct = 0};

	board__begin(board, result);
	window_json__put(result, &context, boarded__line, board);
}

/* A window of each user's job; that of the other user is named secret and has the sample's regions under other ids. */
static inline struct board *boarded__new(board_shows shows)
{
	static struct result_variance others[3];
	struct board *board = board__new(shows, NULL);
	struct job_result result;

	sample__fill(&result);
	result.user = BOARDED_USER;
	boarded__window(board, &result);
	result.job = "secret:9.0";
	result.user = BOARDED_OTHER;
	for (int i = 0; i < 3; i++) {
		others[i] = result.variances[i];
		others[i].id += 100;
		others[i].effect_of += others[i].effect_of ? 100 : 0;
		others[i].who = "the secret ranks";
	}
	result.variances = others;
	boarded__window(board, &result);
	board__end(board, result.end_ns);
	return board;
}

/* Processes of both users; those of the other user have pids from 7000 on. */
static inline const struct board_process *boarded__processes(void)
{
	static struct board_process processes[BOARDED_PROCESSES];

	for (uint32_t i = 0; i < 4; i++)
		processes[i] = (struct board_process){.pid = 1000 + i,
						      .user = BOARDED_USER,
						      .rank = (int32_t)i,
						      .world_size = 8,
						      .job = "slurm:1234.0",
						      .exe = "/home/you/solver",
						      .calls_per_s = 100.0 * (i + 1),
						      .overhead_pct = i ? 0.5 * i : NAN,
						      .probes = i == 3 ? BOARD_CLOSED : BOARD_OPEN};
	processes[4] = (struct board_process){.pid = 7001,
					      .user = BOARDED_OTHER,
					      .rank = -1,
					      .job = "secret:9.0",
					      .exe = "/home/other/hidden",
					      .calls_per_s = 1,
					      .overhead_pct = 0.1};
	return processes;
}

/* Writes the board for a reader. malloc'ed. */
static inline char *boarded__read(const struct board *board, const struct board_reader *reader, size_t *size)
{
	const struct board_facts facts = {.host = "n1",
					  .version = "0.1.0",
					  .pid = 42,
					  .utc_ns = SAMPLE_UTC + 17000000000ULL,
					  .begin_ns = SAMPLE_UTC,
					  .window_s = 15,
					  .daemon_cpu_pct = 0.5};
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (!out || board__write(board, &facts, boarded__processes(), BOARDED_PROCESSES, reader, out))
		abort();
	fclose(out);
	return text;
}

/* Writes the present for a user. malloc'ed. */
static inline char *boarded__write(const struct board *board, uint32_t user, bool all, size_t *size)
{
	const struct board_reader reader = {.user = user, .all = all};

	return boarded__read(board, &reader, size);
}

#endif

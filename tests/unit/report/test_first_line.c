// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first line of a run: the worst alarm, whatever share of the time could be compared; that is the second sentence.
 * "no result" stands only where nothing was found and nothing could be compared, with the reason that applies; that a
 * longer run would help is said only where it would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>
#include <cmocka.h>

#include "report/obstacles.h"
#include "report/summary.h"

#define HEAD(type) "{\"schema\":\"vapro/1\",\"time\":\"2027-01-15T08:00:15Z\",\"host\":\"n1\",\"type\":\"" type "\","
#define PROCESS(pid, rank, state, reason)                                                                              \
	HEAD("process")                                                                                                \
	"\"pid\":" pid ",\"rank\":" rank ",\"exe\":\"/opt/app\",\"job\":{\"identity\":\"j\",\"uid\":1000},"            \
	"\"state\":\"" state "\",\"reason\":" reason "}\n"
#define ATTACHED PROCESS("7", "0", "attached", "null")
#define WARNING(code, pid, text)                                                                                       \
	HEAD("warning") "\"code\":\"" code "\",\"pid\":" pid ",\"text\":\"process " pid " (/opt/app)" text "\"}\n"
/* A window of two ranks and 40 s, of which a share was compared; the reason for the rest. */
#define WINDOW(covered, pct, reason)                                                                                   \
	HEAD("window")                                                                                                 \
	"\"job\":\"j\",\"uid\":1000,\"begin\":\"2027-01-15T08:00:00Z\",\"end\":\"2027-01-15T08:00:40Z\","              \
	"\"ranks\":\"0-1\",\"world_size\":2,\"coverage\":{\"computation\":" covered ",\"total\":" covered "},"         \
	"\"performance\":{\"computation\":1},\"uncovered\":[{\"time_pct_of_job\":" pct ",\"reason\":\"" reason         \
	"\"}]}\n"
/* An alarm that the kernel's account proves: a stop of 1 s. */
#define STOP(severity, alarm, confidence)                                                                              \
	HEAD("variance")                                                                                               \
	"\"job\":\"j\",\"uid\":1000,\"id\":1,\"state\":\"closed\",\"class\":\"computation\",\"ranks\":\"1\","          \
	"\"begin\":\"2027-01-15T08:00:20Z\",\"end\":\"2027-01-15T08:00:21Z\",\"lost_seconds\":1,"                      \
	"\"severity\":\"" severity "\",\"alarm\":" alarm ",\"confidence\":\"" confidence "\","                         \
	"\"causes\":[{\"cause\":\"stopped\",\"ranks\":\"1\",\"lost_seconds\":1,"                                       \
	"\"begin\":\"2027-01-15T08:00:20Z\",\"end\":\"2027-01-15T08:00:21Z\"}]}\n"

/* No rank makes progress. */
#define HANG(alarm, severity, text)                                                                                    \
	HEAD("hang")                                                                                                   \
	"\"job\":\"j\",\"uid\":1000,\"id\":4,\"state\":\"open\",\"alarm\":" alarm ",\"severity\":\"" severity          \
	"\",\"text\":\"" text "\"}\n"

static const struct {
	const char *what, *records;
	const char *first;    /* the first line begins so */
	const char *has[3];   /* of the whole text */
	const char *lacks[2]; /* NULL: no more of them */
} situations[] = {
    {"an alarm in a job of which nothing was compared: governed",
     ATTACHED WINDOW("0.004", "98", "governed") STOP("critical", "true", "confirmed"),
     "warning: stopped (signal or tracer): rank 1, from 20.0 to 21.0 s: 1.00 s lost, 1.25 % of the job\n"
     "only 0.4 % of the time of app (j, ",
     {"of the rest, only what the kernel attributes is judged. 98 % of it: probes were closed to keep the overhead "
      "down"},
     {"no result"}},
    {"a loss that is not sure, in a job of which nothing was compared",
     ATTACHED WINDOW("0", "90", "few_fragments") STOP("info", "false", "unconfirmed"),
     "unconfirmed: stopped (signal or tracer): rank 1, from 20.0 to 21.0 s: 1.00 s lost",
     {"only 0.0 % of the time"},
     {"no result"}},
    {"nothing found, little compared",
     ATTACHED WINDOW("0.05", "95", "spread"),
     "no slow region found in the 5.0 % of the ranks' time that could be compared\nonly 5.0 % of the time of app (j",
     {"What would help: hardware counters, or --workload"},
     {"no result", "longer run"}},
    {"hung: an unanswered receive, of which the calls were seen, in a job of which nothing was compared",
     ATTACHED WINDOW("0", "100", "not_seen")
	 HANG("true", "critical", "hang: no rank has made progress: rank 1 is in x"),
     "critical: hang: no rank has made progress: rank 1 is in x\nonly 0.0 % of the time of app (j, ",
     {NULL},
     {"no result", "longer run"}},
    {"hung, after an alarm, in a job that was compared",
     ATTACHED WINDOW("0.9", "10", "rare") STOP("critical", "true", "confirmed")
	 HANG("true", "critical", "hang: no rank has made progress"),
     "critical: hang: no rank has made progress\nwarning: stopped (signal or tracer): rank 1, from 20.0 to 21.0 s: "
     "1.00 s lost",
     {NULL},
     {"no result", "could be compared"}},
    {"hung, where all else was well",
     ATTACHED WINDOW("0.9", "10", "rare") HANG("true", "critical", "hang: no rank has made progress"),
     "critical: hang: no rank has made progress\n",
     {NULL},
     {"no result", "no slow region found"}},
    {"waiting for input, in a job of which nothing was compared",
     ATTACHED WINDOW("0", "90", "few_fragments") HANG("false", "info", "waiting for input: no rank has made progress"),
     "no result: 0.0 % of the time of app (j, ",
     {"\nnote: waiting for input: no rank has made progress\n"},
     {"info:"}},
    {"hung: an unanswered receive",
     ATTACHED WINDOW("0", "100", "not_seen")
	 WARNING("no_calls", "7",
		 ": no call was seen in the 10 s since it was attached; its main thread sleeps in read of /tmp/fifo"),
     "no result: 0.0 % of the time of app (j, ",
     {"could be compared. Process 7 (/opt/app): no call was seen in the 10 s since it was attached; its main thread "
      "sleeps in read of /tmp/fifo. What would help: to find out what it waits for"},
     {"longer run"}},
    {"stopped before it was attached",
     ATTACHED WINDOW("0", "100", "not_seen")
	 WARNING("no_calls", "7", ": no call was seen in the 10 s; its main thread is stopped in clock_nanosleep"),
     "no result: ",
     {"its main thread is stopped in clock_nanosleep."},
     {"longer run"}},
    {"traced: refused, and nothing else watched",
     PROCESS("7", "0", "refused", "\"a debugger or tracer is attached to it (ptrace)\""),
     "no result: nothing could be compared. Process 7 (/opt/app) is not watched: a debugger or tracer is attached to "
     "it",
     {NULL},
     {"longer run", "no MPI"}},
    {"two ranks refused",
     PROCESS("7", "0", "refused", "\"VAPRO=off in its environment\"")
	 PROCESS("8", "1", "refused", "\"VAPRO=off in its environment\""),
     "no result: nothing could be compared. Process 7 (/opt/app) is not watched: VAPRO=off in its environment; and 1 "
     "more process.\n",
     {NULL},
     {"longer run"}},
    {"a tracer that came later, in a job of which nothing was compared",
     ATTACHED WARNING("traced", "7", ": a debugger or tracer is attached to it, gdb (pid 9)")
	 WINDOW("0", "70", "few_fragments"),
     "no result: ",
     {"is attached to it, gdb (pid 9). What would help: a run without the debugger or tracer."},
     {"longer run"}},
    {"no MPI library mapped",
     PROCESS("7", "null", "attached", "\"it maps no MPI library: only its IO is seen\"") WINDOW("0", "100", "not_seen"),
     "no result: ",
     {"Process 7 (/opt/app): it maps no MPI library: only its IO is seen. What would help: --function NAME"},
     {"longer run"}},
    {"a rank in which no MPI was found, watched for its threads",
     PROCESS("7", "3", "attached", "\"it maps no MPI library: only its IO is seen\"") WARNING(
	 "rank_without_mpi", "7", " has rank 3 in its environment, and no MPI library was found in it: only its IO")
	 WINDOW("0", "100", "not_seen"),
     "no result: ",
     {"Process 7 (/opt/app) has rank 3 in its environment, and no MPI library was found in it: only its IO",
      "What would help: --exe NAME, which watches a process without MPI"},
     {"longer run"}},
    {"a rank in which no MPI was found, and nothing watched",
     WARNING("rank_without_mpi", "8",
	     " has rank 0 in its environment, and no MPI library was found in it: it is not "
	     "watched"),
     "no result: nothing could be compared. Process 8 (/opt/app) has rank 0 in its environment",
     {NULL},
     {"longer run"}},
    {"an MPI library whose code was moved into huge pages",
     PROCESS("7", "0", "attached", "\"the code of its MPI library lies in memory of its own\"") WARNING(
	 "code_moved", "7",
	 ": the code of its MPI library /opt/libmpi.so lies in memory of its own, as tools for huge pages move it")
	 WINDOW("0", "100", "not_seen"),
     "no result: ",
     {"Process 7 (/opt/app): the code of its MPI library /opt/libmpi.so lies in memory of its own",
      "What would help: a run without huge pages for the code"},
     {"longer run", "--function"}},
    {"frozen before it was attached",
     ATTACHED WINDOW("0", "100", "not_seen")
	 WARNING("no_calls", "7", ": no call was seen in the 10 s; its main thread is frozen by its cgroup"),
     "no result: ",
     {"its main thread is frozen by its cgroup."},
     {"longer run"}},
    {"translated",
     WARNING("translator", "8", " is a binary translator (Valgrind) and would be killed by a probe"),
     "no result: nothing could be compared. Process 8 (/opt/app) is a binary translator (Valgrind)",
     {"What would help: the program without its translator."},
     {"longer run"}},
    {"too short",
     ATTACHED WINDOW("0", "90", "few_fragments"),
     "no result: 0.0 % of the time of app (j, ",
     {"90 % of it: seen too few times to know its usual speed. What would help: a longer run."},
     {NULL}},
    {"over before a window ended",
     ATTACHED,
     "no result: what was found ended before anything could be compared; a "
     "longer run would help\n",
     {NULL},
     {NULL}},
    {"long, with hardly any call",
     ATTACHED WINDOW("0", "100", "not_seen"),
     "no result: ",
     {"What would help: --function NAME, which watches functions of a program that rarely calls MPI."},
     {"longer run"}},
    {"children of a rank, which have its environment, are refused as a matter of course",
     PROCESS("9", "0", "refused", "\"it is the child of a rank and inherited its environment\"") ATTACHED PROCESS(
	 "10", "0", "refused", "\"rank 0 of its job is process 7: this one inherited its environment\"")
	 WINDOW("0", "90", "few_fragments"),
     "no result: ",
     {"seen too few times"},
     {"inherited"}},
    {"a process that was refused, and attached later",
     PROCESS("7", "0", "refused", "\"a debugger or tracer is attached to it (ptrace)\"")
	 ATTACHED WINDOW("0.9", "10", "rare"),
     "no slow region found in the 90.0 % of the ranks' time that could be compared\n",
     {NULL},
     {"ptrace"}},
};

/* Returns the summary of these records, to be freed. */
static char *summarize(const char *records)
{
	struct summary *summary = summary__new();
	char *text = NULL;
	size_t size;
	FILE *out;

	assert_non_null(summary);
	while (*records) {
		const char *why = "", *end = strchr(records, '\n');
		cJSON *record = cJSON_ParseWithLength(records, (size_t)(end - records));

		assert_non_null(record);
		assert_int_equal(summary__add_record(summary, record, &why), 0);
		cJSON_Delete(record);
		records = end + 1;
	}
	out = open_memstream(&text, &size);
	assert_non_null(out);
	summary__print(summary, out, &(struct summary_options){.width = 1000});
	fclose(out);
	summary__free(summary);
	return text;
}

static void test_situations(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(situations) / sizeof(*situations); i++) {
		char *text = summarize(situations[i].records);

		if (strncmp(text, situations[i].first, strlen(situations[i].first)))
			fail_msg("%s: begins with:\n%s", situations[i].what, text);
		for (int k = 0; k < 3 && situations[i].has[k]; k++)
			if (!strstr(text, situations[i].has[k]))
				fail_msg("%s: '%s' is not in:\n%s", situations[i].what, situations[i].has[k], text);
		for (int k = 0; k < 2 && situations[i].lacks[k]; k++)
			if (strstr(text, situations[i].lacks[k]))
				fail_msg("%s: '%s' is in:\n%s", situations[i].what, situations[i].lacks[k], text);
		free(text);
	}
}

/* What keeps some processes of a job from being seen is listed below its results as well. */
static void test_listed(void **state)
{
	char *text = summarize(ATTACHED WARNING("no_calls", "7", ": no call was seen") WINDOW("0.9", "5", "rare"));

	(void)state;
	assert_non_null(strstr(text, "\n!!! process 7 (/opt/app): no call was seen\n"));
	free(text);
}

/* Of 12 jobs of which nothing was compared five say why, and how many there are. */
static void test_many_jobs(void **state)
{
	char records[8000] = "", *text;
	size_t count = 0;

	(void)state;
	for (int job = 0; job < 12; job++) {
		size_t used = strlen(records);

		snprintf(
		    records + used, sizeof(records) - used,
		    HEAD("window") "\"job\":\"j%d\",\"uid\":1000,\"begin\":\"2027-01-15T08:00:00Z\","
				   "\"end\":\"2027-01-15T08:00:40Z\",\"ranks\":\"0-1\",\"world_size\":2,"
				   "\"coverage\":{\"computation\":0,\"total\":0},\"performance\":{\"computation\":1},"
				   "\"uncovered\":[{\"time_pct_of_job\":100,\"reason\":\"governed\"}]}\n",
		    job);
	}
	text = summarize(records);
	for (const char *at = text; (at = strstr(at, "no result: ")); at++)
		count++;
	assert_int_equal(count, 5);
	assert_non_null(strstr(text, "\nand 7 further jobs of which nothing could be compared\n"));
	free(text);
}

static void test_bounds(void **state)
{
	struct obstacles *obstacles = obstacles__new();
	enum obstacle_kind kind;
	size_t count;

	(void)state;
	assert_non_null(obstacles);
	for (uint32_t i = 0; i < OBSTACLES_MOST + 10; i++)
		assert_int_equal(obstacles__add(obstacles, OBSTACLE_NO_CALLS, "j\033", 1, i + 1, -1, "a\033b"), 0);
	assert_int_equal(obstacles__count(obstacles), OBSTACLES_MOST + 10);
	assert_null(obstacles__text(obstacles, OBSTACLES_MOST));
	assert_string_equal(obstacles__first(obstacles, NULL, 0, &kind, &count), "a?b");
	assert_int_equal(count, OBSTACLES_MOST);
	assert_int_equal(kind, OBSTACLE_NO_CALLS);
	assert_null(obstacles__first(obstacles, "other", 1, &kind, &count));
	/* the same process again is no further one */
	assert_int_equal(obstacles__add(obstacles, OBSTACLE_NO_CALLS, "j", 1, 1, -1, "again"), 0);
	assert_int_equal(obstacles__count(obstacles), OBSTACLES_MOST + 10);
	obstacles__free(obstacles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_situations),
	    cmocka_unit_test(test_listed),
	    cmocka_unit_test(test_many_jobs),
	    cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Situations that people reported of other tools and programs, in which a text may send them to the wrong place: each
 * names what is wrong, and not what merely looks like it. What keeps a process from being seen at all is in
 * test_first_line.c; libraries in front of MPI, whose text is a call-site, are in test_passes_on.c.
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

#include "diagnose/advice.h"
#include "diagnose/interferers.h"
#include "diagnose/verdict.h"
#include "report/summary.h"

#define PARTS 3

/* A loss with one cause, which took `parent` or is a part of it. */
struct loss {
	const char *factor, *parent;
	enum vapro_class class;
	const char *labels; /* of the call where most was lost; NULL: computation */
	struct result_interferer task;
	struct result_shared shared; /* fact NULL: slow ranks share nothing */
	struct cpu_demand oversubscribed;
	const char *host; /* of a slow path; NULL: it is none */
	bool waiting;
};

static const struct {
	const char *what;
	struct loss loss;
	const char *has[PARTS], *lacks[PARTS]; /* of verdict and advice together */
} losses[] = {
    {"memory runs out on one host, whose other ranks are slow, too",
     {.factor = "reclaim", .parent = "kernel", .shared = {"host", "n1", 1, NULL}},
     {"begin with host n1, where nearly every rank was slow"},
     {"hardly any other rank"}},
    {"a node swaps: ranks sleep in IO inside computation",
     {.factor = "blocked_io", .parent = "suspension"},
     {"look at memory pressure, swap"},
     {"file system", "who else used it"}},
    {"a file system stops under a write",
     {.factor = "blocked_other",
      .parent = "suspension",
      .class = VAPRO_IO,
      .labels = "function=pwrite size=65536 fd_kind=file file=2"},
     {"asleep in pwrite", "look at the file system of that file"},
     {"a lock", "slow server", "preempted"}},
    {"two jobs were bound to one CPU",
     {.factor = "preempted",
      .parent = "suspension",
      .task = {.comm = "app", .pid = 9934, .seconds = 4, .relation = VAPRO_OTHER_JOB, .job = "slurm:7", .rank = 0}},
     {"app (pid 9934, rank 0 of job slurm:7) ran 4.0 s", "both jobs are allowed that CPU; give each CPUs of its own"},
     {"move or stop"}},
    {"a rank waits for a child of its own",
     {.factor = "blocked_other", .parent = "suspension"},
     {"asleep", "a child process"},
     {"file system"}},
    {"the launcher forwards what a rank prints",
     {.factor = "preempted",
      .parent = "suspension",
      .task = {.comm = "mpirun", .pid = 7, .seconds = 4, .relation = VAPRO_FOREIGN}},
     {"it forwards what the ranks print; have them print less or write to files"},
     {"move or stop"}},
    {"more threads than CPUs",
     {.factor = "preempted",
      .parent = "suspension",
      .task = {.comm = "omp", .pid = 7, .seconds = 4, .relation = VAPRO_OWN_THREAD},
      .oversubscribed = {.threads = 8, .cpus = 2}},
     {"8.0 runnable threads share 2 CPUs", "8.0 of its threads are runnable on 2 CPUs. Start fewer ranks or threads"},
     {"although there are enough", "bind each rank"}},
    {"the link of one host is slow",
     {.factor = "on_cpu", .class = VAPRO_COMMUNICATION, .host = "n2", .waiting = true},
     {"on host n2", "look at the network adapter, cable and switch port of host n2"},
     {"what their hosts share"}},
};

static void write_texts(const struct loss *loss, char *text, size_t size)
{
	static const int32_t ranks[] = {1};
	struct vapro_state at = {.class = loss->class, .labels = loss->labels};
	struct result_site site = {.state = &at, .lost_seconds = 4};
	struct result_factor factors[] = {
	    {.name = loss->parent ? loss->parent : loss->factor,
	     .stage = 1,
	     .contribution = 1,
	     .impact_seconds = 4,
	     .duration_seconds = 4,
	     .major = true},
	    {.name = loss->factor,
	     .stage = 2,
	     .parent = loss->parent,
	     .contribution = 1,
	     .impact_seconds = 4,
	     .duration_seconds = 4,
	     .major = true},
	};
	struct result_variance variance = {
	    .id = 1,
	    .class = loss->class,
	    .who = "rank 1",
	    .ranks = ranks,
	    .rank_count = 1,
	    .performance = 0.5,
	    .lost_seconds = 4,
	    .confidence = VAPRO_CONFIRMED,
	    .confirmed = true,
	    .slow_path = loss->host != NULL,
	    .sites = &site,
	    .site_count = loss->labels ? 1 : 0,
	    .diagnosis = {.stage = 1,
			  .final = true,
			  .abnormal = 10,
			  .rows = 1,
			  .factors = factors,
			  .factor_count = loss->parent ? 2 : 1,
			  .interferers = &loss->task,
			  .interferer_count = loss->task.pid ? 1 : 0,
			  .interfered = loss->task.seconds,
			  .interfered_own = interferers__is_foreign(&loss->task) || loss->task.relation == VAPRO_MONITOR
						? 0
						: loss->task.seconds,
			  .shared = &loss->shared,
			  .shared_count = loss->shared.fact ? 1 : 0,
			  .oversubscribed = loss->oversubscribed,
			  .host = loss->host},
	};

	verdict__write(&variance, loss->waiting, loss->waiting, text, size / 2);
	advice__write(&variance, loss->waiting, loss->waiting, text + strlen(text), size / 2);
}

static void assert_text(const char *what, const char *text, const char *const *has, const char *const *lacks)
{
	for (size_t i = 0; i < PARTS && has[i]; i++)
		if (!strstr(text, has[i]))
			fail_msg("%s: '%s' is not in: %s", what, has[i], text);
	for (size_t i = 0; i < PARTS && lacks[i]; i++)
		if (strstr(text, lacks[i]))
			fail_msg("%s: '%s' is in: %s", what, lacks[i], text);
}

static void test_losses(void **state)
{
	char text[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
		write_texts(&losses[i].loss, text, sizeof(text));
		assert_text(losses[i].what, text, losses[i].has, losses[i].lacks);
	}
}

static void add(struct summary *summary, const char *line)
{
	cJSON *record = cJSON_Parse(line);
	const char *why = "";

	assert_non_null(record);
	assert_int_equal(summary__add_record(summary, record, &why), 0);
	cJSON_Delete(record);
}

#define HEAD "{\"schema\":\"vapro/1\",\"time\":\"2027-01-15T08:00:15Z\",\"host\":\"n1\",\"type\":"

/* A program of a padded path is called by its name. */
static void test_long_path(void **state)
{
	static const char *const
	    has[PARTS] = {"\nsolver (j, "},
	    *lacks[PARTS] = {
		"placeholder__/__spack_path_placeholder__/__spack_path_placeholder__/__spack_path_placeholder__"};
	char exe[1100] = "/opt/spack", line[2048], *text = NULL;
	struct summary *summary = summary__new();
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(summary);
	assert_non_null(out);
	while (strlen(exe) < 1000)
		strcat(exe, "/__spack_path_placeholder__");
	strcat(exe, "/bin/solver");
	snprintf(line, sizeof(line),
		 HEAD "\"process\",\"pid\":7,\"rank\":0,\"exe\":\"%s\",\"job\":{\"identity\":\"j\",\"uid\":1000},"
		      "\"state\":\"attached\",\"reason\":null}",
		 exe);
	add(summary, line);
	add(summary, HEAD "\"window\",\"job\":\"j\",\"uid\":1000,\"begin\":\"2027-01-15T08:00:00Z\","
			  "\"end\":\"2027-01-15T08:00:40Z\",\"ranks\":\"0\",\"world_size\":1,"
			  "\"coverage\":{\"computation\":0.9,\"total\":0.9},\"performance\":{\"computation\":1},"
			  "\"uncovered\":[]}");
	summary__print(summary, out, &(struct summary_options){.width = 1000});
	fclose(out);
	summary__free(summary);
	assert_text("a padded path", text, has, lacks);
	assert_null(strstr(text, exe));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_losses),
	    cmocka_unit_test(test_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

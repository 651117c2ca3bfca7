/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vapro analyze: the memory cap that its input gets, with a pipeline that only has a cap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/commands.h"
#include "pipeline/pipeline.h"

static uint64_t cap;

static int take(struct stream_sink *to, const struct stream_event *event)
{
	(void)to;
	(void)event;
	return 0;
}

static struct stream_sink sink = {.put = take};

struct pipeline *pipeline__new(const struct vapro_config *config, enum vapro_workload_source source, const char *host,
			       struct line_sink *lines, struct summary *summary)
{
	(void)source;
	(void)host;
	(void)lines;
	(void)summary;
	cap = config->memory_cap;
	return (struct pipeline *)&sink;
}

struct stream_sink *pipeline__sink(struct pipeline *pipeline)
{
	(void)pipeline;
	return &sink;
}

int pipeline__close(struct pipeline *pipeline)
{
	(void)pipeline;
	return 0;
}

int pipeline__name_events(struct pipeline *pipeline, const char *const names[RULES_NAMED])
{
	(void)pipeline;
	(void)names;
	return 0;
}

int pipeline__select(struct pipeline *pipeline, const struct vapro_selection *selection)
{
	(void)pipeline;
	(void)selection;
	return 0;
}

static const char *unanswered;

void pipeline__outcome(const struct pipeline *pipeline, struct outcome *outcome, uint64_t *selections)
{
	(void)pipeline;
	*outcome = (struct outcome){.rank_seconds = 1};
	*selections = unanswered ? 0 : 1;
}

const char *pipeline__unanswered(const struct pipeline *pipeline)
{
	(void)pipeline;
	return unanswered;
}

void pipeline__held_elsewhere(struct pipeline *pipeline, size_t bytes)
{
	(void)pipeline;
	(void)bytes;
}

const char *pipeline__host(const struct pipeline *pipeline)
{
	(void)pipeline;
	return NULL;
}

void pipeline__totals(const struct pipeline *pipeline, struct line_totals *totals)
{
	(void)pipeline;
	*totals = (struct line_totals){.windows = 1};
}

/* Runs `vapro analyze` on one line for each host; returns its standard error. */
static char *run(const char *const *hosts, const char *option)
{
	static char text[4096];
	char path[64], err[64];
	char *argv[] = {"analyze", "--format", "ndjson", "--output", "/dev/null", path, (char *)option, NULL};
	FILE *file;
	size_t size;
	int saved;

	snprintf(path, sizeof(path), "/tmp/vapro-test-analyze-%d", getpid());
	snprintf(err, sizeof(err), "%s.err", path);
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; hosts[i]; i++)
		fprintf(file,
			"{\"rank\":%d,\"class\":\"computation\",\"from\":\"a\",\"to\":\"b\",\"start_ns\":1000,"
			"\"duration_ns\":5%s%s%s}\n",
			i, *hosts[i] ? ",\"host\":\"" : "", hosts[i], *hosts[i] ? "\"" : "");
	fclose(file);
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	assert_non_null(freopen(err, "w", stderr));
	assert_int_equal(analyze_command.main(option ? 7 : 6, argv), unanswered ? 1 : 0);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	file = fopen(err, "r");
	assert_non_null(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = '\0';
	fclose(file);
	unlink(path);
	unlink(err);
	return text;
}

/* The cap is each host's own, as for captures, unless the command line sets it. */
static void test_memory_cap(void **state)
{
	static const char *const one[] = {"n1", "n1", NULL}, *const none[] = {"", "", NULL};
	static const char *const three[] = {"n1", "n2", "n1", "n3", "n2", NULL};
	struct vapro_config config;

	(void)state;
	config__init(&config);
	run(one, NULL);
	assert_true(cap == config.memory_cap);
	run(none, NULL);
	assert_true(cap == config.memory_cap);
	run(three, NULL);
	assert_true(cap == 3 * config.memory_cap);
	run(three, "--memory-cap=1000000");
	assert_true(cap == 1000000);
}

/* A region of which there is nothing is no success in silence. */
static void test_unanswered(void **state)
{
	static const char *const one[] = {"n1", NULL};

	(void)state;
	unanswered = "no such ranks; available: ranks 0-1 of job j";
	assert_string_equal(run(one, "--region=9@1..2"),
			    "vapro analyze: --region: no such ranks; available: ranks 0-1 of job j\n");
	unanswered = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_memory_cap),
	    cmocka_unit_test(test_unanswered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

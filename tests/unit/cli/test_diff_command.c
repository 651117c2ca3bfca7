/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vapro diff and vapro runs from their command lines to exit codes and output: captures, fragments, records, and wrong
 * input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "../../tools/accuracy/job.h"
#include "capture/capture.h"
#include "base/exit_codes.h"
#include "cli/commands.h"
#include "report/json.h"

#define RANKS 6

static char directory[64], text[1 << 18];

static const char *path(const char *name)
{
	static char paths[8][160];
	static unsigned next;
	char *buf = paths[next++ % 8];

	snprintf(buf, sizeof(paths[0]), "%s/%s", directory, name);
	return buf;
}

/* Writes the capture of a run in which ranks [first, last] are slower. */
static void write_capture(const char *name, uint64_t seed, int ranks, int first, int last, double factor, bool append)
{
	static const char hello[] =
	    "{\"schema\":\"vapro/1\",\"type\":\"hello\",\"time\":\"2027-01-15T08:00:00.000000000Z\","
	    "\"host\":\"n0\",\"workload_source\":\"arguments\"}";
	struct job job = {.seed = seed, .ranks = ranks, .hosts = 2, .seconds = 20, .jitter = 0.02};
	struct stream_sink *sink = append ? capture__append(path(name), "{}") : capture__create(path(name), "{}");
	struct job_totals totals = {0};
	struct truths truths = {0};

	assert_non_null(sink);
	job__program(&job, 5e6, 0.1, 0.05);
	job__effect(&job, EFFECT_SLOW, 0, 0, factor)->ranks =
	    (struct job_ranks){.of = RANKS_RANGE, .first = first, .last = last};
	assert_int_equal(stream__put(sink, &(struct stream_event){.type = STREAM_LINE, .line = stream__line(hello)}),
			 0);
	assert_int_equal(job__run(&job, VAPRO_BY_ARGUMENTS, 15, sink, &truths, &totals), 0);
	assert_int_equal(stream__close(sink), 0);
	truths__free(&truths);
}

/* Runs the command with its output in `text`; errors too. Returns its exit code. */
static int call(const struct command *command, const char *const *arguments)
{
	int argc = 1, saved[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)}, status;
	char *argv[16] = {(char *)command->name};
	FILE *file = fopen(path("output"), "w+");
	size_t length;

	for (; arguments[argc - 1]; argc++)
		argv[argc] = (char *)arguments[argc - 1];
	assert_non_null(file);
	fflush(stdout);
	fflush(stderr);
	dup2(fileno(file), STDOUT_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	status = command->main(argc, argv);
	fflush(stdout);
	fflush(stderr);
	dup2(saved[0], STDOUT_FILENO);
	dup2(saved[1], STDERR_FILENO);
	close(saved[0]);
	close(saved[1]);
	rewind(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return status;
}

#define DIFF(...) call(&diff_command, (const char *const[]){__VA_ARGS__, NULL})
#define RUNS(...) call(&runs_command, (const char *const[]){__VA_ARGS__, NULL})

static void has(const char *part)
{
	if (!strstr(text, part))
		print_message("'%s' is missing in:\n%s\n", part, text);
	assert_non_null(strstr(text, part));
}

/* Counts the records of a subject. */
static unsigned records_of(const char *what, int *rank)
{
	unsigned count = 0;
	char *save = NULL, *copy = strdup(text);

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		cJSON *record = cJSON_Parse(line);
		const cJSON *number = cJSON_GetObjectItemCaseSensitive(record, "rank");

		assert_non_null(record);
		assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "type")), "diff");
		if (!strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "what")), what)) {
			count++;
			if (rank && number)
				*rank = number->valueint;
		}
		cJSON_Delete(record);
	}
	free(copy);
	return count;
}

static void captures(void **state)
{
	int rank = -1;

	(void)state;
	write_capture("a", 1, RANKS, 0, 0, 1, false);
	write_capture("b", 2, RANKS, 3, 3, 1.1, false);
	assert_int_equal(DIFF(path("a"), path("b")), 0);
	has("Rank 3 became 9.");
	has("3 on n1");
	has("20.0 s");
	has("time compared");
	assert_int_equal(DIFF("--fail-on", "slower", path("a"), path("b")), EXIT_SLOWER);
	assert_int_equal(DIFF("--fail-on", "slower", path("a"), path("a")), 0);
	has("Nothing that was compared became slower");
	/* the other direction: faster, which is no failure */
	assert_int_equal(DIFF("--fail-on=slower", path("b"), path("a")), 0);
	has("faster");
	assert_int_equal(DIFF("--threshold", "15%", "--fail-on", "slower", path("a"), path("b")), 0);
	assert_int_equal(DIFF("--json", path("a"), path("b")), 0);
	assert_int_equal(records_of("run", NULL), 1);
	assert_int_equal(records_of("rank", &rank), 1);
	assert_int_equal(rank, 3);
	assert_int_equal(records_of("state", &rank), 2);
	assert_int_equal(rank, 3);
	assert_int_equal(DIFF("--json", "--all", path("a"), path("b")), 0);
	assert_int_equal(records_of("rank", NULL), RANKS);
	assert_int_equal(records_of("host", NULL), 2);
	/* another rank alone */
	assert_int_equal(DIFF("--rank", "2", "--fail-on", "slower", path("a"), path("b")), 0);
	assert_int_equal(DIFF("--rank", "3", "--fail-on", "slower", path("a"), path("b")), EXIT_SLOWER);
	assert_int_equal(DIFF("--rank", "77", path("a"), path("b")), 1);
	has("no such rank");
}

static void several_runs(void **state)
{
	(void)state;
	write_capture("c", 1, RANKS, 0, 0, 1, false);
	write_capture("c", 2, RANKS, 1, 1, 1.2, true);
	assert_int_equal(DIFF("--run", "1,2", path("c"), path("c")), 0);
	has("Rank 1");
	assert_int_equal(DIFF("--run", "-1", path("c"), path("c")), 0);
	has("Nothing that was compared");
	assert_int_equal(DIFF("--run", "1,9", path("c"), path("c")), 1);
	assert_int_equal(DIFF("--run", "0", path("c"), path("c")), 2);
}

static void ranks_and_directories(void **state)
{
	(void)state;
	write_capture("few", 3, 3, 1, 1, 1.1, false);
	assert_int_equal(DIFF(path("a"), path("few")), 0);
	has("A has 6 ranks, B 3");
	has("Rank 1 became 9.");
	/* a directory is a run */
	assert_int_equal(mkdir(path("dir"), 0700), 0);
	write_capture("dir/host", 2, RANKS, 4, 4, 1.1, false);
	assert_int_equal(DIFF(path("a"), path("dir")), 0);
	has("Rank 4 became 9.");
	assert_int_equal(unlink(path("dir/host")), 0);
	assert_int_equal(DIFF(path("a"), path("dir")), 1);
	has("the directory has no file");
	rmdir(path("dir"));
}

/* Writes fragments, one computation and call after the other; rank 1 takes `factor` times as long. */
static void write_fragments(const char *name, double factor)
{
	FILE *file = fopen(path(name), "w");

	assert_non_null(file);
	for (int i = 0; i < 400; i++) {
		for (int rank = 0; rank < 3; rank++) {
			long start = 1000000000L + 50000000L * i, ns = 10000000 + 10000 * (i * 7 % 11);

			if (rank == 1)
				ns = (long)((double)ns * factor);
			fprintf(file,
				"{\"rank\":%d,\"class\":\"computation\",\"from\":\"app@1+0x10\",\"to\":\"app@1+0x20\","
				"\"start_ns\":%ld,\"duration_ns\":%ld,\"workload\":{\"instructions\":%ld}}\n",
				rank, start, ns, rank == 1 ? (long)(1e6 * factor) : 1000000);
		}
	}
	fclose(file);
}

static void fragments(void **state)
{
	(void)state;
	write_fragments("f1", 1);
	write_fragments("f2", 1.1);
	assert_int_equal(DIFF("--format", "ndjson", path("f1"), path("f2")), 0);
	has("Rank 1 became 10.0 % slower");
	has("+10.0 % instructions a call");
	assert_int_equal(DIFF(path("f1"), path("f2")), 0); /* as the file begins */
	has("Rank 1 became 10.0 % slower");
}

/* Writes output of vaprod whose rank 1 performs at `performance`. */
static void write_records(const char *name, double performance, double lost)
{
	FILE *file = fopen(path(name), "w");
	char begin[JSON_TIME_SIZE], stop[JSON_TIME_SIZE];
	const uint64_t utc = 1800000000000000000ULL;

	assert_non_null(file);
	json__time(utc, begin);
	json__time(utc + 30000000000ULL, stop);
	fprintf(file, "{\"schema\":\"vapro/1\",\"type\":\"hello\",\"time\":\"%s\",\"host\":\"n0\"}\n", begin);
	fprintf(file,
		"{\"schema\":\"vapro/"
		"1\",\"type\":\"window\",\"time\":\"%s\",\"host\":\"n0\",\"job\":\"j\",\"begin\":\"%s\","
		"\"end\":\"%s\",\"coverage\":{\"total\":0.9},\"performance\":{\"total\":0.95}}\n",
		stop, begin, stop);
	fprintf(file,
		"{\"schema\":\"vapro/1\",\"type\":\"heatmap\",\"time\":\"%s\",\"host\":\"n0\",\"job\":\"j\",\"class\":"
		"\"computation\",\"begin\":\"%s\",\"bin_ns\":200000000,\"revision\":0,\"rows\":[",
		stop, begin);
	for (int rank = 0; rank < 3; rank++) {
		fprintf(file, "%s{\"rank\":%d,\"pid\":%d,\"values\":[", rank ? "," : "", rank, 100 + rank);
		for (int i = 0; i < 150; i++)
			fprintf(file, "%s%.4f", i ? "," : "", (rank == 1 ? performance : 0.97) + 0.002 * (i * 7 % 11));
		fprintf(file, "]}");
	}
	fprintf(file, "]}\n");
	fprintf(file,
		"{\"schema\":\"vapro/1\",\"type\":\"variance\",\"time\":\"%s\",\"host\":\"n0\",\"id\":1,\"alarm\":true,"
		"\"effect_of\":null,\"lost_by_class\":{\"computation\":%.1f,\"communication\":0,\"io\":0}}\n",
		stop, lost);
	fprintf(file,
		"{\"schema\":\"vapro/"
		"1\",\"type\":\"diagnosis\",\"time\":\"%s\",\"host\":\"n0\",\"variance\":1,\"revision\":0,"
		"\"factors\":[{\"name\":\"suspension\",\"parent\":null,\"major\":true,\"impact_seconds\":%.1f},"
		"{\"name\":\"preempted\",\"parent\":\"suspension\",\"major\":true,\"impact_seconds\":%.1f}]}\n",
		stop, lost, lost);
	fclose(file);
}

static void records(void **state)
{
	(void)state;
	write_records("r1", 0.97, 1.5);
	write_records("r2", 0.8, 4.5);
	assert_int_equal(DIFF(path("r1"), path("r2")), 0);
	has("Rank 1 became 21.");
	has("4.50");
	has("preempted");
	assert_null(strstr(text, "suspension"));
	has("Captures (vaprod --capture) show states");
	assert_int_equal(DIFF("--json", "--fail-on", "slower", path("r1"), path("r2")), EXIT_SLOWER);
	assert_int_equal(records_of("rank", NULL), 1);
	has("\"preempted\":4.5");
	assert_int_equal(DIFF(path("r1"), path("r1")), 0);
	has("Nothing that was compared");
	assert_int_equal(DIFF(path("r1"), path("a")), 1);
	has("give captures only, or outputs only");
}

static void mistakes(void **state)
{
	FILE *file = fopen(path("prose"), "w");

	(void)state;
	assert_non_null(file);
	fputs("no capture\n", file);
	fclose(file);
	assert_int_equal(DIFF(path("a")), 2);
	has("two runs or more are needed");
	assert_int_equal(DIFF(path("a"), path("prose")), 1);
	has("neither a capture nor NDJSON");
	assert_int_equal(DIFF(path("a"), path("none")), 1);
	has("No such file");
	assert_int_equal(DIFF("--format", "ndjson", path("a"), path("b")), 1);
	has("is a capture, and not NDJSON fragments");
	assert_int_equal(DIFF("--threshold", "much", path("a"), path("b")), 2);
	has("invalid percentage 'much'");
	assert_int_equal(DIFF("--fail-on", "rain", path("a"), path("b")), 2);
	assert_int_equal(DIFF("--rank", "x", path("a"), path("b")), 2);
	assert_int_equal(DIFF("--help"), 0);
	has("--fail-on");
}

/* Each further run is compared with the first. */
static void three_runs(void **state)
{
	(void)state;
	assert_int_equal(DIFF("--fail-on", "slower", path("a"), path("a"), path("b")), EXIT_SLOWER);
	has("Nothing that was compared");
	has("Rank 3 became 9.");
	assert_int_equal(DIFF("--json", path("a"), path("b"), path("b")), 0);
	assert_int_equal(records_of("run", NULL), 2);
	assert_int_equal(records_of("rank", NULL), 2);
	/* what cannot be compared does not hide the others */
	assert_int_equal(DIFF(path("a"), path("f1"), path("b")), 1);
	has("no state in common");
	has("Rank 3 became 9.");
}

/* Counts the lines of the output that begin so. */
static unsigned lines_with(const char *begin)
{
	unsigned count = 0;

	for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL)
		count += !strncmp(at, begin, strlen(begin));
	return count;
}

/* A directory of six runs, two of them in one file and one in a directory, of which one had a slow host. */
static void directory_of_runs(void **state)
{
	static const char *const names[] = {"0", "1", "2", "3/n0"};
	char begin[200];

	(void)state;
	assert_int_equal(mkdir(path("runs"), 0700), 0);
	assert_int_equal(mkdir(path("runs/3"), 0700), 0);
	for (int i = 0; i < 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "runs/%s", names[i]);
		write_capture(name, 40 + (uint64_t)i, RANKS, 3, 5, i == 2 ? 1.15 : 1, false);
	}
	write_capture("runs/4", 50, RANKS, 0, 0, 1, false);
	write_capture("runs/4", 51, RANKS, 0, 0, 1, true);
	setenv("COLUMNS", "400", 1); /* no sentence is broken */
	assert_int_equal(RUNS(path("runs")), 0);
	has("6 of 6 runs compared; median 20.0 s");
	has("runs/4, run 2");
	has("Hosts\n    host n1: 1.1");
	has("runs/2, of its 6 runs; in 2 of ");
	assert_int_equal(lines_with("Ranks"), 0);
	assert_int_equal(lines_with("States"), 0);
	assert_int_equal(RUNS("--threshold", "30%", path("runs")), 0);
	has("No run, host, rank or state is outlying by 30 % or more.");
	/* the distribution of the times: each row ends at or above the share of the one before */
	assert_int_equal(RUNS("--csv", path("runs")), 0);
	snprintf(begin, sizeof(begin), "\"%s/", path("runs"));
	assert_int_equal(lines_with("run,seconds,share_pct,"), 1);
	assert_int_equal(lines_with(begin), 6);
	has(",100,");
	assert_int_equal(RUNS("--svg", path("runs")), 0);
	has("<!-- vapro runs -->");
	has("6 runs of app: share that took no longer");
	has("1 outlying (filled)");
	assert_int_equal(lines_with("<circle "), 6);
	assert_int_equal(RUNS("--svg", "--csv", path("runs")), 2);
	assert_int_equal(RUNS("--json", path("runs")), 0);
	has("\"what\":\"all\",\"read\":6,\"compared\":6,");
	has("\"what\":\"host\"");
	has("\"on_host\":\"n1\"");
	assert_int_equal(lines_with("{\"schema\""), 8);
	/* four of them, and what is no run */
	assert_int_equal(RUNS(path("runs/0"), path("runs/1"), path("runs/2"), path("runs/3"), path("prose")), 0);
	has("left out: ");
	has("neither a capture nor NDJSON");
	has("4 of 4 runs compared");
	has("which of them is outlying is said of 5 and more");
	assert_int_equal(lines_with("Hosts"), 0);
	assert_int_equal(RUNS("--program", "none", path("runs")), 1);
	has("no run is one of none");
	assert_int_equal(RUNS(path("runs/0")), 1);
	has("two runs or more are needed, and 1 could be read");
	assert_int_equal(RUNS(path("none")), 1);
	has("No such file");
	assert_int_equal(RUNS("--csv"), 2);
	assert_int_equal(RUNS(path("r1"), path("a")), 1);
	has("give captures only");
	assert_int_equal(RUNS(path("r1"), path("r2")), 0);
	has("shows in its time only");
	for (int i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "runs/%s", names[i]);
		unlink(path(name));
	}
	unsetenv("COLUMNS");
	unlink(path("runs/4"));
	unlink(path("runs/3/n0"));
	rmdir(path("runs/3"));
	assert_int_equal(rmdir(path("runs")), 0);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/vapro_diff.XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"a", "b", "c", "few", "f1", "f2", "r1", "r2", "prose", "output"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(path(names[i]));
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(captures),	  cmocka_unit_test(several_runs),      cmocka_unit_test(ranks_and_directories),
	    cmocka_unit_test(fragments),  cmocka_unit_test(records),	       cmocka_unit_test(mistakes),
	    cmocka_unit_test(three_runs), cmocka_unit_test(directory_of_runs),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

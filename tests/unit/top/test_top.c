// SPDX-License-Identifier: GPL-2.0-or-later
/* The live view without a terminal: snapshots read, lists ordered and filtered, pages drawn. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "boarded.h"
#include "top/layout.h"

static struct top_model model;
static struct grid grid;
static char *drawn; /* the page as text */

static void name_user(uint32_t uid, char *name)
{
	snprintf(name, 64, "u%u", uid);
}

static struct top_snapshot *snapshot_of(uint32_t user, bool all)
{
	struct board *board = boarded__new(NULL);
	size_t size;
	char *text = boarded__write(board, user, all, &size);
	struct top_snapshot *snapshot = top_snapshot__read(text, size, name_user);

	assert_non_null(snapshot);
	assert_int_equal(snapshot->bad_lines, 0);
	free(text);
	board__free(board);
	return snapshot;
}

static int begin(void **state)
{
	(void)state;
	top_model__init(&model);
	top_model__update(&model, snapshot_of(1, true));
	return 0;
}

static int end(void **state)
{
	(void)state;
	top_model__clear(&model);
	grid__free(&grid);
	free(drawn);
	drawn = NULL;
	return 0;
}

/* Draws the page, and checks that it is as large as it should be. */
static void draw(unsigned width, unsigned height)
{
	size_t size;
	unsigned rows = 0;
	FILE *out;

	assert_int_equal(grid__resize(&grid, width, height), 0);
	top_layout__draw(&model, &grid);
	free(drawn);
	out = open_memstream(&drawn, &size);
	grid__write(&grid, out);
	fclose(out);
	for (const char *at = drawn; (at = strchr(at, '\n')); at++)
		rows++;
	assert_int_equal(rows, height);
	for (const char *at = drawn, *stop; (stop = strchr(at, '\n')); at = stop + 1)
		assert_true((size_t)(stop - at) <= width);
}

#define SHOWN(text)                                                                                                    \
	do {                                                                                                           \
		if (!strstr(drawn, text))                                                                              \
			fail_msg("'%s' is not in:\n%s", text, drawn);                                                  \
	} while (0)
#define HIDDEN(text)                                                                                                   \
	do {                                                                                                           \
		if (strstr(drawn, text))                                                                               \
			fail_msg("'%s' is in:\n%s", text, drawn);                                                      \
	} while (0)

static void press(const char *keys)
{
	for (; *keys; keys++)
		top_model__key(&model, (uint32_t)*keys);
}

/* Returns the row of the page in which a text is; fails where there is none. */
static unsigned row_of(const char *text)
{
	const char *found = strstr(drawn, text);
	unsigned row = 0;

	if (!found)
		fail_msg("'%s' is not in:\n%s", text, drawn);
	for (const char *at = drawn; at < found; at++)
		row += *at == '\n';
	return row;
}

static bool is_cursor(unsigned row)
{
	return grid.cells[(size_t)row * grid.width + 10].style == GRID_CURSOR;
}

static void test_snapshot(void **state)
{
	struct top_snapshot *snapshot = snapshot_of(BOARDED_USER, false);
	const struct top_job *job = &snapshot->jobs[0];

	(void)state;
	assert_int_equal(snapshot->job_count, 1);
	assert_false(snapshot->all);
	assert_string_equal(job->user_name, "u1000");
	assert_int_equal(job->process_count, 4);
	assert_int_equal(job->region_count, 1); /* one has ended, one is its effect */
	assert_int_equal(job->lost[VAPRO_LOST_RING_FULL], 12);
	assert_true(fabs(job->speed[VAPRO_COMMUNICATION] - 0.88) < 1e-6 && isnan(job->speed[VAPRO_IO]));
	assert_true(fabs(job->lost_s - 0.2) < 1e-9); /* without the effect of a cause */
	assert_true(isnan(job->processes[0].overhead_pct));
	top_snapshot__free(snapshot);
	top_snapshot__free(NULL);
}

/* What is no snapshot, and what is in part none. */
static void test_bad_snapshots(void **state)
{
	static const char *const none[] = {"",
					   "\n",
					   "nonsense",
					   "{}",
					   "{\"type\":\"job_status\",\"job\":\"a\"}\n",
					   "{\"type\":\"status\"",
					   "[[[[",
					   "{\"type\":7}\n"};
	static const char some[] =
	    "{\"type\":\"status\",\"host\":\"n\",\"version\":\"1\",\"pid\":1e99}\n"
	    "{\"type\":\"job_status\",\"job\":\"a\",\"uid\":7,\"processes\":[{\"rank\":1e300,\"pid\":-4},"
	    "5]}\nnonsense\n{\"type\":\"job_status\",\"job\":\"a\",\"uid\":7}\n"
	    "{\"type\":\"job_status\"}\n{\"type\":\"window\",\"job\":\"b\"}\n"
	    "{\"type\":\"variance\",\"job\":\"a\"}\n{\"type\":\"unheard-of\"}";
	struct top_snapshot *snapshot;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_null(top_snapshot__read(none[i], strlen(none[i]), NULL));
	snapshot = top_snapshot__read(some, strlen(some), NULL);
	assert_non_null(snapshot);
	assert_int_equal(snapshot->job_count, 1);
	assert_int_equal(snapshot->jobs[0].process_count, 2);
	assert_int_equal(snapshot->jobs[0].processes[0].rank, -1);
	assert_string_equal(snapshot->jobs[0].user_name, "7");
	assert_int_equal(snapshot->bad_lines, 5);
	top_model__update(&model, snapshot);
	draw(80, 24);
	SHOWN("5 records could not");
}

static void test_jobs_page(void **state)
{
	static const unsigned sizes[][2] = {{80, 24}, {200, 50}, {110, 30}};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		draw(sizes[i][0], sizes[i][1]);
		SHOWN("vapro top: n1, vaprod 42 (0.1.0)");
		SHOWN("08:00:17 UTC");
		SHOWN("2 jobs, 5 processes, 2 slow regions (0 alarms); 0.40 s lost so far");
		SHOWN("speeds 2 s old; overhead 0.8 % (most 1.5 %); probes reduced in 1 process");
		SHOWN("slurm:1234.0");
		SHOWN("secret:9.0");
		SHOWN("4/8");
		SHOWN("97]");
		SHOWN("0.4%");
		SHOWN("ended preempted by stress-ng: rank 2 lost 1.5 s?."); /* the verdict, without its control
									       character */
		SHOWN("lasts computation of ranks 0-1, 0.20 s lost so far");
		HIDDEN("ranks 0-1,3"); /* an effect */
	}
	draw(200, 50);
	SHOWN("COVER");
	SHOWN("90%");
	SHOWN("24 fragments lost, most ring_full");
}

/* Sizes in which hardly anything can be shown do no harm. */
static void test_small(void **state)
{
	(void)state;
	for (unsigned page = 0; page < 4; page++) {
		for (unsigned width = 1; width < 40; width += 3) {
			for (unsigned height = 1; height < 12; height++)
				draw(width, height);
		}
		top_model__key(&model, page < 2 ? TOP_KEY_ENTER : TOP_KEY_TAB);
		top_model__key(&model, page < 2 ? TOP_KEY_DOWN : TOP_KEY_ENTER);
	}
}

static void test_drill_down(void **state)
{
	(void)state;
	/* by time lost both are equal, and then by name */
	draw(80, 24);
	assert_true(is_cursor(row_of("secret:9.0  ")));
	top_model__key(&model, TOP_KEY_DOWN);
	draw(80, 24);
	assert_true(is_cursor(row_of("slurm:1234.0  ")));
	top_model__key(&model, TOP_KEY_ENTER);
	draw(80, 24);
	SHOWN("jobs > slurm:1234.0");
	SHOWN("     2     1002");
	SHOWN("closed");
	HIDDEN("secret");
	/* the rank of the slow region */
	press("/rank 2");
	draw(80, 24);
	SHOWN("filter: rank 2_");
	HIDDEN("     1     1001");
	top_model__key(&model, TOP_KEY_ENTER);
	top_model__key(&model, TOP_KEY_ENTER);
	draw(80, 24);
	SHOWN("jobs > slurm:1234.0 > rank 2");
	SHOWN("rank 2 lost 1.5 s");
	HIDDEN("ranks 0-1, 0.20 s"); /* not this rank's */
	top_model__key(&model, TOP_KEY_ENTER);
	draw(80, 24);
	SHOWN("> slow region 1");
	SHOWN("thread 3 of rank 2: 1.50 s lost");
	SHOWN("preempted by  stress-ng (pid 4242)");
	SHOWN("suggestion");
	SHOWN("ranks 0-1,3 waited 4.25 s for it");
	/* back to the jobs */
	top_model__key(&model, TOP_KEY_BACK);
	draw(80, 24);
	SHOWN("> rank 2");
	top_model__key(&model, TOP_KEY_BACK);
	top_model__key(&model, TOP_KEY_BACK); /* the filter */
	draw(80, 24);
	SHOWN("     1     1001");
	top_model__key(&model, TOP_KEY_BACK);
	draw(80, 24);
	SHOWN("secret");
	top_model__key(&model, TOP_KEY_BACK);
	draw(80, 24);
	SHOWN("secret");
}

static void test_scrolled_region(void **state)
{
	(void)state;
	top_model__key(&model, TOP_KEY_TAB);
	top_model__key(&model, TOP_KEY_END);
	top_model__key(&model, TOP_KEY_ENTER);
	draw(80, 9);
	SHOWN(" 1. ");
	HIDDEN("waited 4.25 s");
	top_model__key(&model, TOP_KEY_END);
	draw(80, 9);
	HIDDEN(" 1. ");
	SHOWN("waited 4.25 s");
	top_model__key(&model, TOP_KEY_UP);
	top_model__key(&model, TOP_KEY_HOME);
	draw(80, 9);
	SHOWN(" 1. ");
}

static void test_orders(void **state)
{
	static const char *const ranks[] = {"     0     1000", "     1     1001", "     2     1002", "     3     1003"};
	unsigned first;

	(void)state;
	top_model__key(&model, TOP_KEY_DOWN);
	top_model__key(&model, TOP_KEY_ENTER);
	press("s"); /* by rank */
	draw(80, 24);
	SHOWN("by rank");
	for (int i = 0; i < 3; i++)
		assert_true(row_of(ranks[i]) < row_of(ranks[i + 1]));
	press("r");
	draw(80, 24);
	SHOWN("by rank, reversed");
	for (int i = 0; i < 3; i++)
		assert_true(row_of(ranks[i]) > row_of(ranks[i + 1]));
	press("rss"); /* by calls, the most first */
	draw(80, 24);
	for (int i = 0; i < 3; i++)
		assert_true(row_of(ranks[i]) > row_of(ranks[i + 1]));
	press("s"); /* by overhead: the unknown one is the last */
	draw(80, 24);
	SHOWN("by overhead");
	first = row_of(ranks[0]);
	for (int i = 1; i < 4; i++)
		assert_true(first > row_of(ranks[i]));
	press("s<");
	draw(80, 24);
	SHOWN("by overhead");
}

/* The cursor stays on what was selected, where that is now. */
static void test_cursor_follows(void **state)
{
	(void)state;
	top_model__key(&model, TOP_KEY_DOWN);
	top_model__key(&model, TOP_KEY_ENTER);
	press("sj");
	draw(80, 24);
	assert_true(is_cursor(row_of("     1     1001")));
	press("r");
	draw(80, 24);
	assert_true(is_cursor(row_of("     1     1001")));
	top_model__update(&model, snapshot_of(1, true));
	draw(80, 24);
	assert_true(is_cursor(row_of("     1     1001")));
	/* a page for which its job is gone */
	top_model__update(&model, snapshot_of(BOARDED_OTHER, false));
	draw(80, 24);
	SHOWN("jobs > (ended)");
	SHOWN("the job has ended");
	top_model__key(&model, TOP_KEY_ENTER);
	top_model__key(&model, TOP_KEY_DOWN);
	draw(80, 24);
}

static void test_many_rows(void **state)
{
	struct board *board = boarded__new(NULL);
	struct board_process *processes = calloc(300, sizeof(*processes));
	const struct board_facts facts = {.host = "n1", .version = "1", .pid = 1, .daemon_cpu_pct = NAN};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(processes);
	for (uint32_t i = 0; i < 300; i++) {
		processes[i] = boarded__processes()[0];
		processes[i].pid = 10000 + i;
		processes[i].rank = (int32_t)i;
	}
	assert_int_equal(board__write(board, &facts, processes, 300, &(struct board_reader){.user = BOARDED_USER}, out),
			 0);
	fclose(out);
	top_model__update(&model, top_snapshot__read(text, size, NULL));
	top_model__key(&model, TOP_KEY_ENTER);
	press("s");
	draw(80, 24);
	SHOWN(" 10000 ");
	SHOWN("STATE SLOW REGION"); /* the regions have room, too */
	top_model__key(&model, TOP_KEY_PAGE_DOWN);
	draw(80, 24);
	assert_true(is_cursor(row_of(" 10012 ")));
	top_model__key(&model, TOP_KEY_END);
	draw(80, 24);
	SHOWN(" 10299 ");
	HIDDEN(" 10000 ");
	draw(200, 50);
	SHOWN(" 10299 ");
	SHOWN("solver");
	top_model__key(&model, TOP_KEY_HOME);
	draw(200, 50);
	SHOWN(" 10000 ");
	free(text);
	free(processes);
	board__free(board);
}

/* A job that hangs comes first, and is said above the lists: in a row among all jobs, whole on its own page. */
static void test_hang(void **state)
{
	struct board *board = boarded__new(NULL);
	struct result_hang hang = sample__hang();
	struct top_snapshot *snapshot;
	struct job_result result;
	char *text;
	size_t size;
	FILE *out;

	(void)state;
	sample__fill(&result);
	result.user = BOARDED_USER;
	result.hang = &hang;
	for (int over = 0; over < 2; over++) {
		hang.state = over ? VAPRO_REGION_CLOSED : VAPRO_REGION_OPEN;
		hang.outcome = over ? VAPRO_HANG_RESUMED : VAPRO_HANG_GOES_ON;
		boarded__window(board, &result);
		board__end(board, result.end_ns);
		text = boarded__write(board, BOARDED_USER, true, &size);
		snapshot = top_snapshot__read(text, size, name_user);
		free(text);
		assert_non_null(snapshot);
		assert_int_equal(snapshot->bad_lines, 0);
		assert_int_equal(top_job__hangs(&snapshot->jobs[0]), !over);
		top_model__update(&model, snapshot);
		draw(80, 24);
		if (over) {
			HIDDEN("HANG");
			HIDDEN("no progress");
			SHOWN("  slurm:1234.0: hang: no rank made progress from");
			continue;
		}
		SHOWN("1 job makes no progress; 2 jobs, 5 processes");
		SHOWN("HANG");
		SHOWN("! slurm:1234.0: hang: no rank has made progress since 08:00:15");
		assert_true(row_of("slurm:1234.0  ") < row_of("secret:9.0  "));
		out = open_memstream(&text, &size);
		assert_int_equal(top_layout__text(&model, out, 400), 0);
		fclose(out);
		assert_non_null(strstr(text, "\n! slurm:1234.0: hang: no rank has made progress"));
		assert_non_null(strstr(text, "which rank 2 has not entered"));
		free(text);
		top_model__open(&model, &model.snapshot->jobs[0]);
		model.page = TOP_PAGE_JOB;
		draw(80, 24);
		SHOWN("! hang: no rank has made progress since 08:00:15 UTC");
		SHOWN("has not entered");
		draw(80, 8); /* in which there is no room for all of it */
		HIDDEN("has not entered");
		model.page = TOP_PAGE_JOBS;
	}
	board__free(board);
}

/* A record of a hang that is none of a job, or says nothing, counts as bad. */
static void test_bad_hangs(void **state)
{
	static const char text[] =
	    "{\"type\":\"status\",\"host\":\"n\",\"version\":\"1\"}\n"
	    "{\"type\":\"job_status\",\"job\":\"a\",\"uid\":7}\n"
	    "{\"type\":\"hang\",\"job\":\"b\",\"uid\":7,\"state\":\"open\",\"text\":\"x\"}\n"
	    "{\"type\":\"hang\",\"job\":\"a\",\"uid\":7,\"state\":\"open\"}\n"
	    "{\"type\":\"hang\",\"job\":\"a\",\"uid\":7,\"state\":\"open\",\"text\":\"it\\u001bis\"}\n"
	    "{\"type\":\"hang\",\"job\":\"a\",\"uid\":7,\"state\":\"closed\",\"text\":\"later\"}\n";
	struct top_snapshot *snapshot = top_snapshot__read(text, strlen(text), NULL);

	(void)state;
	assert_non_null(snapshot);
	assert_int_equal(snapshot->bad_lines, 2);
	assert_string_equal(snapshot->jobs[0].hang, "it?is"); /* what lasts counts, without its control character */
	assert_false(top_job__hangs(&snapshot->jobs[0]));     /* no alarm */
	top_snapshot__free(snapshot);
}

static void test_freeze(void **state)
{
	(void)state;
	press(" ");
	top_model__update(&model, snapshot_of(BOARDED_USER, false));
	draw(80, 24);
	SHOWN("FROZEN");
	SHOWN("secret");
	press(" ");
	draw(80, 24);
	HIDDEN("FROZEN");
	HIDDEN("secret");
	SHOWN("your jobs");
}

static void test_filter_and_user(void **state)
{
	(void)state;
	press("/SECR");
	draw(80, 24);
	SHOWN("secret:9.0");
	HIDDEN("slurm:1234.0  ");
	top_model__key(&model, TOP_KEY_ERASE);
	press("!");
	draw(80, 24);
	SHOWN("filter: SEC!_");
	SHOWN("nothing matches the filter");
	top_model__key(&model, TOP_KEY_BACK);
	draw(80, 24);
	SHOWN("slurm:1234.0");
	press("/q h"); /* characters, not commands */
	assert_false(model.quit || model.help);
	top_model__key(&model, TOP_KEY_BACK);
	model.only_user = BOARDED_USER;
	top_model__arrange(&model);
	draw(80, 24);
	HIDDEN("secret");
	SHOWN("1 job, 4 processes");
}

static void test_help_and_quit(void **state)
{
	(void)state;
	press("?");
	draw(80, 24);
	SHOWN("freeze, and go on");
	HIDDEN("secret");
	press("x");
	draw(80, 24);
	SHOWN("secret");
	press("q");
	assert_true(model.quit);
}

static void test_notice(void **state)
{
	(void)state;
	strcpy(model.notice, "waiting for vaprod: no socket in /run/vapro/");
	draw(80, 24);
	SHOWN("waiting for vaprod");
	SHOWN("secret"); /* the latest state stays */
	top_model__clear(&model);
	top_model__init(&model);
	strcpy(model.notice, "waiting for vaprod: no socket in /run/vapro/");
	press("s/jk\t? ");
	top_model__key(&model, TOP_KEY_ENTER);
	model.help = false;
	draw(80, 24);
	SHOWN("waiting for vaprod");
}

static void test_plain_text(void **state)
{
	size_t size;
	FILE *out;

	(void)state;
	out = open_memstream(&drawn, &size);
	assert_int_equal(top_layout__text(&model, out, 400), 0);
	fclose(out);
	SHOWN("job slurm:1234.0 of u1000\n");
	SHOWN("     2     1002");
	SHOWN("     ?     7001");
	SHOWN("    5.75 s 08:00:05 ended");
	assert_null(strchr(drawn, '\033'));
	top_model__update(&model, snapshot_of(3001, false));
	free(drawn);
	out = open_memstream(&drawn, &size);
	assert_int_equal(top_layout__text(&model, out, 80), 0);
	fclose(out);
	SHOWN("no process of yours is watched");
}

/* Characters of users: no controls, none of two columns; those of one column stay where the locale has them. */
static void test_characters(void **state)
{
	(void)state;
	assert_int_equal(grid__resize(&grid, 20, 2), 0);
	grid__put(&grid, 0, 0, 20, GRID_PLAIN, "a\033[2J\x9b\xff\xe4\xbd\xa0z");
	assert_int_equal(grid.cells[1].character, '?');
	assert_int_equal(grid.cells[2].character, '[');
	assert_int_equal(grid.cells[5].character, '?');
	assert_int_equal(grid.cells[6].character, '?');
	assert_int_equal(grid.cells[7].character, '?'); /* two columns wide */
	assert_int_equal(grid.cells[8].character, 'z');
	if (setlocale(LC_CTYPE, "C.UTF-8")) {
		grid__put(&grid, 1, 0, 20, GRID_PLAIN, "\xc3\xa9\xe2\x80\xae\xcc\x81x\xc3");
		assert_int_equal(grid.cells[20].character, 0xe9);
		assert_int_equal(grid.cells[21].character, '?'); /* a change of direction */
		assert_int_equal(grid.cells[22].character, '?'); /* an accent of its own */
		assert_int_equal(grid.cells[23].character, 'x');
		assert_int_equal(grid.cells[24].character, '?');
		setlocale(LC_CTYPE, "C");
	}
	grid__left(&grid, 1, 0, 6, GRID_PLAIN, "much too long");
	assert_int_equal(grid.cells[24].character, '.');
	assert_int_equal(grid__put(&grid, 7, 0, 5, GRID_PLAIN, "below"), 0);
	assert_int_equal(grid__put(&grid, 0, 18, 5, GRID_PLAIN, "right"), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_snapshot),	TEST(test_bad_snapshots),  TEST(test_jobs_page),
	    TEST(test_small),		TEST(test_drill_down),	   TEST(test_scrolled_region),
	    TEST(test_orders),		TEST(test_cursor_follows), TEST(test_hang),
	    TEST(test_bad_hangs),	TEST(test_many_rows),	   TEST(test_freeze),
	    TEST(test_filter_and_user), TEST(test_help_and_quit),  TEST(test_notice),
	    TEST(test_plain_text),	TEST(test_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

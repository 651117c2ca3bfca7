/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal's view: slow bins stay visible however many share a cell, revisions win, bad lines are skipped. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "report/json.h"
#include "report/view.h"
#include "report/view_model.h"

#define HEAD "{\"schema\":\"vapro/1\",\"time\":\"2027-01-15T08:00:15.000000000Z\",\"host\":\"n1\",\"job\":\"j\","
#define MAP(class, begin, revision, rows)                                                                              \
	HEAD "\"type\":\"heatmap\",\"class\":\"" class "\",\"begin\":\"2027-01-15T08:00:" begin                        \
						       "Z\",\"bin_ns\":200000000,\"revision\":" revision               \
						       ",\"rows\":[" rows "]}\n"
#define ROW(rank, values) "{\"rank\":" rank ",\"pid\":7,\"values\":[" values "]}"

static char path[64], err[512];
static char *text;
static uint64_t bad;

static void write_lines(const char *lines)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(lines, file);
	fclose(file);
}

static int view(const char *lines, const struct view_options *options)
{
	size_t size;
	FILE *out;
	int ret;

	free(text);
	text = NULL;
	if (lines)
		write_lines(lines);
	out = tmpfile(); /* a file: fileno() needs one */
	assert_non_null(out);
	ret = view__file(path, options, out, &bad, err, sizeof(err));
	size = (size_t)ftell(out);
	rewind(out);
	text = calloc(1, size + 1);
	assert_int_equal(fread(text, 1, size, out), size);
	fclose(out);
	return ret;
}

static int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/vapro-test-view-%d", getpid());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(text);
	unlink(path);
	return 0;
}

static void has(const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static void test_map(void **state)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 80};

	(void)state;
	assert_int_equal(
	    view(MAP("computation", "00.0", "0", ROW("10", "1,0.9,0.8,0.7,0.6") "," ROW("9", "0.5,0.4,0.3,0.1,null")),
		 &plain),
	    0);
	assert_int_equal(bad, 0);
	has("computation, job j: 2 ranks, 1.00 s from 2027-01-15 08:00:00.0 UTC");
	has(" rank 9 *#%@ \nrank 10 .:-=+\n"); /* by rank, not by line */
	has("no slow region found");
	assert_null(strchr(text, '\033'));
}

static void test_revision(void **state)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 80};

	(void)state;
	assert_int_equal(view(MAP("io", "00.0", "0", ROW("0", "1,1,1,1")) MAP("io", "00.2", "2", ROW("0", "0.5,null"))
				  MAP("io", "00.2", "1", ROW("0", "0.8,0.8,0.8")),
			      &plain),
			 0);
	has("rank 0 .* -\n"); /* a null of a higher revision counts too */
}

/* 1000 s in 60 columns: one slow bin of 5000 is visible, in its place. */
static void test_slow_stays_visible(void **state)
{
	char *lines = NULL;
	size_t size;
	FILE *out = open_memstream(&lines, &size);

	(void)state;
	fputs(HEAD "\"type\":\"heatmap\",\"class\":\"io\",\"begin\":\"2027-01-15T08:00:00Z\",\"bin_ns\":200000000,"
		   "\"revision\":0,\"rows\":[",
	      out);
	for (int rank = 0; rank < 100; rank++) {
		fprintf(out, "%s{\"rank\":%d,\"pid\":1,\"values\":[", rank ? "," : "", rank);
		for (int bin = 0; bin < 5000; bin++)
			fprintf(out, "%s%s", bin ? "," : "", rank == 55 && bin == 2501 ? "0.1" : "0.99");
		fputs("]}", out);
	}
	fputs("]}\n", out);
	fclose(out);
	assert_int_equal(view(lines, &(struct view_options){.color = VIEW_COLOR_NEVER, .width = 66, .rows = 10}), 0);
	free(lines);
	has("one row is up to 10 ranks");
	has("each cell shows");
	has("\nworst: rank 55 .........................@........................\n");
	/* of a line of more than 8 ranks the mean, so that one of them does not stand for all */
	has("the mean of its ranks in its slowest 200 ms");
	has("\n         50-59 .........................:........................\n");
	has("\n         60-69 ..................................................\n");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (strncmp(line, "  %", 3))
			assert_true(strlen(line) <= 66);
	}
}

static void test_order_of_loss(void **state)
{
	static const struct view_options sorted = {.color = VIEW_COLOR_NEVER, .width = 80, .rows = 3, .by_loss = true};
	static const char lines[] = MAP(
	    "computation", "00.0", "0",
	    ROW("0", "1,1") "," ROW("1", "0.9,0.9") "," ROW("2", "0.3,1") "," ROW("3", "1,1") "," ROW("4", "0.1,0.2"));

	(void)state;
	assert_int_equal(view(lines, &sorted), 0);
	has("\n  rank 4 @@\n  rank 2 %.\n3 others ::\n");
	assert_null(strstr(text, "worst"));
	assert_int_equal(view(lines, &(struct view_options){.color = VIEW_COLOR_NEVER, .width = 80, .rows = 3}), 0);
	has("\nworst: rank 4 @@\n");
	assert_int_equal(view(lines, &(struct view_options){.color = VIEW_COLOR_NEVER, .width = 80}), 0);
	assert_null(strstr(text, "worst")); /* each rank has a line of its own */
}

static void test_time(void **state)
{
	static const char lines[] = MAP("computation", "00.0", "0", ROW("0", "1,0.9,0.8,0.7,0.6"));
	struct view_options cut = {
	    .color = VIEW_COLOR_NEVER, .width = 80, .relative = true, .since_ns = 200000000, .until_ns = 700000000};

	(void)state;
	assert_int_equal(view(lines, &cut), 0);
	has("rank 0 :-=\n");
	cut.since_ns = 5000000000;
	cut.until_ns = 0;
	assert_int_equal(view(lines, &cut), -ERANGE);
	assert_string_equal(err, "nothing was recorded in that time");
	cut = (struct view_options){.color = VIEW_COLOR_NEVER, .width = 80, .since_ns = 1800000000600000000};
	assert_int_equal(view(lines, &cut), 0);
	has("rank 0 =+\n");
}

static void test_color(void **state)
{
	static const struct view_options always = {.color = VIEW_COLOR_ALWAYS, .width = 80};
	static const struct view_options automatic = {.width = 80};

	(void)state;
	assert_int_equal(view(MAP("io", "00.0", "0", ROW("0", "1,1,0.3,null,1")), &always), 0);
	/* also copied as text a fast cell is not one that was not judged */
	has("rank 0 \033[38;5;66;48;5;23m..\033[38;5;16;48;5;202m%\033[0m \033[38;5;66;48;5;23m.\033[0m\n");
	assert_int_equal(view(NULL, &automatic), 0);
	assert_null(strchr(text, '\033')); /* no terminal */
}

static void test_regions(void **state)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 80};
	static const char variance[] = HEAD
	    "\"type\":\"variance\",\"id\":4,\"state\":\"closed\",\"class\":\"computation\",\"begin\":"
	    "\"2027-01-15T08:00:02.000000000Z\",\"end\":\"2027-01-15T08:00:05.000000000Z\",\"ranks\":\"3\","
	    "\"performance\":0.5,\"lost_seconds\":1.5,\"confidence\":\"confirmed\",\"alarm\":true,\"effect_of\":null,"
	    "\"severity\":\"critical\",\"caused_seconds\":4,"
	    "\"call_sites\":[{\"from\":\"a\",\"to\":\"b\",\"source\":\"a -> b\",\"lost_seconds\":1}]}\n" HEAD
	    "\"type\":\"variance\",\"id\":5,\"state\":\"open\",\"class\":\"communication\",\"begin\":"
	    "\"2027-01-15T08:00:02.000000000Z\",\"end\":\"2027-01-15T08:00:05.000000000Z\",\"ranks\":\"0-2\","
	    "\"performance\":0.3,\"lost_seconds\":4,\"confidence\":\"confirmed\",\"alarm\":false,\"effect_of\":4}"
	    "\n" HEAD "\"type\":\"diagnosis\",\"variance\":4,\"stage\":1,\"factors\":[{\"name\":\"preempted\","
	    "\"contribution_pct_of_level\":"
	    "80,\"major\":true}],\"interferers\":[{\"comm\":\"cr\\u001bon\",\"pid\":9,\"seconds\":1.2},{\"comm\":"
	    "\"vaprod\",\"pid\":8,\"seconds\":0.03,\"relation\":\"monitor\"}],\"advice\":"
	    "\"Move "
	    "it.\"}\n";

	(void)state;
	write_lines(variance);
	assert_int_equal(view(NULL, &plain), -ENODATA);
	FILE *file = fopen(path, "a");
	fputs(MAP("io", "00.0", "0", ROW("0", "1")), file);
	fclose(file);
	assert_int_equal(view(NULL, &plain), 0);
	has(" 1. critical: computation of rank 3: 1.50 s lost, at 50 % of its best observed\n"
	    "    speed, and made others wait 4.00 s\n");
	has("    when          2027-01-15 08:00:02.0 to 08:00:05.0 UTC: 2.00 s after the\n");
	has("    where         a -> b\n");
	has("    why           80 % preempted: another task ran on its CPU\n");
	has("    preempted by  cr?on (pid 9), 1.20 s of CPU time\n");
	has("                  vaprod (pid 8, this monitor), 30 ms of CPU time, 2 % of the\n"
	    "                  loss\n");
	has("    suggestion    Move it.\n");
	has("    impact        ranks 0-2 waited 4.00 s for it (communication)\n");
	assert_null(strstr(text, " 2. ")); /* an effect is no region of its own */

	/* a region that is sure by its place alone comes after those that are confirmed */
	write_lines(HEAD "\"type\":\"variance\",\"id\":1,\"class\":\"io\",\"begin\":\"2027-01-15T08:00:02Z\",\"end\":"
			 "\"2027-01-15T08:00:05Z\",\"ranks\":\"4-7\",\"performance\":0.9,\"lost_seconds\":9,"
			 "\"confidence\":\"place\",\"severity\":\"info\",\"alarm\":false}\n" HEAD
			 "\"type\":\"variance\",\"id\":2,\"class\":\"io\",\"begin\":\"2027-01-15T08:00:02Z\",\"end\":"
			 "\"2027-01-15T08:00:05Z\",\"ranks\":\"3\",\"performance\":0.5,\"lost_seconds\":1,"
			 "\"confidence\":\"confirmed\",\"severity\":\"warning\",\"alarm\":true}\n" MAP(
			     "io", "00.0", "0", ROW("0", "1")));
	assert_int_equal(view(NULL, &(struct view_options){.color = VIEW_COLOR_NEVER, .width = 120}), 0);
	has(" 1. warning: io of rank 3: 1.00 s lost, at 50 % of its best observed speed\n");
	has(" 2. io of ranks 4-7: 9.00 s lost, at 90 % of its best observed speed [by its place, not certain]\n");
}

#define EFFECT(id, ranks, lost)                                                                                        \
	HEAD "\"type\":\"variance\",\"id\":" id ",\"class\":\"communication\",\"begin\":\"2027-01-15T08:00:02Z\","     \
	     "\"end\":\"2027-01-15T08:00:05Z\",\"ranks\":\"" ranks "\",\"performance\":0.3,\"lost_seconds\":" lost     \
	     ",\"confidence\":\"confirmed\",\"alarm\":false,\"effect_of\":1}\n"

/* Who waited for a region is said once for each rank, and is no more than what is attributed to the region. */
static void test_impact(void **state)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 100};
	static const char own[] = HEAD
	    "\"type\":\"variance\",\"id\":1,\"class\":\"computation\",\"begin\":\"2027-01-15T08:00:02Z\",\"end\":"
	    "\"2027-01-15T08:00:05Z\",\"ranks\":\"1-3\",\"performance\":0.5,\"lost_seconds\":1.5,\"confidence\":"
	    "\"confirmed\",\"alarm\":true,\"severity\":\"warning\",\"caused_seconds\":2}\n" EFFECT("2", "1-3", "1.5")
		EFFECT("4", "2", "1") EFFECT("5", "4", "0.5") MAP("computation", "00.0", "0", ROW("0", "1"));
	static const char lines[] = HEAD
	    "\"type\":\"variance\",\"id\":1,\"class\":\"computation\",\"begin\":\"2027-01-15T08:00:02Z\",\"end\":"
	    "\"2027-01-15T08:00:05Z\",\"ranks\":\"3\",\"performance\":0.5,\"lost_seconds\":1.5,\"confidence\":"
	    "\"confirmed\",\"alarm\":true,\"severity\":\"warning\",\"caused_seconds\":2}\n" EFFECT("2", "0-2", "1.5")
		EFFECT("4", "1", "1") EFFECT("5", "1-3", "0.5") MAP("computation", "00.0", "0", ROW("0", "1"));

	(void)state;
	assert_int_equal(view(lines, &plain), 0);
	has("at 50 % of its best observed speed, and made others\n    wait 2.00 s\n");
	has("    impact        ranks 0-2 waited 2.00 s for it (communication)\n");
	assert_null(strstr(text, "3.00 s for it"));
	/* ranks of the region itself wait for each other: they are named once, too */
	assert_int_equal(view(own, &plain), 0);
	has("    impact        ranks 1-3, for each other, waited 1.67 s for it (communication)\n"
	    "                  rank 4 waited 0.33 s for it (communication)\n");
}

/* Views a region whose record has some more keys: `shown` is there, or, where NULL, no line of that name. */
static void view_region(const char *keys, const char *name, const char *shown)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 120};
	char lines[1024];

	snprintf(lines, sizeof(lines),
		 HEAD "\"type\":\"variance\",\"id\":1,\"class\":\"io\",\"begin\":\"2027-01-15T08:00:02Z\","
		      "\"end\":\"2027-01-15T08:00:05Z\",\"ranks\":\"3\",\"performance\":0.5,"
		      "\"lost_seconds\":1.9,\"confidence\":\"confirmed\",\"alarm\":true,%s}\n%s",
		 keys, MAP("io", "00.0", "0", ROW("0", "1")));
	assert_int_equal(view(lines, &plain), 0);
	if (shown)
		has(shown);
	else
		assert_null(strstr(text, name));
}

/* A region observed in part shows its projected loss, one beside unseen time that it may be longer; wrong values
 * nothing. */
static void test_observed(void **state)
{
#define OBSERVED(pct, whole) "\"observed_pct_of_region\":" pct ",\"whole_lost_seconds\":" whole
#define UNSEEN(before, after) "\"unseen_before_seconds\":" before ",\"unseen_after_seconds\":" after
	static const char observed[] = "    observed ", unseen[] = "    not seen ";

	(void)state;
	view_region(OBSERVED("59", "3.22"), observed,
		    "    observed      59 % of this time; 3.22 s lost if the rest was alike\n");
	view_region(OBSERVED("97", "1.95"), observed, NULL);
	/* the kernel's account is of all its time, observed or not */
	view_region(OBSERVED("59", "3.22") ",\"work_unknown\":true", observed, NULL);
	view_region(OBSERVED("59", "3.22") ",\"causes\":[{\"cause\":\"preempted\",\"ranks\":\"3\",\"begin\":"
					   "\"2027-01-15T08:00:02Z\",\"end\":\"2027-01-15T08:00:05Z\","
					   "\"lost_seconds\":1.8}]",
		    observed, NULL);
	view_region(OBSERVED("null", "1e308"), observed, NULL);
	view_region(OBSERVED("-1", "4"), observed, NULL);
	view_region(OBSERVED("50", "{}"), observed, NULL);
	view_region(UNSEEN("2.2", "0"), unseen, "    not seen      2.20 s before it: it may have begun earlier\n");
	view_region(UNSEEN("0.2", "1.4"), unseen, "    not seen      1.40 s after it: it may have ended later\n");
	view_region(UNSEEN("3", "1"), unseen,
		    "    not seen      3.00 s before and 1.00 s after it: it may have begun earlier and ended later\n");
	view_region(UNSEEN("0.2", "null"), unseen, NULL);
	view_region(UNSEEN("1e308", "-1"), unseen, NULL);
}

/*
 * A later revision of a variance carries its own verdict: head and verdict agree, whatever the last diagnosis said
 * (which is older here).
 */
static void test_verdict(void **state)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 200};
	static const char variance[] = HEAD
	    "\"type\":\"variance\",\"id\":1,\"revision\":%d,\"state\":\"closed\",\"class\":\"computation\",\"begin\":"
	    "\"2027-01-15T08:00:02Z\",\"end\":\"2027-01-15T08:00:05Z\",\"ranks\":\"%s\",\"who\":\"%s\","
	    "\"performance\":0.5,\"lost_seconds\":1.9,\"confidence\":\"confirmed\",\"severity\":\"warning\","
	    "\"alarm\":true,\"effect_of\":null,\"verdict\":\"%s lost 1.9 s: 91 %% off the CPU.\"}\n";
	char lines[4096];
	size_t used;

	(void)state;
	used = (size_t)snprintf(lines, sizeof(lines), variance, 1, "0-1", "ranks 0-1", "ranks 0-1");
	used += (size_t)snprintf(lines + used, sizeof(lines) - used, "%s",
				 HEAD "\"type\":\"diagnosis\",\"variance\":1,\"stage\":1,\"factors\":[],\"cause\":"
				      "\"preempted\",\"culprit\":\"hog\",\"interferers\":[{\"comm\":\"hog\",\"pid\":9,"
				      "\"seconds\":1.8,\"relation\":\"foreign\"}],\"where\":{\"hosts\":[\"n1\"]},"
				      "\"verdict\":\"ranks 0-1 lost 1.9 s.\"}\n");
	used += (size_t)snprintf(lines + used, sizeof(lines) - used, variance, 2, "0", "rank 0", "rank 0");
	snprintf(lines + used, sizeof(lines) - used, "%s", MAP("computation", "00.0", "0", ROW("0", "1")));
	assert_int_equal(view(lines, &plain), 0);
	has("warning: hog preempted rank 0 on host n1: 1.90 s lost\n");
	has(" 1. warning: computation of rank 0: 1.90 s lost");
	has("    verdict       rank 0 lost 1.9 s: 91 % off the CPU.\n");
	assert_null(strstr(text, "0-1"));
}

/* The place of a region is its first call-site of which calls were seen, or what ran inside. */
static void test_where(void **state)
{
#define UNSEEN_SITE "{\"from\":null,\"to\":\"not known (its calls were not observed)\",\"lost_seconds\":1}"
#define INSIDE ",\"inside\":[{\"function\":\"walk\",\"source\":\"walk (a.c:3)\",\"samples\":6,\"pct_of_samples\":60}]"
	static const char where[] = "    where ";

	(void)state;
	view_region("\"call_sites\":[" UNSEEN_SITE "]", where,
		    "    where         not known (its calls were not observed)\n");
	view_region("\"call_sites\":[" UNSEEN_SITE "]" INSIDE, where, NULL);
	has("    inside        60 % in walk (a.c:3)\n");
	view_region("\"call_sites\":[" UNSEEN_SITE
		    ",{\"from\":\"a\",\"to\":\"b\",\"source\":\"a -> b\",\"lost_seconds\":1}]" INSIDE,
		    where, "    where         a -> b\n");
}

/* Views a region of a performance: `shown` is there. */
static void view_speed(const char *performance, const char *more, const char *shown)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 120};
	char lines[1024];

	snprintf(lines, sizeof(lines),
		 HEAD "\"type\":\"variance\",\"id\":1,\"class\":\"io\",\"begin\":\"2027-01-15T08:00:02Z\","
		      "\"end\":\"2027-01-15T08:00:05Z\",\"ranks\":\"3\",\"performance\":%s,"
		      "\"lost_seconds\":1.9,\"confidence\":\"confirmed\",\"alarm\":true%s}\n%s",
		 performance, more, MAP("io", "00.0", "0", ROW("0", "1")));
	assert_int_equal(view(lines, &plain), 0);
	has(shown);
}

/* How fast a region was: not in percent where it stood still, and in other words where its work is not known. */
static void test_speed(void **state)
{
	(void)state;
	view_speed("0.5", "", "io of rank 3: 1.90 s lost, at 50 % of its best observed speed\n");
	view_speed("0.002", "", "io of rank 3: 1.90 s lost, without progress\n");
	view_speed("0.6", ",\"work_unknown\":true", "io of rank 3: 1.90 s lost, able to run for 60 % of the time\n");
}

#define THREAD_ROW "{\"rank\":0,\"thread\":1,\"pid\":7,\"values\":[1]}"

/* The only thread of which anything was judged is no row beside its rank: it says the same. */
static void test_only_thread(void **state)
{
	static const struct view_options options = {.color = VIEW_COLOR_NEVER, .width = 80};
	static const char one[] = MAP("computation", "00.0", "0", ROW("0", "1,1") "," ROW("1", "1,1")) MAP(
	    "computation", "00.4", "0",
	    ROW("0", "0.5") ",{\"rank\":0,\"thread\":0,\"pid\":7,\"values\":[0.5]},{\"rank\":0,\"thread\":1,\"pid\":7,"
			    "\"values\":[null]}," ROW("1", "1"));
	static const char two[] = MAP("computation", "00.0", "0",
				      ROW("0", "0.5") ",{\"rank\":0,\"thread\":0,\"pid\":7,\"values\":"
						      "[0.5]}," THREAD_ROW);

	(void)state;
	assert_int_equal(view(one, &options), 0);
	has("rank 0 ..*");
	has("rank 1 ...");
	assert_null(strstr(text, "thread"));
	assert_int_equal(view(two, &options), 0);
	has(" thread 0 *");
	has(" thread 1 .");
}

/* A whole run without a map is one in which nothing was found; lines without its begin may be of anything. */
static void test_nothing_watched(void **state)
{
	static const struct view_options options = {.color = VIEW_COLOR_NEVER, .width = 80};
	static const char begin[] =
	    "{\"schema\":\"vapro/1\",\"type\":\"hello\",\"time\":\"2027-01-15T08:00:00.0Z\",\"host\":\"n1\"}\n";
	static const char end[] =
	    "{\"schema\":\"vapro/1\",\"type\":\"bye\",\"time\":\"2027-01-15T08:00:09.0Z\",\"host\":\"n1\"}\n";
	char both[512];

	(void)state;
	snprintf(both, sizeof(both), "%s%s", begin, end);
	assert_int_equal(view(both, &options), 0);
	assert_string_equal(text, "no MPI or multi-threaded process was found\n");
	assert_int_equal(view(end, &options), -ENODATA);
	assert_non_null(strstr(err, "no heat map in 1 lines"));
}

/* Threads of a rank are rows, not ranks; waiting is drawn on demand, in digits. */
static void test_ranks_and_waiting(void **state)
{
	struct view_options options = {.color = VIEW_COLOR_NEVER, .width = 80};
	static const char lines[] = MAP("computation", "00.0", "0", ROW("0", "1") "," THREAD_ROW "," ROW("1", "1"))
	    MAP("communication", "00.0", "0", ROW("0", "1,0.9,0.52,0.04,null"));

	(void)state;
	assert_int_equal(view(lines, &options), 0);
	has("computation, job j: 2 ranks,");
	has("The map of waiting is hidden; --class communication draws it.");
	assert_null(strstr(text, "waiting in communication"));
	options.class = "communication";
	assert_int_equal(view(lines, &options), 0);
	has("waiting in communication, job j: 1 rank,");
	has("rank 0 .159 \n");
	has("  waiting, %: . 0  1 10  2 20 ");
	options.class = NULL;
	options.all = true;
	assert_int_equal(view(lines, &options), 0);
	has("waiting in communication, job j");
}

static void test_findings(void **state)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 200};

	(void)state;
	assert_int_equal(
	    view(
		MAP("io", "00.0", "0", ROW("0", "1")) HEAD
		"\"type\":\"rare\",\"source\":\"a -> b\",\"rank\":2,\"fragments\":3,\"seconds\":1.5,"
		"\"cluster\":4}\n" HEAD "\"type\":\"drift\",\"from\":\"a\",\"to\":\"b\",\"ratio\":1.1,"
		"\"windows\":3}\n" HEAD "\"type\":\"imbalance\",\"from\":\"a\",\"to\":\"b\",\"ranks\":\"1\","
		"\"ratio\":1.4,\"ratio_slow\":1.8,\"states\":1,\"time_pct_of_job\":30}\n" HEAD
		"\"type\":\"imbalance\",\"from\":\"a\",\"to\":\"c\",\"ranks\":\"43-63\","
		"\"ratio\":1.24,\"ratio_least\":1.1,\"ratio_most\":1.3,\"states\":2,\"time_pct_of_job\":60,"
		"\"lost_seconds\":3,\"certain\":true,\"shared\":[{\"fact\":\"host\",\"value\":\"n\\u001b2\","
		"\"others\":0}],\"variance\":null}\n" HEAD
		"\"type\":\"noise\",\"id\":1,\"what\":\"tick\\u001ber\",\"relation\":\"foreign\",\"pid\":71,\"n\":2000,"
		"\"longest_us\":312,\"period_ms\":10,\"time_pct_of_ranks\":2,\"lost_seconds\":0.4,\"ranks\":\"0\"}"
		"\n" HEAD
		"\"type\":\"noise\",\"id\":1,\"what\":\"ticker\",\"relation\":\"foreign\",\"pid\":null,\"n\":5000,"
		"\"longest_us\":312,\"period_ms\":10,\"time_pct_of_ranks\":2,\"lost_seconds\":1,\"ranks\":\"?,0\"}"
		"\n" HEAD "\"type\":\"noise\",\"id\":2,\"what\":\"a\"}\n" HEAD "\"type\":\"rare\"}\n",
		&plain),
	    0);
	assert_int_equal(bad, 2);
	has("\nnoise       ticker stalled these processes 5000 times: 0.2 ms each, at most 0.312 ms, each rank on "
	    "average "
	    "every 10 ms over the job, 2.0 % of their time, 1.00 s in all\n");
	has("\nrare        a -> b: other work 3 times, 1.50 s in all, longest on rank 2: too rare to be judged\n");
	has("\ndrift       a -> b: slower on all ranks together, by 10 % over 3 windows\n");
	has("\nimbalance   ranks 43-63, all on host n?2, are always 24 % slower than the others (10 to 30 % in 2 "
	    "states), "
	    "3.00 s lost, most in a -> c: slower hardware or system there\n"
	    "            rank 1 is always 80 % slower than the others, in 1 state (40 % over all), most in a -> b: "
	    "more work, or a "
	    "slower core; both look the same without counters\n");
}

static void test_bad_lines(void **state)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 80};

	(void)state;
	assert_int_equal(view("garbage\n[]\n{}\n" HEAD "\"type\":\"heatmap\"}\n" HEAD
			      "\"type\":\"variance\",\"id\":1}\n" HEAD "\"type\":\"of a later version\"}\n" MAP(
				  "io", "00.0", "0", ROW("0", "1,0.5,\"x\",1")) MAP("io", "00.0", "0", "{\"rank\":0}")
				  HEAD "\"type\":\"heatmap\",\"class\":\"io\",\"begin\":\"2099-01-15T08:00:00Z\",\"bin_"
				       "ns\":200000000,\"rows\":[" ROW("0", "1") "]}\n",
			      &plain),
			 0);
	assert_int_equal(bad, 7);
	has("rank 0 .* .\n");
	assert_int_equal(view("", &plain), -ENODATA);
	assert_int_equal(view(MAP("io", "00.0", "0", ROW("0", "1")), &(struct view_options){.class = "computation"}),
			 -ENODATA);
	assert_non_null(strstr(err, "of class computation"));
	assert_int_equal(view__file("/nonexistent/of-a-test", &plain, stdout, NULL, err, sizeof(err)), -ENOENT);
}

/* One variance with its diagnosis and a window; what a later version might add stands at MORE, between keys. */
#define LATER(type, more, state, scope, severity, reason)                                                              \
	MAP("io", "00.0", "0", ROW("0", "1,0.2"))                                                                      \
	HEAD more "\"type\":\"window\",\"begin\":\"2027-01-15T08:00:00.000000000Z\",\"end\":"                          \
		  "\"2027-01-15T08:00:05.000000000Z\",\"coverage\":{" more "\"total\":0.5},\"uncovered\":[{" more      \
		  "\"labels\":null,\"time_pct_of_job\":50,\"reason\":\"rare\"}" reason "]}\n" HEAD more                \
		  "\"type\":\"variance\",\"id\":4,\"state\":\"" state "\",\"class\":\"io\",\"begin\":"                 \
		  "\"2027-01-15T08:00:02.000000000Z\",\"end\":\"2027-01-15T08:00:05.000000000Z\",\"ranks\":\"3\","     \
		  "\"performance\":0.5,\"lost_seconds\":1.5,\"confidence\":\"confirmed\",\"alarm\":true,"              \
		  "\"effect_of\":null,\"scope\":\"" scope "\",\"severity\":\"" severity "\",\"caused_seconds\":4,"     \
		  "\"call_sites\":[{" more "\"from\":null,\"to\":\"b\",\"source\":\"b\",\"lost_seconds\":1}]}\n" type

/* Keys, records and words that a reader does not know change nothing of what it shows of the others. */
static void later_versions_are_read(void **state)
{
	static const struct view_options plain = {.color = VIEW_COLOR_NEVER, .width = 200};
	char *known;

	(void)state;
	assert_int_equal(view(LATER("", "", "open", "job", "info", ""), &plain), 0);
	assert_int_equal(bad, 0);
	has("rank 3");
	known = strdup(text);
	assert_int_equal(
	    view(LATER(HEAD "\"type\":\"forecast\",\"id\":4}\n", "\"later\":{\"key\":[1]},", "dormant", "rack",
		       "catastrophic", ",{\"labels\":null,\"time_pct_of_job\":9,\"reason\":\"eclipse\"}"),
		 &plain),
	    0);
	assert_int_equal(bad, 0);
	assert_string_equal(text, known);
	free(known);
}

#define HELLO(host)                                                                                                    \
	"{\"schema\":\"vapro/1\",\"type\":\"hello\",\"time\":\"2027-01-15T08:00:15.000000000Z\",\"host\":\"" host      \
	"\"}\n"

/* A file with runs of several daemons: the last run is drawn, or the requested one. */
static void test_runs(void **state)
{
	/* a run whose begin was rotated away, one that was killed inside a line, one that is whole */
	static const char *const lines = MAP("io", "00.0", "0", ROW("1", "1")) HELLO("n1")
	    MAP("io", "10.0", "0", ROW("2", "1")) "{\"schema\":\"vap\n" HELLO("n1")
		MAP("io", "20.0", "0", ROW("3", "1"));
	static const struct {
		int run;
		const char *shown;
		uint64_t bad;
	} diagnoses[] = {{0, "rank 3", 0},  {-1, "rank 3", 0}, {3, "rank 3", 0}, {2, "rank 2", 1},
			 {-2, "rank 2", 1}, {1, "rank 1", 0},  {-3, "rank 1", 0}};
	struct view_options options = {.color = VIEW_COLOR_NEVER, .width = 80};

	(void)state;
	write_lines(lines);
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		options.run = diagnoses[i].run;
		assert_int_equal(view(NULL, &options), 0);
		assert_int_equal(bad, diagnoses[i].bad);
		for (const char *rank = "123"; *rank; rank++) {
			char name[] = "rank ?";

			name[5] = *rank;
			assert_int_equal(strstr(text, name) != NULL, !strcmp(name, diagnoses[i].shown));
		}
	}
	options.run = 4;
	assert_int_equal(view(NULL, &options), -ENOENT);
	assert_non_null(strstr(err, "no run 4, but 3"));
}

/* Output of two hosts in one file is one run of each. */
static void test_hosts(void **state)
{
	struct view_options options = {.color = VIEW_COLOR_NEVER, .width = 80};

	(void)state;
	assert_int_equal(view(HELLO("n1") HELLO("n2") MAP("io", "00.0", "0", ROW("1", "1")) HELLO("n2"), &options), 0);
	has("rank 1");
	assert_int_equal(view(HELLO("n2") HELLO("n1") MAP("io", "00.0", "0", ROW("1", "1")) HELLO("n1")
				  MAP("io", "00.0", "0", ROW("2", "1")),
			      &options),
			 0);
	has("rank 2");
	assert_null(strstr(text, "rank 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_map),
	    cmocka_unit_test(test_revision),
	    cmocka_unit_test(test_slow_stays_visible),
	    cmocka_unit_test(test_time),
	    cmocka_unit_test(test_order_of_loss),
	    cmocka_unit_test(test_color),
	    cmocka_unit_test(test_impact),
	    cmocka_unit_test(test_where),
	    cmocka_unit_test(test_speed),
	    cmocka_unit_test(test_regions),
	    cmocka_unit_test(test_verdict),
	    cmocka_unit_test(test_observed),
	    cmocka_unit_test(test_only_thread),
	    cmocka_unit_test(test_nothing_watched),
	    cmocka_unit_test(test_ranks_and_waiting),
	    cmocka_unit_test(test_findings),
	    cmocka_unit_test(test_bad_lines),
	    cmocka_unit_test(later_versions_are_read),
	    cmocka_unit_test(test_runs),
	    cmocka_unit_test(test_hosts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

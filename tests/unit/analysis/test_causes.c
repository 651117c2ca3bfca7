/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roll-up of causes: free of order, by the latest revision, within its bounds; its sentences and records. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/causes.h"
#include "analysis/result.h"
#include "parsed.h"
#include "report/cause_json.h"
#include "report/cause_text.h"
#include "sim.h"

#define S 1000000000ULL
#define UTC 1800000000000000000ULL
#define REGIONS 300

static const char *const hosts[] = {"n1", "n2", "n3"};
static int32_t some_ranks[REGIONS][3];

static struct causes *new_causes(void)
{
	struct vapro_config config;
	struct causes *causes;

	config__init(&config);
	causes = causes__new(&config);
	assert_non_null(causes);
	return causes;
}

/* Makes the revision of a region; the last one of each is what counts. */
static struct cause_region make(uint64_t id, uint32_t revision)
{
	static const char *const culprits[] = {"hog", "backup", NULL};
	static const char *const factors[] = {"preempted", "preempted", "dram"};
	int32_t *ranks = some_ranks[id % REGIONS];

	for (int i = 0; i < 3; i++)
		ranks[i] = (int32_t)(id % 50 + (uint64_t)i);
	return (struct cause_region){
	    .job = "j",
	    .user = 1,
	    .id = id,
	    .revision = revision,
	    .closed = revision > 0,
	    .confirmed = id % 5 != 0,
	    .alarm = id % 7 == 0,
	    /* the first revision may be wrong about everything */
	    .cause = revision ? factors[id % 3] : "unknown",
	    .culprit = revision ? culprits[id % 3] : NULL,
	    .pid = 100 + (uint32_t)(id % 3),
	    .place = id % 2 ? "host" : "socket",
	    .class = VAPRO_COMPUTATION,
	    .begin_ns = UTC + id * S,
	    .end_ns = UTC + (id + 2) * S,
	    .lost_seconds = 0.125 * (double)(id % 16) + revision,
	    .caused_seconds = id % 4 ? 0 : 1,
	    .ranks = ranks,
	    .rank_count = 1 + (uint32_t)(id % 3),
	    .hosts = &hosts[id % 3],
	    .host_count = 1,
	};
}

/* Adds all regions in an order that the seed decides, some revisions after later ones. */
static void add_all(struct causes *causes, uint64_t seed)
{
	uint64_t order[2 * REGIONS];

	for (size_t i = 0; i < 2 * REGIONS; i++)
		order[i] = i;
	for (size_t i = 2 * REGIONS; seed && i-- > 1;) {
		size_t other = (size_t)(sim_random(&seed) * (double)(i + 1));
		uint64_t swap = order[i];

		order[i] = order[other];
		order[other] = swap;
	}
	for (size_t i = 0; i < 2 * REGIONS; i++) {
		struct cause_region region = make(1 + order[i] % REGIONS, order[i] >= REGIONS);

		assert_int_equal(causes__add(causes, &region), 0);
	}
	assert_int_equal(causes__add_time(causes, "j", 1, UTC, UTC + 100 * S, 10000), 0);
}

static void is_same(const struct cause *a, const struct cause *b)
{
	char left[CAUSE_TEXT_SIZE], right[CAUSE_TEXT_SIZE];

	assert_string_equal(cause_text__write(a, left), cause_text__write(b, right));
	assert_true(a->lost_seconds == b->lost_seconds && a->caused_seconds == b->caused_seconds);
	assert_true(a->begin_ns == b->begin_ns && a->end_ns == b->end_ns);
	assert_true(a->alarm == b->alarm && a->severity == b->severity && a->pid == b->pid);
	assert_int_equal(a->regions, b->regions);
	assert_int_equal(a->rank_count, b->rank_count);
	assert_memory_equal(a->ranks, b->ranks, a->rank_count * sizeof(*a->ranks));
	assert_int_equal(a->host_count, b->host_count);
	for (uint32_t i = 0; i < a->host_count; i++)
		assert_string_equal(a->hosts[i], b->hosts[i]);
	assert_int_equal(a->variance_count, b->variance_count);
	assert_memory_equal(a->variances, b->variances, a->variance_count * sizeof(*a->variances));
}

static void test_order(void **state)
{
	struct causes *first = new_causes();
	struct cause_list wanted;
	double lost = 0;

	(void)state;
	add_all(first, 0);
	assert_int_equal(causes__list(first, &wanted), 0);
	/* hog, backup, DRAM of two places; each confirmed and not */
	assert_int_equal(wanted.count, 8);
	for (uint32_t i = 0; i < wanted.count; i++)
		lost += wanted.items[i].lost_seconds;
	for (uint64_t id = 1; id <= REGIONS; id++)
		lost -= make(id, 1).lost_seconds;
	assert_true(fabs(lost) < 1e-6);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct causes *other = new_causes();
		struct cause_list list;

		add_all(other, seed);
		assert_int_equal(causes__list(other, &list), 0);
		assert_int_equal(list.count, wanted.count);
		for (uint32_t i = 0; i < list.count; i++)
			is_same(&list.items[i], &wanted.items[i]);
		causes__free_list(&list);
		causes__free(other);
	}
	causes__free_list(&wanted);
	causes__free(first);
}

/* What waits for another region is no cause; a region that becomes an effect ceases to be one. */
static void test_effects(void **state)
{
	struct causes *causes = new_causes();
	struct cause_region region = make(1, 0);
	struct cause_list list;

	(void)state;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 1);
	causes__free_list(&list);
	region.revision = 1;
	region.effect_of = 7;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 0);
	causes__free_list(&list);
	causes__free(causes);
}

/* A region has several causes; those that a later revision has no more do not count, in any order. */
static void test_parts(void **state)
{
	static const int orders[][4] = {{0, 1, 2, 3}, {2, 3, 0, 1}, {2, 0, 3, 1}, {0, 2, 1, 3}, {2, 0, 1, 3}};

	(void)state;
	for (size_t o = 0; o < sizeof(orders) / sizeof(*orders); o++) {
		struct cause_region parts[4];
		struct causes *causes = new_causes();
		struct cause_list list;

		for (int i = 0; i < 4; i++) {
			parts[i] = make(3, 1);
			parts[i].confirmed = true;
			parts[i].revision = i < 2 ? 1 : 2;
			parts[i].part = i % 2;
			parts[i].cause = i % 2 ? "stopped" : "throttled";
			parts[i].lost_seconds = 1 + i;
		}
		parts[3].cause = "steal";
		for (int i = 0; i < 4; i++)
			assert_int_equal(causes__add(causes, &parts[orders[o][i]]), 0);
		assert_int_equal(causes__list(causes, &list), 0);
		assert_int_equal(list.count, 2);
		assert_string_equal(list.items[0].cause, "steal");
		assert_true(list.items[0].lost_seconds == 4);
		assert_string_equal(list.items[1].cause, "throttled");
		assert_true(list.items[1].lost_seconds == 3);
		causes__free_list(&list);
		/* the next revision has one cause only */
		parts[0].revision = 3;
		assert_int_equal(causes__add(causes, &parts[0]), 0);
		assert_int_equal(causes__list(causes, &list), 0);
		assert_int_equal(list.count, 1);
		assert_true(list.items[0].lost_seconds == 1);
		causes__free_list(&list);
		causes__free(causes);
	}
}

/* Regions with several causes are folded together, and stale causes are dropped. */
static void test_folded_parts(void **state)
{
	struct causes *causes = new_causes();
	const uint64_t count = 2 * CAUSES_REGIONS;
	struct cause_list list;

	(void)state;
	for (uint64_t id = 1; id <= count; id++) {
		for (uint32_t revision = 0; revision < 2; revision++) {
			for (uint32_t part = 0; part < 3 - revision; part++) {
				struct cause_region region = make(1, 1);

				region.id = id;
				region.part = part;
				region.revision = revision;
				region.closed = revision;
				region.cause = part ? part > 1 ? "steal" : "stopped" : "preempted";
				region.culprit = NULL;
				region.place = NULL;
				region.lost_seconds = part ? 0.25 : 0.5;
				assert_int_equal(causes__add(causes, &region), 0);
			}
		}
	}
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 2);
	assert_true(list.items[0].lost_seconds == 0.5 * (double)count);
	assert_true(list.items[1].lost_seconds == 0.25 * (double)count);
	assert_int_equal(list.items[1].regions, count);
	causes__free_list(&list);
	causes__free(causes);
}

#define MINUTE (60 * S)

/* One cause of four ranks' 10 hours: its begin and end in minutes, and what it cost. */
static void rates(uint64_t begin, uint64_t end, double lost, double caused, double share, enum vapro_severity severity)
{
	struct causes *causes = new_causes();
	struct cause_region region = make(7, 1);
	struct cause_list list;

	region.alarm = region.confirmed = true;
	region.begin_ns = UTC + begin * MINUTE;
	region.end_ns = UTC + end * MINUTE;
	region.lost_seconds = lost;
	region.caused_seconds = caused;
	assert_int_equal(causes__add(causes, &region), 0);
	for (uint64_t minute = 0; minute < 600; minute += 5)
		assert_int_equal(
		    causes__add_time(causes, "j", 1, UTC + minute * MINUTE, UTC + (minute + 5) * MINUTE, 1200), 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 1);
	assert_true(fabs(list.items[0].rated_share - share) < 1e-9);
	assert_true(fabs(list.items[0].denominator_seconds - 14400) < 1e-6);
	assert_int_equal(list.items[0].severity, severity);
	causes__free_list(&list);
	causes__free(causes);
}

/* A cause is rated by its worst hour, whenever that is, and by what it made others wait. */
static void test_rating(void **state)
{
	(void)state;
	for (uint64_t begin = 0; begin < 600; begin += 37) {
		rates(begin, begin + 1, 10, 30, 40.0 / 14400, VAPRO_WARNING);
		rates(begin, begin + 1, 240, 490, 730.0 / 14400, VAPRO_CRITICAL);
		rates(begin, begin + 1, 0.09, 2, 2.09 / 14400, VAPRO_INFO);
		rates(begin, begin + 1, 0.11, 0, 0.11 / 14400, VAPRO_WARNING);
	}
	/* half of what lasts two hours lies in one */
	rates(100, 220, 1500, 0, 750.0 / 14400, VAPRO_CRITICAL);
	rates(100, 220, 1400, 0, 700.0 / 14400, VAPRO_WARNING);
}

/* The same of a job of ten minutes: all of its time counts. */
static void test_rating_of_a_short_job(void **state)
{
	struct causes *causes = new_causes();
	struct cause_region region = make(7, 1);
	struct cause_list list;

	(void)state;
	region.alarm = region.confirmed = true;
	region.lost_seconds = 60;
	region.caused_seconds = 61;
	for (int minutes = 10; minutes <= 20; minutes += 10) {
		assert_int_equal(causes__add(causes, &region), 0);
		assert_int_equal(causes__add_time(causes, "j", 1, UTC + (uint64_t)(minutes - 10) * MINUTE,
						  UTC + (uint64_t)minutes * MINUTE, 2400),
				 0);
		assert_int_equal(causes__list(causes, &list), 0);
		assert_true(fabs(list.items[0].rated_share - 121.0 / (240 * minutes)) < 1e-9);
		assert_int_equal(list.items[0].severity, minutes == 10 ? VAPRO_CRITICAL : VAPRO_WARNING);
		causes__free_list(&list);
	}
	causes__free(causes);
}

/* A run of days holds a bounded number of regions and loses nothing of the sums. */
static void test_bounds(void **state)
{
	struct causes *causes = new_causes();
	const uint64_t count = 5 * CAUSES_REGIONS;
	struct cause_list list;

	(void)state;
	for (uint64_t id = 1; id <= count; id++) {
		struct cause_region region = make(1, 1);

		region.id = id;
		region.revision = 0;
		region.lost_seconds = id == 9 ? 50 : 0.25;
		assert_int_equal(causes__add(causes, &region), 0);
	}
	/* a late revision of what was summed up for good counts no second time */
	assert_int_equal(causes__add(causes, &(struct cause_region){.job = "j",
								    .user = 1,
								    .id = 5,
								    .revision = 1,
								    .confirmed = true,
								    .cause = "preempted",
								    .culprit = "backup",
								    .lost_seconds = 100}),
			 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].regions, count);
	assert_true(list.items[0].lost_seconds == 0.25 * (double)(count - 1) + 50);
	assert_int_equal(list.items[0].variances[0], 9);
	assert_int_equal(list.items[0].variance_count, CAUSE_VARIANCES);
	causes__free_list(&list);
	causes__free(causes);
}

/* Any number of names: the first ones stay apart, all further ones are one cause. */
static void test_names(void **state)
{
	struct causes *causes = new_causes();
	struct cause_list list;
	uint64_t others = 0;
	char name[32];

	(void)state;
	for (uint64_t id = 1; id <= CAUSES_NAMES + 100; id++) {
		struct cause_region region = make(1, 1);

		snprintf(name, sizeof(name), "task-%llu", (unsigned long long)(id == CAUSES_NAMES + 100 ? 1 : id));
		region.id = id;
		region.culprit = name;
		assert_int_equal(causes__add(causes, &region), 0);
	}
	assert_int_equal(causes__list(causes, &list), 0);
	for (uint32_t i = 0; i < list.count; i++) {
		if (!strcmp(list.items[i].culprit, CAUSES_OTHER))
			others = list.items[i].regions;
		if (!strcmp(list.items[i].culprit, "task-1"))
			assert_int_equal(list.items[i].regions, 2);
	}
	assert_in_range(others, 90, 110);
	causes__free_list(&list);
	causes__free(causes);
}

static void reads(const struct cause_region *region, const char *wanted)
{
	struct causes *causes = new_causes();
	char text[CAUSE_TEXT_SIZE];
	struct cause_list list;

	assert_int_equal(causes__add(causes, region), 0);
	assert_int_equal(causes__add_time(causes, region->job, region->user, UTC, UTC + 100 * S, 1000), 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 1);
	assert_string_equal(cause_text__write(&list.items[0], text), wanted);
	causes__free_list(&list);
	causes__free(causes);
}

/* Tasks of one name are one culprit, but for those of other jobs: each job is one, and its rank is named if it is one.
 */
static void test_other_jobs(void **state)
{
	static const struct {
		const char *job;
		int32_t rank;
	} tasks[] = {{NULL, -1}, {"slurm:7", 2}, {"slurm:8", 0}, {"slurm:7", 2}, {"slurm:8", 5}};
	static const char *const wanted[] = {"job slurm:8 (app) preempted", "rank 2 of job slurm:7 (app) preempted",
					     "app preempted"};
	struct causes *causes = new_causes();
	char text[CAUSE_TEXT_SIZE];
	struct cause_list list;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		const struct cause_region region = {.job = "j",
						    .id = i + 1,
						    .confirmed = true,
						    .cause = "preempted",
						    .culprit = "app",
						    .culprit_job = tasks[i].job,
						    .culprit_rank = tasks[i].rank,
						    .relation = tasks[i].job ? VAPRO_OTHER_JOB : VAPRO_FOREIGN,
						    .pid = 100 + i,
						    .lost_seconds = 1 + i,
						    .begin_ns = UTC,
						    .end_ns = UTC + S};

		assert_int_equal(causes__add(causes, &region), 0);
	}
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(strncmp(cause_text__write(&list.items[i], text), wanted[i], strlen(wanted[i])), 0);
	causes__free_list(&list);
	causes__free(causes);
}

static void test_sentences(void **state)
{
	static const int32_t three[] = {3}, unknown[] = {-1};
	struct cause_region region = {.job = "j",
				      .id = 1,
				      .confirmed = true,
				      .cause = "preempted",
				      .culprit = "hog",
				      .pid = 7,
				      .lost_seconds = 1.5,
				      .ranks = three,
				      .rank_count = 1,
				      .hosts = hosts,
				      .host_count = 1};

	(void)state;
	reads(&region, "hog preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job");
	region.culprit = NULL;
	reads(&region, "other tasks preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job");
	region.culprit = "hog";
	region.culprit_seconds = 1;
	region.task_seconds = 3;
	reads(&region, "hog and others preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job");
	region.relation = VAPRO_OTHER_JOB;
	region.culprit_job = "slurm:7";
	region.culprit_rank = 4;
	reads(&region,
	      "rank 4 of job slurm:7 (hog) and others preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job");
	region.culprit_seconds = 3;
	region.culprit_rank = -1;
	reads(&region, "job slurm:7 (hog) preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job");
	region.culprit_job = NULL;
	region.relation = VAPRO_MONITOR;
	region.culprit = "vaprod";
	region.caused_seconds = 4;
	reads(&region,
	      "this monitor (vaprod) preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job (0.55 % with the "
	      "waiting); others waited 4.00 s for it");
	region.relation = VAPRO_SAME_JOB;
	region.culprit = "a\033b";
	region.caused_seconds = 0;
	reads(&region, "a?b, a task of the job itself, preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job");
	region = (struct cause_region){.job = "j",
				       .id = 1,
				       .cause = "late_peer",
				       .lost_seconds = 0.02,
				       .ranks = unknown,
				       .rank_count = 1,
				       .hosts = hosts,
				       .host_count = 2};
	reads(&region, "waiting for late ranks, which no slow region explains: one process on 2 hosts: 20 ms lost, "
		       "0.0020 % of the job");
	region.cause = "dram";
	region.host_count = 0;
	reads(&region, "DRAM: one process: 20 ms lost, 0.0020 % of the job");
	region.cause = "a word of a later version";
	reads(&region, "a word of a later version: one process: 20 ms lost, 0.0020 % of the job");
}

/* When it was, from the begin of the job on, and the share that is rated where that is another one. */
static void test_times_in_sentences(void **state)
{
	static const int32_t three[] = {3};
	struct cause_region region = {.job = "j",
				      .id = 1,
				      .confirmed = true,
				      .alarm = true,
				      .cause = "stopped",
				      .lost_seconds = 20,
				      .begin_ns = UTC + 12400000000,
				      .end_ns = UTC + 15600000000,
				      .ranks = three,
				      .rank_count = 1};

	(void)state;
	reads(&region, "stopped (signal or tracer): rank 3, from 12.4 to 15.6 s: 20.0 s lost, 2.00 % of the job");
	region.caused_seconds = 33;
	reads(&region,
	      "stopped (signal or tracer): rank 3, from 12.4 to 15.6 s: 20.0 s lost, 2.00 % of the job (5.30 % "
	      "with the waiting); others waited 33.0 s for it");
	region.begin_ns = UTC - S;
	region.caused_seconds = 0;
	reads(&region, "stopped (signal or tracer): rank 3, from 0.0 to 15.6 s: 20.0 s lost, 2.00 % of the job");
}

/* Of a job of two hours, times are hours and minutes, and the share that is rated is that of the worst hour. */
static void test_times_of_a_long_job(void **state)
{
	static const int32_t three[] = {3};
	struct cause_region region = {.job = "j",
				      .confirmed = true,
				      .alarm = true,
				      .cause = "stopped",
				      .lost_seconds = 20,
				      .caused_seconds = 33,
				      .ranks = three,
				      .rank_count = 1};
	struct causes *causes = new_causes();
	char text[CAUSE_TEXT_SIZE];
	struct cause_list list;

	(void)state;
	for (uint64_t minute = 0; minute < 120; minute += 5)
		assert_int_equal(
		    causes__add_time(causes, "j", 0, UTC + minute * MINUTE, UTC + (minute + 5) * MINUTE, 1200), 0);
	for (uint64_t second = 60; second <= 3723; second += 3663) {
		region.id++;
		region.begin_ns = UTC + second * S;
		region.end_ns = UTC + (second + 2) * S;
		assert_int_equal(causes__add(causes, &region), 0);
	}
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 1);
	assert_string_equal(
	    cause_text__write(&list.items[0], text),
	    "stopped (signal or tracer): rank 3, 2 times from 0:01:00 to 1:02:05: 40.0 s lost, 0.14 % of the "
	    "job (0.37 % of its worst hour, with the waiting); others waited 66.0 s for it");
	causes__free_list(&list);
	causes__free(causes);
}

/* What nothing explains, below all bounds, is counted and has no line; where there is no other cause, it has one. */
static void test_little(void **state)
{
	static const int32_t three[] = {3};
	struct cause_region stop = {.job = "j",
				    .id = 1,
				    .confirmed = true,
				    .alarm = true,
				    .cause = "stopped",
				    .lost_seconds = 20,
				    .begin_ns = UTC,
				    .end_ns = UTC + S,
				    .ranks = three,
				    .rank_count = 1};
	struct cause_region rest = stop;

	(void)state;
	rest.cause = "unknown";
	rest.confirmed = rest.alarm = false;
	rest.part = 1;
	for (int i = 0; i < 3; i++) {
		struct causes *causes = new_causes();
		struct cause_list list;

		rest.lost_seconds = i == 1 ? 2 : 0.003;
		rest.part = i < 2;
		assert_int_equal(i < 2 ? causes__add(causes, &stop) : 0, 0);
		assert_int_equal(causes__add(causes, &rest), 0);
		assert_int_equal(causes__add_time(causes, "j", 0, UTC, UTC + 100 * S, 1000), 0);
		assert_int_equal(causes__list(causes, &list), 0);
		assert_int_equal(list.count, i < 2 ? 2 : 1);
		assert_int_equal(cause_text__listed(&list), i == 1 ? 2 : 1);
		causes__free_list(&list);
		causes__free(causes);
	}
}

/* One to three ranks in one variance or in two of one cause. */
static void test_ranks_in_sentences(void **state)
{
	static const int32_t ranks[] = {3, 4, 9};
	static const struct {
		uint32_t ranks;
		int regions;
		const char *wanted;
	} cases[] = {
	    {1, 2, "hog preempted rank 3 on host n1, 2 times: 3.00 s lost, 0.30 % of the job"},
	    {2, 1, "hog preempted ranks 3 and 4 on host n1: 1.50 s lost, 0.15 % of the job"},
	    {2, 2,
	     "hog preempted ranks 3 and 4 on host n1, 4 times in all: 3.00 s lost, 0.30 % of the job (2 regions)"},
	    {3, 1, "hog preempted 3 ranks on host n1: 1.50 s lost, 0.15 % of the job"},
	    {3, 2, "hog preempted 3 ranks on host n1, 6 times in all: 3.00 s lost, 0.30 % of the job (2 regions)"},
	};
	char text[CAUSE_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cause_region region = {.job = "j",
					      .confirmed = true,
					      .cause = "preempted",
					      .culprit = "hog",
					      .lost_seconds = 1.5,
					      .ranks = ranks,
					      .rank_count = cases[i].ranks,
					      .hosts = hosts,
					      .host_count = 1};
		struct causes *causes = new_causes();
		struct cause_list list;

		for (int k = 0; k < cases[i].regions; k++) {
			region.id++;
			assert_int_equal(causes__add(causes, &region), 0);
		}
		assert_int_equal(causes__add_time(causes, "j", 0, UTC, UTC + 100 * S, 1000), 0);
		assert_int_equal(causes__list(causes, &list), 0);
		assert_int_equal(list.count, 1);
		assert_string_equal(cause_text__write(&list.items[0], text), cases[i].wanted);
		causes__free_list(&list);
		causes__free(causes);
	}
}

/* A diagnosis is emitted again when what it says in words changes: ranks, threads, place, cause or culprit. */
static void test_emitted_again(void **state)
{
	static const int32_t both[] = {0, 1}, others[] = {2, 3};
	static const struct result_shared places[] = {{"cpu", "0", 0, NULL}, {"cpu", "1", 0, NULL}};
	static const struct result_interferer tasks[] = {{.comm = "hog"}, {.comm = "backup"}};
	struct diagnosis_of item = {0};
	struct result_variance out = {
	    .id = 1,
	    .state = VAPRO_REGION_CLOSED,
	    .ranks = both,
	    .rank_count = 2,
	    .who = "ranks 0-1",
	    .lost_seconds = 2,
	    .diagnosis = {
		.stage = 1, .cause = "preempted", .culprit = &tasks[0], .shared = &places[0], .shared_count = 1}};

	(void)state;
	assert_false(result__diagnosis_emitted(&item, &out));
	assert_true(result__diagnosis_emitted(&item, &out));
	out.ranks = others;
	assert_false(result__diagnosis_emitted(&item, &out));
	out.ranks = both;
	assert_false(result__diagnosis_emitted(&item, &out));
	out.who = "thread 0 of ranks 0-1";
	assert_false(result__diagnosis_emitted(&item, &out));
	out.diagnosis.shared = &places[1];
	assert_false(result__diagnosis_emitted(&item, &out));
	out.diagnosis.culprit = &tasks[1];
	assert_false(result__diagnosis_emitted(&item, &out));
	out.diagnosis.cause = "throttled";
	assert_false(result__diagnosis_emitted(&item, &out));
	out.rank_count = 1;
	assert_false(result__diagnosis_emitted(&item, &out));
	assert_true(result__diagnosis_emitted(&item, &out));
}

static char *line;

static int store(void *arg, enum record_object type, const char *text)
{
	assert_int_equal(type, RECORD_OBJECT_cause);
	leave_line(text);
	(*(unsigned *)arg)++;
	free(line);
	line = strdup(text);
	return 0;
}

/* A cause is emitted when it changed much, and at the end in any case. */
static void test_records(void **state)
{
	struct causes *causes = new_causes();
	struct cause_region region = make(6, 1);
	unsigned count = 0;
	cJSON *object;

	(void)state;
	region.lost_seconds = 1;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(causes__add_time(causes, "j", 1, UTC, UTC + 100 * S, 100), 0);
	assert_int_equal(cause_json__put(causes, UTC, "n9", false, store, &count), 0);
	assert_int_equal(count, 1);
	region.revision++;
	region.lost_seconds = 1.05;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(cause_json__put(causes, UTC, "n9", false, store, &count), 0);
	assert_int_equal(count, 1);
	region.revision++;
	region.lost_seconds = 1.5;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(cause_json__put(causes, UTC, "n9", false, store, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(cause_json__put(causes, UTC, "n9", true, store, &count), 0);
	assert_int_equal(count, 3);
	object = cJSON_Parse(line);
	assert_non_null(object);
	is_text(object, "type", "cause");
	is_text(object, "job", "j");
	is_number(object, "uid", 0);
	assert_true(cJSON_IsTrue(at(object, "final")));
	is_text(object, "cause", "preempted");
	is_text(object, "factor", "preempted");
	is_text(object, "culprit/comm", "hog");
	is_number(object, "culprit/pid", 100);
	is_text(object, "culprit/relation", "foreign");
	is_null(object, "place");
	is_number(object, "lost_seconds", 1.5);
	is_number(object, "regions", 1);
	is_text(object, "ranks", "6");
	is_text(object, "hosts/0", "n1");
	is_number(object, "host_count", 1);
	is_number(object, "variances/0", 6);
	is_text(object, "text", "hog preempted rank 6 on host n1, from 6.0 to 8.0 s: 1.50 s lost, 1.50 % of the job");
	cJSON_Delete(object);
	free(line);
	line = NULL;
	causes__free(causes);
}

/* Threads of a rank may lose more than the rank's time: a share of it never exceeds 1. */
static void test_threads(void **state)
{
	struct causes *causes = new_causes();
	struct cause_region region = make(6, 1);
	struct cause_list list;

	(void)state;
	region.lost_seconds = 36;
	region.caused_seconds = 1;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(causes__add_time(causes, "j", 1, UTC, UTC + 25 * S, 25), 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 1);
	assert_true(list.items[0].lost_share == 1);
	assert_true(list.items[0].share == 1);
	assert_true(list.items[0].rated_share <= 1);
	assert_true(list.items[0].lost_seconds == 36);
	causes__free_list(&list);
	causes__free(causes);
}

static int count_final(void *arg, enum record_object type, const char *text)
{
	leave_line(text);
	*(unsigned *)arg += type == RECORD_OBJECT_cause && strstr(text, "\"final\":true");
	return 0;
}

/* Short jobs follow each other beside one that goes on: each is emitted as a whole once, and is forgotten. */
static void test_jobs_that_are_over(void **state)
{
	struct causes *causes = new_causes();
	unsigned finals = 0, listed[2] = {0};
	struct cause_list list;
	char name[16];

	(void)state;
	for (uint64_t i = 0; i < 400; i++) {
		uint64_t begin = UTC + 10 * i * S;
		struct cause_region region = make(i + 1, 1);

		snprintf(name, sizeof(name), "short%u", (unsigned)i);
		region.job = name;
		region.begin_ns = begin;
		region.end_ns = begin + 2 * S;
		region.lost_seconds = 1;
		assert_int_equal(causes__add(causes, &region), 0);
		assert_int_equal(causes__add_time(causes, name, 1, begin, begin + 5 * S, 5), 0);
		assert_int_equal(causes__add_time(causes, "long", 1, begin, begin + 10 * S, 10), 0);
		region = make(1000, (uint32_t)i);
		region.job = "long";
		assert_int_equal(causes__add(causes, &region), 0);
		assert_int_equal(cause_json__put(causes, begin + 10 * S, "n9", false, count_final, &finals), 0);
		if (i % 200 != 199)
			continue;
		assert_int_equal(causes__list(causes, &list), 0);
		listed[i / 200] = list.count;
		causes__free_list(&list);
	}
	/* those of the last ten minutes, and the long one */
	assert_int_equal(listed[0], 61);
	assert_int_equal(listed[1], 61);
	assert_int_equal(finals, 400 - 60);
	assert_int_equal(cause_json__put(causes, UTC, "n9", true, count_final, &finals), 0);
	assert_int_equal(finals, 400 + 1);
	causes__free(causes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_effects),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_folded_parts),
	    cmocka_unit_test(test_rating),
	    cmocka_unit_test(test_rating_of_a_short_job),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_other_jobs),
	    cmocka_unit_test(test_sentences),
	    cmocka_unit_test(test_times_in_sentences),
	    cmocka_unit_test(test_times_of_a_long_job),
	    cmocka_unit_test(test_little),
	    cmocka_unit_test(test_ranks_in_sentences),
	    cmocka_unit_test(test_records),
	    cmocka_unit_test(test_emitted_again),
	    cmocka_unit_test(test_jobs_that_are_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

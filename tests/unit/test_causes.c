/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The roll-up of causes: free of order, by the latest revision, within its bounds; its sentences and records; and a job
 * of 1,024 ranks in which one program is the cause on 16 hosts, of which the first lines of every text speak.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/causes.h"
#include "analysis/result.h"
#include "parsed.h"
#include "report/cause_json.h"
#include "report/cause_text.h"
#include "report/pipeline.h"
#include "report/summary.h"
#include "report/view.h"
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
	    .severity = VAPRO_WARNING,
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
	assert_int_equal(causes__add_time(causes, "j", 1, 10000), 0);
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
		cause_list__free(&list);
		causes__free(other);
	}
	cause_list__free(&wanted);
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
	cause_list__free(&list);
	region.revision = 1;
	region.effect_of = 7;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 0);
	cause_list__free(&list);
	/* its loss is waiting that its cause caused, also where that one's last revision does not count it any more */
	region = make(7, 1);
	region.caused_seconds = 0;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 1);
	assert_true(list.items[0].caused_seconds == make(1, 0).lost_seconds);
	cause_list__free(&list);
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
	cause_list__free(&list);
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
	cause_list__free(&list);
	causes__free(causes);
}

static void reads(const struct cause_region *region, const char *wanted)
{
	struct causes *causes = new_causes();
	char text[CAUSE_TEXT_SIZE];
	struct cause_list list;

	assert_int_equal(causes__add(causes, region), 0);
	assert_int_equal(causes__add_time(causes, region->job, region->user, 1000), 0);
	assert_int_equal(causes__list(causes, &list), 0);
	assert_int_equal(list.count, 1);
	assert_string_equal(cause_text__write(&list.items[0], text), wanted);
	cause_list__free(&list);
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
	region.culprit_seconds = 1;
	region.task_seconds = 3;
	reads(&region, "hog and others preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job");
	region.relation = VAPRO_MONITOR;
	region.culprit = "vaprod";
	region.caused_seconds = 4;
	reads(&region,
	      "this monitor (vaprod) preempted rank 3 on host n1: 1.50 s lost, 0.15 % of the job; others waited "
	      "4.00 s for it");
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

/* A diagnosis is emitted again when what it says in words changes: ranks, threads, place, cause or culprit. */
static void test_emitted_again(void **state)
{
	static const int32_t both[] = {0, 1}, others[] = {2, 3};
	static const struct result_shared places[] = {{"cpu", "0", 0}, {"cpu", "1", 0}};
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
	assert_false(diagnosis__emitted(&item, &out));
	assert_true(diagnosis__emitted(&item, &out));
	out.ranks = others;
	assert_false(diagnosis__emitted(&item, &out));
	out.ranks = both;
	assert_false(diagnosis__emitted(&item, &out));
	out.who = "thread 0 of ranks 0-1";
	assert_false(diagnosis__emitted(&item, &out));
	out.diagnosis.shared = &places[1];
	assert_false(diagnosis__emitted(&item, &out));
	out.diagnosis.culprit = &tasks[1];
	assert_false(diagnosis__emitted(&item, &out));
	out.diagnosis.cause = "throttled";
	assert_false(diagnosis__emitted(&item, &out));
	out.rank_count = 1;
	assert_false(diagnosis__emitted(&item, &out));
	assert_true(diagnosis__emitted(&item, &out));
}

static char *line;

static int store(void *arg, const char *text)
{
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
	assert_int_equal(causes__add_time(causes, "j", 1, 100), 0);
	assert_int_equal(json__causes(causes, UTC, "n9", false, store, &count), 0);
	assert_int_equal(count, 1);
	region.revision++;
	region.lost_seconds = 1.05;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(json__causes(causes, UTC, "n9", false, store, &count), 0);
	assert_int_equal(count, 1);
	region.revision++;
	region.lost_seconds = 1.5;
	assert_int_equal(causes__add(causes, &region), 0);
	assert_int_equal(json__causes(causes, UTC, "n9", false, store, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(json__causes(causes, UTC, "n9", true, store, &count), 0);
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
	is_number(object, "lost_pct", 1.5);
	is_number(object, "regions", 1);
	is_number(object, "rank_intervals", 1);
	is_text(object, "ranks", "6");
	is_text(object, "hosts/0", "n1");
	is_number(object, "host_count", 1);
	is_number(object, "variances/0", 6);
	is_text(object, "text", "hog preempted rank 6 on host n1: 1.50 s lost, 1.50 % of the job");
	cJSON_Delete(object);
	free(line);
	line = NULL;
	causes__free(causes);
}

/* A job of 1,024 ranks on 16 hosts: on each of them a program takes half of one rank's CPU twice for a second. */
#define RANKS 1024
#define PER_HOST 64
#define SECONDS 30
#define BIN_S 0.2

static bool disturbed(uint32_t rank, uint64_t bin)
{
	uint64_t host = rank / PER_HOST;

	return (rank % PER_HOST == host && bin / 5 == 6 + host % 4) ||
	       (rank % PER_HOST == host + 20 && bin / 5 == 15 + host % 3);
}

static void put(struct stream_sink *sink, const struct stream_event *event)
{
	assert_int_equal(stream__put(sink, event), 0);
}

static void put_bin(struct stream_sink *sink, uint32_t rank, uint64_t bin, uint64_t *calls)
{
	bool disturbs = disturbed(rank, bin);
	uint32_t n = disturbs ? 10 : 20;
	double each[] = {8e6, 1.5e6};

	for (uint32_t of = 0; of < 2; of++) {
		struct stream_event event = {.type = STREAM_BUNDLE};
		struct vapro_bundle *bundle = &event.bundle;
		double ns = each[of] * (of || !disturbs ? 1 : 2);

		*bundle = (struct vapro_bundle){.thread = rank,
						.state = of,
						.n = n,
						.start_ns = bin * VAPRO_BIN_NS,
						.end_ns = bin * VAPRO_BIN_NS + 196000000,
						.sum_ns = (uint64_t)(ns * n),
						.min_ns = (uint64_t)(ns * 0.99),
						.max_ns = (uint64_t)(ns * 1.01),
						.first_call = *calls,
						.last_call = *calls + n - 1};
		if (of)
			bundle->magnitude_min[VAPRO_BYTES] = bundle->magnitude_max[VAPRO_BYTES] = 64;
		else
			bundle->magnitude_min[VAPRO_INSTRUCTIONS] = bundle->magnitude_max[VAPRO_INSTRUCTIONS] = 16e6;
		if (!of && disturbs)
			bundle->factor[VAPRO_PREEMPTED] = each[0] * n;
		*calls += n;
		put(sink, &event);
	}
	if (disturbs)
		put(sink, &(struct stream_event){.type = STREAM_INTERFERENCE,
						 .interference = {.thread = rank,
								  .pid = 4000 + rank / PER_HOST,
								  .bin = UTC / VAPRO_BIN_NS + bin,
								  .preempted_ns = VAPRO_BIN_NS / 2,
								  .comm = "hog"}});
}

static void put_ranks(struct stream_sink *sink)
{
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		struct stream_event event = {.type = STREAM_THREAD};
		char host[32];

		snprintf(host, sizeof(host), "node%02u", rank / PER_HOST);
		event.thread = (struct vapro_thread){.id = rank,
						     .rank = (int32_t)rank,
						     .world_size = RANKS,
						     .pid = 10000 + rank,
						     .tid = 10000 + rank,
						     .job = "slurm:77",
						     .host = host};
		put(sink, &event);
		put(sink, &(struct stream_event){.type = STREAM_SEEN, .seen = {rank, 0, 0}});
		put(sink, &(struct stream_event){.type = STREAM_PLACE,
						 .place = {.thread = rank, .cpu = (int32_t)(rank % PER_HOST)}});
	}
}

static void put_states(struct stream_sink *sink)
{
	put(sink, &(struct stream_event){.type = STREAM_STATE,
					 .state = {.class = VAPRO_COMPUTATION,
						   .from = "a@0123456789ab+0x10",
						   .to = "a@0123456789ab+0x10",
						   .labels = "",
						   .common = "",
						   .from_symbol = "solve",
						   .to_symbol = "solve"}});
	put(sink, &(struct stream_event){.type = STREAM_STATE,
					 .state = {.id = 1,
						   .class = VAPRO_COMMUNICATION,
						   .to = "a@0123456789ab+0x10",
						   .labels = "bytes=64 comm=0 function=MPI_Allreduce",
						   .common = "bytes=64 function=MPI_Allreduce"}});
}

static void run_job(const char *path, struct summary *summary)
{
	struct line_sink *lines = line_sink__open(path, false);
	struct stream_sink *sink;
	struct vapro_config config;
	static uint64_t calls[RANKS];
	uint64_t begin = 0;

	config__init(&config);
	config.memory_cap *= 16;
	sink = pipeline__new(&config, VAPRO_BY_INSTRUCTIONS, "node00", lines, summary);
	assert_non_null(sink);
	put(sink, &(struct stream_event){.type = STREAM_CLOCK, .clock = {0, UTC}});
	put(sink,
	    &(struct stream_event){.type = STREAM_LINE,
				   .line = "{\"schema\":\"vapro/1\",\"type\":\"process\",\"time\":\"2027-01-15T08:"
					   "00:00Z\",\"host\":\"node00\",\"exe\":\"/opt/solver\",\"job\":{"
					   "\"identity\":\"slurm:77\"},\"state\":\"attached\"}"});
	put_ranks(sink);
	put_states(sink);
	for (uint64_t bin = 0; bin < SECONDS * 5; bin++) {
		bool last = bin + 1 == SECONDS * 5;

		for (uint32_t rank = 0; rank < RANKS; rank++)
			put_bin(sink, rank, bin, &calls[rank]);
		if (bin != 74 && !last)
			continue;
		for (uint32_t rank = 0; last && rank < RANKS; rank++)
			put(sink,
			    &(struct stream_event){.type = STREAM_SEEN, .seen = {rank, 0, (bin + 1) * VAPRO_BIN_NS}});
		put(sink, &(struct stream_event){.type = STREAM_WINDOW,
						 .window = {UTC + begin, UTC + (bin + 1) * VAPRO_BIN_NS, last, 0.1}});
		begin = (bin + 1) * VAPRO_BIN_NS;
	}
	stream__close(sink);
	assert_int_equal(line_sink__close(lines), 0);
}

/* Cuts a text after its first lines, and joins those with blanks. */
static char *first_lines(char *text, unsigned lines)
{
	for (char *at = text; *at; at++) {
		if (*at != '\n')
			continue;
		*at = ' ';
		if (!--lines)
			at[1] = '\0';
	}
	return text;
}

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

/* Checks the roll-up against its variances: nothing is lost or counted twice. */
static void check_cause(const char *path)
{
	FILE *file = fopen(path, "r");
	double lost[4096] = {0}, sum = 0, rolled = 0;
	uint64_t causes = 0;
	char *text = NULL;
	size_t size = 0;

	assert_non_null(file);
	while (getline(&text, &size, file) > 0) {
		cJSON *object = cJSON_Parse(text);
		const char *type = cJSON_GetStringValue(at(object, "type"));

		if (!strcmp(type, "variance") && cJSON_IsNull(at(object, "effect_of")) &&
		    cJSON_GetNumberValue(at(object, "id")) < 4096)
			lost[(size_t)cJSON_GetNumberValue(at(object, "id"))] =
			    cJSON_GetNumberValue(at(object, "lost_seconds"));
		if (!strcmp(type, "cause") && cJSON_IsTrue(at(object, "final"))) {
			causes++;
			is_text(object, "culprit/comm", "hog");
			is_null(object, "culprit/pid");
			is_number(object, "rank_intervals", 32);
			is_number(object, "rank_count", 32);
			is_number(object, "host_count", 16);
			is_text(object, "hosts/15", "node15");
			assert_true(cJSON_IsTrue(at(object, "alarm")));
			rolled = cJSON_GetNumberValue(at(object, "lost_seconds"));
		}
		cJSON_Delete(object);
	}
	for (size_t i = 0; i < 4096; i++)
		sum += lost[i];
	assert_int_equal(causes, 1);
	assert_true(fabs(sum - rolled) < 1e-3);
	assert_true(sum > 10);
	free(text);
	fclose(file);
}

static void test_first_lines(void **state)
{
	static const char wanted[] = "warning: hog preempted 32 rank-intervals on 16 hosts: 1";
	struct view_options options = {.color = VIEW_COLOR_NEVER, .width = 80};
	struct summary *summary = summary__new();
	char path[64], err[256], *text = NULL;
	size_t size;
	FILE *out;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/vapro-test-causes-%d", getpid());
	run_job(path, summary);
	check_cause(path);
	out = open_memstream(&text, &size);
	summary__print(summary, out, &(struct summary_options){.width = 80});
	fclose(out);
	first_lines(text, 24);
	says(text, wanted);
	says(text, "job slurm:77 (/opt/solver): 1024 ranks on 16 hosts, watched for 30.0 s");
	says(text, "32 slow regions: 1");
	says(text, " 1. ");
	free(text);
	text = NULL;
	out = tmpfile(); /* a file: fileno() needs one */
	assert_int_equal(view__file(path, &options, out, NULL, err, sizeof(err)), 0);
	size = (size_t)ftell(out);
	rewind(out);
	text = calloc(1, size + 1);
	assert_int_equal(fread(text, 1, size, out), size);
	fclose(out);
	/* of the 32 regions 5 are printed */
	says(text, " 5. ");
	assert_null(strstr(text, " 6. "));
	says(text, "and 27 more");
	says(text, "The map of waiting is hidden");
	assert_null(strstr(text, "waiting in communication,"));
	first_lines(text, 24);
	says(text, wanted);
	says(text, "job slurm:77 (/opt/solver): 1024 ranks on 16 hosts, watched for 30.0 s");
	says(text, "  judged  ");
	says(text, "  overhead  ");
	free(text);
	summary__free(summary);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_order),	  cmocka_unit_test(test_effects),     cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_names),	  cmocka_unit_test(test_sentences),   cmocka_unit_test(test_records),
	    cmocka_unit_test(test_emitted_again), cmocka_unit_test(test_first_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

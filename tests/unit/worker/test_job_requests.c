// SPDX-License-Identifier: GPL-2.0-or-later
/* One set of functions and of hops for all nodes of a job, and the end of counting parts: what a worker requests. */
#include "functions/functions.h"
#include "job_blocks.h"
#include "worker/requests.h"

#define HOSTS 3

/* A host of one process, and what its facts say in two windows. */
struct played {
	const char *host, *image, *own[2];
	bool ends;
	enum vapro_hop hops[3]; /* of one call-site, in the first window */
};

static struct sent sent[HOSTS];
static struct stream_stage stages[HOSTS]; /* what the hosts count from the second window on; stage 0: nothing is said */

/* Packs its blocks; where it goes on, none is its last. */
static void pack_played(const struct played *played, int32_t rank, struct sent *to)
{
	struct stream_sink *sink;

	*to = (struct sent){.receiver = {receive}};
	split = wire_split__new("test", "", "{\"threshold\":0.9,\"io\":\"off\"}", &to->receiver);
	assert_non_null(split);
	sink = wire_split__sink(split);
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {S, UTC + S}});
	put(sink, (struct stream_event){.type = STREAM_THREAD,
					.thread = {.rank = rank,
						   .world_size = HOSTS,
						   .pid = 100,
						   .tid = 100,
						   .job = "job",
						   .host = played->host,
						   .user = 1}});
	put(sink, (struct stream_event){.type = STREAM_SEEN, .seen = {0, S, 0}});
	put(sink,
	    (struct stream_event){
		.type = STREAM_STATE,
		.state = {.class = VAPRO_COMPUTATION, .from = "a@1+0x1", .to = "a@1+0x2", .labels = "", .common = ""}});
	for (uint64_t window = 0; window < 2; window++) {
		uint64_t end_ns = UTC + (11 + 10 * window) * S;

		for (uint64_t i = 0; i < 10; i++)
			put(sink, bundle(0, 0, (1 + 10 * window + i) * S, S / 2));
		if (window && stages[rank].stage)
			put(sink, (struct stream_event){.type = STREAM_STAGE, .stage = stages[rank]});
		for (size_t i = 0; !window && i < 3 && played->hops[i] != VAPRO_HOP_NONE; i++)
			put(sink, (struct stream_event){.type = STREAM_HOP,
							.hop = {.begin_ns = 2 * S,
								.end_ns = 2 * S,
								.hop = played->hops[i],
								.site = "a@1+0x2",
								.symbol = "f+0x1"}});
		put(sink, (struct stream_event){.type = STREAM_FACTS,
						.facts = {.pid = 100,
							  .job = "job",
							  .user = 1,
							  .wall_ns = 10 * S,
							  .image = played->image,
							  .without = played->own[window],
							  .without_own = played->own[window]}});
		put(sink, (struct stream_event){.type = STREAM_WINDOW,
						.window = {end_ns - 10 * S, end_ns, window && played->ends, 0.5}});
	}
	if (played->ends)
		assert_int_equal(stream__close(sink), 0);
	else
		wire_split__tick(split, mono_at(100));
	wire_split__free(split);
}

/* Collects requests: for stages "host stage parts", for sets "host image functions by", for hops "host site symbol
 * hop". */
struct requested {
	struct worker_requests requests; /* first */
	char text[1024];
};

static void note(struct worker_requests *requests, const char *host, const struct wire_request *request)
{
	struct requested *requested = (struct requested *)requests;
	size_t used = strlen(requested->text);

	assert_string_equal(request->job, "job");
	assert_int_equal(request->user, 1);
	if (request->kind == WIRE_REQUEST_STAGE)
		snprintf(requested->text + used, sizeof(requested->text) - used, "%s %d '%s'\n", host, request->stage,
			 request->expand);
	if (request->kind == WIRE_REQUEST_HOP)
		snprintf(requested->text + used, sizeof(requested->text) - used, "%s %s %s %s\n", host, request->site,
			 request->symbol, vapro_hop_name[request->hop]);
	if (request->kind != WIRE_REQUEST_SET)
		return;
	assert_string_equal(request->worker, "worker-1");
	snprintf(requested->text + used, sizeof(requested->text) - used, "%s %s %s %s\n", host, request->image,
		 request->without, request->host);
}

/* Gives the blocks of hosts to a new job, judges what is complete, and checks what it requests after so long. */
static void check_times(const struct played hosts[HOSTS], uint64_t later_ns, unsigned times, const char *expected)
{
	const struct wire_job about = {.cluster = "test", .job = "job", .user = 1};
	struct requested requested = {.requests = {"worker-1", note}};
	struct found found;
	struct worker_job *job = new_job(&found);
	size_t number = 1;

	for (int i = 0; i < HOSTS; i++) {
		pack_played(&hosts[i], i, &sent[i]);
		for (size_t k = 0; k < sent[i].count; k++) {
			void *copy = malloc(sent[i].blocks[k].size);

			memcpy(copy, sent[i].blocks[k].bytes, sent[i].blocks[k].size);
			assert_int_equal(worker_job__put(job, sent[i].subjects[k], number++, copy,
							 sent[i].blocks[k].size, mono_at(1)),
					 0);
		}
		free_blocks(&sent[i]);
	}
	assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
	assert_true(found.windows >= 1);
	for (unsigned i = 0; i < times; i++) {
		requested.text[0] = '\0';
		worker_job__request(job, &about, mono_at(1) + later_ns, &requested.requests);
	}
	assert_string_equal(requested.text, expected);
	worker_job__free(job);
	free(found.lines);
}

static void check(const struct played hosts[HOSTS], uint64_t later_ns, const char *expected)
{
	check_times(hosts, later_ns, 1, expected);
}

/* Each node leaves out what others need by themselves, of the same image. */
static void test_union(void **state)
{
	(void)state;
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false, {0}},
					   {"n1", "libmpi.so", {NULL, "Isend"}, false, {0}},
					   {"n2", "libmpi.so", {"Irecv", "Irecv,Isend"}, false, {0}}},
	      0, "n0 libmpi.so Isend,Irecv n2\nn1 libmpi.so Isend,Irecv n2\nn2 libmpi.so Isend n1\n");
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false, {0}},
					   {"n1", "libmpi.so", {NULL, NULL}, false, {0}},
					   {"n2", "libmpi.so", {NULL, "others"}, false, {0}}},
	      0, "n0 libmpi.so others n2\nn1 libmpi.so others n2\n");
	/* what was needed once is not needed for ever */
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false, {0}},
					   {"n1", "libmpi.so", {"Isend", NULL}, false, {0}},
					   {"n2", "libmpi.so", {NULL, NULL}, false, {0}}},
	      0, "");
}

/* Images have sets of their own; a node of an older version says of none, and nothing is requested of it. */
static void test_images(void **state)
{
	(void)state;
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false, {0}},
					   {"n1", "static", {NULL, "Isend"}, false, {0}},
					   {"n2", "static", {NULL, NULL}, false, {0}}},
	      0, "n2 static Isend n1\n");
	check((const struct played[HOSTS]){{"n0", NULL, {NULL, "Isend"}, false, {0}},
					   {"n1", "libmpi.so", {NULL, "Isend"}, false, {0}},
					   {"n2", NULL, {NULL, NULL}, false, {0}}},
	      0, "");
	/* functions of a newer node, and what is none */
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false, {0}},
					   {"n1", "libmpi.so", {NULL, "Isend,Ifuture"}, false, {0}},
					   {"n2", "libmpi.so", {NULL, "Waitall"}, false, {0}}},
	      0, "");
}

/* A node that has ended, or that is silent for a minute, needs nothing. */
static void test_gone(void **state)
{
	const struct played hosts[HOSTS] = {{"n0", "libmpi.so", {NULL, NULL}, false, {0}},
					    {"n1", "libmpi.so", {"Isend", "Isend"}, true, {0}},
					    {"n2", "libmpi.so", {"Irecv", "Irecv"}, false, {0}}};

	(void)state;
	check(hosts, 59 * S, "n0 libmpi.so Irecv n2\n");
	check(hosts, 61 * S, "");
}

#define UP VAPRO_HOP_UP
#define STAYS VAPRO_HOP_STAYS
#define BACK VAPRO_HOP_BACK
#define REFUSED VAPRO_HOP_REFUSED

/* What one node has hopped, or undone, the others do as well: from the second window on, and not for ever. */
static void test_hops(void **state)
{
	const struct played lost[HOSTS] = {{"n0", NULL, {0}, false, {UP, STAYS}},
					   {"n1", NULL, {0}, false, {STAYS}}, /* its request for the hop was lost */
					   {"n2", NULL, {0}, false, {0}}};

	(void)state;
	check_times(lost, 0, 1, "");
	check_times(lost, 0, 2, "n1 a@1+0x2 f+0x1 up\nn2 a@1+0x2 f+0x1 up\n");
	check_times(lost, 0, 16, "n1 a@1+0x2 f+0x1 up\nn2 a@1+0x2 f+0x1 up\n");
	check_times(lost, 0, 17, "");
	check_times(lost, 61 * S, 2, "");
	/* a refusal is final, and so is a hop that was undone */
	check_times((const struct played[HOSTS]){{"n0", NULL, {0}, false, {UP}},
						 {"n1", NULL, {0}, false, {REFUSED}},
						 {"n2", NULL, {0}, false, {UP, STAYS}}},
		    0, 2, "");
	/* a node that refuses does not stop another one, whose answer takes longer */
	check_times((const struct played[HOSTS]){{"n0", NULL, {0}, false, {REFUSED}},
						 {"n1", NULL, {0}, false, {0}},
						 {"n2", NULL, {0}, false, {REFUSED}}},
		    0, 2, "n1 a@1+0x2 f+0x1 up\n");
	check_times((const struct played[HOSTS]){{"n0", NULL, {0}, false, {UP, BACK}},
						 {"n1", NULL, {0}, false, {UP, STAYS}},
						 {"n2", NULL, {0}, false, {0}}},
		    0, 2, "n1 a@1+0x2 f+0x1 back\n");
	check_times((const struct played[HOSTS]){{"n0", NULL, {0}, true, {UP, STAYS}},
						 {"n1", NULL, {0}, false, {0}},
						 {"n2", NULL, {0}, false, {0}}},
		    0, 2, "");
}

#define COUNTED(stage, parts, of, why)                                                                                 \
	(struct stream_stage)                                                                                          \
	{                                                                                                              \
		12 * S, 12 * S, stage, parts, of, 1, (why) ? NULL : "a", why                                           \
	}

/* A node that counts parts for the job, which needs none, has to count all. Others are left alone, as one that is
 * silent. */
static void test_parts(void **state)
{
	const struct played hosts[HOSTS] = {
	    {"n0", NULL, {0}, false, {0}}, {"n1", NULL, {0}, false, {0}}, {"n2", NULL, {0}, false, {0}}};
	const struct played ended[HOSTS] = {
	    {"n0", NULL, {0}, true, {0}}, {"n1", NULL, {0}, false, {0}}, {"n2", NULL, {0}, false, {0}}};

	(void)state;
	stages[0] = COUNTED(2, "backend", "job", NULL);
	stages[1] = COUNTED(2, "backend", "another job", NULL);
	stages[2] = COUNTED(2, "backend", "job", "no events");
	check(hosts, 0, "n0 1 ''\n");
	check(hosts, 61 * S, "");
	check(ended, 0, "");
	stages[0] = COUNTED(1, NULL, NULL, NULL);
	check(hosts, 0, "");
	memset(stages, 0, sizeof(stages));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_union), cmocka_unit_test(test_images), cmocka_unit_test(test_gone),
	    cmocka_unit_test(test_hops),  cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

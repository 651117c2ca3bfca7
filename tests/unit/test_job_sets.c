// SPDX-License-Identifier: GPL-2.0-or-later
/* One set of functions for all nodes of a job: what a worker requests of each by the facts of all. */
#include "functions/functions.h"
#include "job_blocks.h"
#include "worker/requests.h"

#define HOSTS 3

/* A host of one process, and what its facts say in two windows. */
struct played {
	const char *host, *image, *own[2];
	bool ends;
};

static struct sent sent[HOSTS];

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

/* Collects requests for sets, "host image functions by" each. */
struct requested {
	struct worker_requests requests; /* first */
	char text[1024];
};

static void note(struct worker_requests *requests, const char *host, const struct wire_request *request)
{
	struct requested *requested = (struct requested *)requests;
	size_t used = strlen(requested->text);

	if (request->kind != WIRE_REQUEST_SET)
		return;
	assert_string_equal(request->worker, "worker-1");
	assert_string_equal(request->job, "job");
	assert_int_equal(request->user, 1);
	snprintf(requested->text + used, sizeof(requested->text) - used, "%s %s %s %s\n", host, request->image,
		 request->without, request->host);
}

/* Gives the blocks of hosts to a new job, judges what is complete, and checks what it requests after so long. */
static void check(const struct played hosts[HOSTS], uint64_t later_ns, const char *expected)
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
	worker_job__request(job, &about, mono_at(1) + later_ns, &requested.requests);
	assert_string_equal(requested.text, expected);
	worker_job__free(job);
	free(found.lines);
}

/* Each node leaves out what others need by themselves, of the same image. */
static void test_union(void **state)
{
	(void)state;
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false},
					   {"n1", "libmpi.so", {NULL, "Isend"}, false},
					   {"n2", "libmpi.so", {"Irecv", "Irecv,Isend"}, false}},
	      0, "n0 libmpi.so Isend,Irecv n2\nn1 libmpi.so Isend,Irecv n2\nn2 libmpi.so Isend n1\n");
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false},
					   {"n1", "libmpi.so", {NULL, NULL}, false},
					   {"n2", "libmpi.so", {NULL, "others"}, false}},
	      0, "n0 libmpi.so others n2\nn1 libmpi.so others n2\n");
	/* what was needed once is not needed for ever */
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false},
					   {"n1", "libmpi.so", {"Isend", NULL}, false},
					   {"n2", "libmpi.so", {NULL, NULL}, false}},
	      0, "");
}

/* Images have sets of their own; a node of an older version says of none, and nothing is requested of it. */
static void test_images(void **state)
{
	(void)state;
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false},
					   {"n1", "static", {NULL, "Isend"}, false},
					   {"n2", "static", {NULL, NULL}, false}},
	      0, "n2 static Isend n1\n");
	check((const struct played[HOSTS]){{"n0", NULL, {NULL, "Isend"}, false},
					   {"n1", "libmpi.so", {NULL, "Isend"}, false},
					   {"n2", NULL, {NULL, NULL}, false}},
	      0, "");
	/* functions of a newer node, and what is none */
	check((const struct played[HOSTS]){{"n0", "libmpi.so", {NULL, NULL}, false},
					   {"n1", "libmpi.so", {NULL, "Isend,Ifuture"}, false},
					   {"n2", "libmpi.so", {NULL, "Waitall"}, false}},
	      0, "");
}

/* A node that has ended, or that is silent for a minute, needs nothing. */
static void test_gone(void **state)
{
	const struct played hosts[HOSTS] = {{"n0", "libmpi.so", {NULL, NULL}, false},
					    {"n1", "libmpi.so", {"Isend", "Isend"}, true},
					    {"n2", "libmpi.so", {"Irecv", "Irecv"}, false}};

	(void)state;
	check(hosts, 59 * S, "n0 libmpi.so Irecv n2\n");
	check(hosts, 61 * S, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_union),
	    cmocka_unit_test(test_images),
	    cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

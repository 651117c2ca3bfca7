// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A job of two nodes that hangs, as a worker sees it: the windows of the nodes end at other moments, and their clocks
 * have other origins. It is found with the ranks of both; a node of which nothing comes any more makes no hang.
 */
#include "job_blocks.h"
#include "report/record.h"

#define STOP_S 20  /* until then all ranks loop over computation and MPI_Allreduce */
#define END_S 100  /* of the nodes' blocks */
#define AFTER_S 30 /* --hang-after */
#define PER_NODE 2

enum { WORK, ALLREDUCE, RECV };

struct node {
	const char *host;
	int32_t first_rank;
	uint64_t boot_ns; /* UTC when the node's monotonic clock was 0 */
	uint64_t phase_s; /* its windows end so long after those of a node with 0 */
	uint64_t last_s;  /* of what it sends */
	bool killed;	  /* without a last window */
};

static void announce(struct stream_sink *sink, const struct node *node, uint64_t mono)
{
	static const struct vapro_state states[] = {
	    [WORK] = {.class = VAPRO_COMPUTATION, .from = "a@1+0x1", .to = "a@1+0x2", .labels = "", .common = ""},
	    [ALLREDUCE] = {.class = VAPRO_COMMUNICATION,
			   .to = "a@1+0x2",
			   .labels = "comm=0 function=MPI_Allreduce",
			   .common = "function=MPI_Allreduce"},
	    [RECV] = {.class = VAPRO_COMMUNICATION,
		      .to = "a@1+0x3",
		      .labels = "comm=0 function=MPI_Recv peer=2",
		      .common = "function=MPI_Recv"},
	};

	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {mono, mono + node->boot_ns}});
	for (uint32_t i = 0; i < PER_NODE; i++) {
		put(sink, (struct stream_event){.type = STREAM_THREAD,
						.thread = {.id = i,
							   .rank = node->first_rank + (int32_t)i,
							   .world_size = 2 * PER_NODE,
							   .pid = 100 + i,
							   .tid = 100 + i,
							   .job = "slurm:7",
							   .host = node->host,
							   .user = 1001}});
		put(sink, (struct stream_event){.type = STREAM_SEEN, .seen = {i, mono, 0}});
	}
	for (uint32_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		struct stream_event event = {.type = STREAM_STATE, .state = states[i]};

		event.state.id = i;
		put(sink, event);
	}
}

/* A bin of 200 ms of a rank: two steps, or nothing that ends. */
static void put_bin(struct stream_sink *sink, const struct node *node, uint32_t thread, uint64_t bin)
{
	uint64_t mono = UTC - node->boot_ns + bin * VAPRO_BIN_NS, half = VAPRO_BIN_NS / 2;
	const struct stream_event account = {
	    .type = STREAM_ACCOUNT,
	    .account = {.thread = thread, .bin = UTC / VAPRO_BIN_NS + bin, .on_cpu_ns = VAPRO_BIN_NS}};

	if (bin >= STOP_S * 5)
		return;
	for (uint64_t step = 0; step < 2; step++) {
		put(sink, bundle(thread, WORK, mono + step * half, half - S / 100));
		put(sink, bundle(thread, ALLREDUCE, mono + (step + 1) * half - S / 100, S / 100));
	}
	put(sink, account);
}

static void end_window(struct stream_sink *sink, const struct node *node, uint64_t begin_s, uint64_t end_s)
{
	uint64_t mono = UTC - node->boot_ns;

	for (uint32_t i = 0; i < PER_NODE; i++) {
		bool receives = node->first_rank + (int32_t)i == 1;
		struct stream_event open =
		    bundle(i, receives ? RECV : ALLREDUCE, mono + STOP_S * S, (end_s - STOP_S) * S);

		open.bundle.flags = VAPRO_BUNDLE_OPEN;
		if (end_s > STOP_S)
			put(sink, open);
		put(sink, (struct stream_event){.type = STREAM_FACTS,
						.facts = {.pid = 100 + i,
							  .job = "slurm:7",
							  .user = 1001,
							  .wall_ns = (end_s - begin_s) * S,
							  .hits = 50}});
	}
	put(sink, (struct stream_event){
		      .type = STREAM_WINDOW,
		      .window = {UTC + begin_s * S, UTC + end_s * S, !node->killed && end_s >= node->last_s, 0.5}});
}

static void pack_node(struct sent *sent, const struct node *node)
{
	struct stream_sink ticker = {.put = tick};
	uint64_t begin_s = 0, end_s = 15 + node->phase_s;

	split = wire_split__new("test", "", "{\"hang-after\":30,\"io\":\"off\"}", &sent->receiver);
	assert_non_null(split);
	announce(&ticker, node, UTC - node->boot_ns);
	for (uint64_t bin = 0; bin < node->last_s * 5; bin++) {
		for (uint32_t i = 0; i < PER_NODE; i++)
			put_bin(&ticker, node, i, bin);
		if (bin + 1 != end_s * 5)
			continue;
		end_window(&ticker, node, begin_s, end_s);
		begin_s = end_s;
		end_s = end_s + 10 < node->last_s ? end_s + 10 : node->last_s;
	}
	assert_int_equal(stream__close(wire_split__sink(split)), 0);
	wire_split__free(split);
}

/* The records of hangs, the last of which the caller deletes; *first: the end of the first one, s. */
static cJSON *hangs_in(const char *lines, unsigned *count, double *first_s)
{
	char *copy = strdup(lines), *rest = copy, *line;
	cJSON *last = NULL;
	uint64_t end_ns;

	*count = 0;
	while ((line = strsep(&rest, "\n"))) {
		cJSON *record = *line ? cJSON_Parse(line) : NULL;

		if (record__type(record) != RECORD_OBJECT_hang) {
			cJSON_Delete(record);
			continue;
		}
		if (!(*count)++ && record__time(record, KEY(hang, end), &end_ns))
			*first_s = (double)(end_ns - UTC) / 1e9;
		cJSON_Delete(last);
		last = record;
	}
	free(copy);
	return last;
}

/* Judges the blocks of two nodes, of which the second one sends until a moment. */
static char *judge(uint64_t until_s, bool killed)
{
	const struct node nodes[] = {{"node-0", 0, 1000 * S, 0, END_S, false},
				     {"node-1", PER_NODE, 2000 * S, 3, until_s, killed}};
	static struct sent sent;
	struct worker_job *job;
	struct found found;

	sent = (struct sent){.receiver = {receive}};
	for (size_t i = 0; i < 2; i++)
		pack_node(&sent, &nodes[i]);
	job = new_job(&found);
	for (size_t i = 0; i < sent.count; i++)
		give(job, &sent, i, mono_at(1));
	for (uint64_t s = 1; s < 60; s++)
		assert_int_equal(worker_job__advance(job, mono_at(s), true), 0);
	assert_int_equal(worker_job__finish(job, mono_at(60)), 0);
	worker_job__free(job);
	free_blocks(&sent);
	written_records__all(found.lines);
	return found.lines;
}

static const cJSON *group_of(const cJSON *hang, const char *ranks)
{
	const cJSON *group;

	cJSON_ArrayForEach(group, record__item(hang, KEY(hang, groups)))
	{
		if (!strcmp(record__text(group, KEY(hang_group, ranks)), ranks))
			return group;
	}
	fail_msg("no group of ranks %s in %s", ranks, record__text(hang, KEY(hang, text)));
	return NULL;
}

static void test_hang_of_two_nodes(void **state)
{
	char *lines = judge(END_S, false);
	const cJSON *group;
	double first_s = 0;
	unsigned count;
	cJSON *hang = hangs_in(lines, &count, &first_s);

	(void)state;
	assert_non_null(hang);
	assert_string_equal(record__text(hang, KEY(hang, kind)), "calls");
	assert_true(record__true(hang, KEY(hang, alarm)));
	assert_string_equal(record__text(hang, KEY(hang, severity)), "critical");
	assert_true(first_s >= STOP_S + AFTER_S && first_s <= STOP_S + AFTER_S + 10);
	assert_int_equal(record__uint(hang, KEY(hang, unwatched_ranks)), 0);
	group = group_of(hang, "1");
	assert_string_equal(record__text(group, KEY(hang_group, condition)), "in_call");
	assert_string_equal(record__text(group, KEY(hang_group, waits_for)), "2");
	group = group_of(hang, "0,2-3");
	assert_string_equal(record__text(group, KEY(hang_group, did_not_enter)), "1");
	cJSON_Delete(hang);
	free(lines);
}

/* The second node falls silent before the hang could be found, with its last block or without: its ranks may be at
 * work.
 */
static void test_silent_node(void **state)
{
	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		char *lines = judge(28, killed);
		double first_s = 0;
		unsigned count;
		cJSON *hang = hangs_in(lines, &count, &first_s);

		assert_non_null(hang);
		assert_string_equal(record__text(hang, KEY(hang, kind)), "not_known");
		assert_false(record__true(hang, KEY(hang, alarm)));
		assert_string_equal(record__text(group_of(hang, "2-3"), KEY(hang_group, condition)), "no_data");
		cJSON_Delete(hang);
		free(lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_hang_of_two_nodes, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_silent_node, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

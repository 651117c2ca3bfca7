/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoints of a job of many nodes: one that goes on from them gives the lines of one that read all blocks, whatever
 * the order of the blocks, and reads little again.
 */
#include <endian.h>
#include <errno.h>
#include <zlib.h>
#include <zstd.h>

#include "job_blocks.h"

#define NAME "vapro.v1.state.test.job"
#define SECONDS 95

/* Computation, calls, samples of places, facts and windows of 10 s, the first one of 15 s. */
static void write_long_host(const char *path, const char *host, int32_t rank, uint64_t begin_s)
{
	struct stream_sink *sink = capture__create(path, "{\"threshold\":0.9,\"io\":\"off\"}");
	uint64_t boot_ns = (uint64_t)(1 + rank) * 1000 * S, mono = UTC - boot_ns + begin_s * S;

	assert_non_null(sink);
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {mono, mono + boot_ns}});
	put(sink,
	    (struct stream_event){
		.type = STREAM_THREAD,
		.thread = {
		    .rank = rank, .world_size = 2, .pid = 100, .tid = 100, .job = "job", .host = host, .user = 1}});
	put(sink, (struct stream_event){.type = STREAM_SEEN, .seen = {0, mono, 0}});
	put(sink,
	    (struct stream_event){
		.type = STREAM_STATE,
		.state = {.class = VAPRO_COMPUTATION, .from = "a@1+0x1", .to = "a@1+0x2", .labels = "", .common = ""}});
	put(sink, (struct stream_event){.type = STREAM_STATE,
					.state = {.id = 1,
						  .class = VAPRO_COMMUNICATION,
						  .to = "a@1+0x2",
						  .labels = "function=MPI_Allreduce",
						  .common = "function=MPI_Allreduce"}});
	for (uint64_t i = 0; i < SECONDS; i++) {
		uint64_t slow = rank == 1 && i / 12 == 4 ? S / 4 : 0;

		/* one that was noticed late */
		if (i % 7 == 3)
			put(sink, bundle(0, 0, mono + (i - 2) * S + S / 16, S / 64));
		put(sink, bundle(0, 0, mono + i * S, S / 2 + slow));
		put(sink, bundle(0, 1, mono + i * S + S / 2 + slow, S / 8));
		put(sink, (struct stream_event){.type = STREAM_INSIDE,
						.inside = {.thread = 0, .state = 1, .site = "b@1+0x9", .samples = 3}});
		if (i % 10 == 4 && i > 4) {
			bool first = i == 14;

			put(sink, (struct stream_event){.type = STREAM_FACTS,
							.facts = {.pid = 100,
								  .job = "job",
								  .user = 1,
								  .wall_ns = (first ? 15 : 10) * S,
								  .hits = 50}});
			put(sink,
			    (struct stream_event){.type = STREAM_WINDOW,
						  .window = {UTC + (begin_s + (first ? 0 : i - 9)) * S,
							     UTC + (begin_s + i + 1) * S, i == SECONDS - 1, 0.5}});
		}
	}
	put(sink, (struct stream_event){.type = STREAM_END});
	assert_int_equal(stream__close(sink), 0);
}

static void swap(struct sent *sent, uint64_t *times, size_t a, size_t b)
{
	struct block block = sent->blocks[a];
	char subject[WIRE_SUBJECT_MAX];
	uint64_t time_ns = times[a];

	memcpy(subject, sent->subjects[a], sizeof(subject));
	sent->blocks[a] = sent->blocks[b];
	memcpy(sent->subjects[a], sent->subjects[b], sizeof(subject));
	sent->blocks[b] = block;
	memcpy(sent->subjects[b], subject, sizeof(subject));
	times[a] = times[b];
	times[b] = time_ns;
}

/* Blocks in the order of their times, but each up to `disorder` places too late or early. */
static void arrange(struct sent *sent, unsigned disorder)
{
	uint64_t times[BLOCKS];

	for (size_t i = 0; i < sent->count; i++) {
		struct block_head head;

		assert_int_equal(block__head(&head, sent->blocks[i].bytes, sent->blocks[i].size, err, sizeof(err)), 0);
		times[i] = head.last_ns ? head.last_ns : head.sequence ? times[i - 1] : 0;
	}
	for (size_t i = 1; i < sent->count; i++) {
		for (size_t k = i; k > 0 && times[k] < times[k - 1]; k--)
			swap(sent, times, k, k - 1);
	}
	srandom(disorder);
	for (size_t i = 0; disorder && i + disorder < sent->count; i++)
		swap(sent, times, i, i + (size_t)random() % disorder);
}

static void make_long_blocks(struct sent *sent, unsigned disorder)
{
	*sent = (struct sent){.receiver = {receive}};
	write_long_host(path_a, "node-0", 0, 0);
	write_long_host(path_b, "node-1", 1, 3);
	pack(sent, path_a);
	pack(sent, path_b);
	arrange(sent, disorder);
}

static struct worker_checkpoint save(struct worker_job *job)
{
	struct worker_checkpoint checkpoint;

	if (worker_job__save(job, NAME, mono_at(1), &checkpoint, err, sizeof(err)))
		fail_msg("%s", err);
	assert_non_null(checkpoint.bytes);
	return checkpoint;
}

/* A job of the next worker, with the blocks that the checkpoint does not rest on. */
static struct worker_job *go_on(const struct sent *sent, size_t until, const struct worker_checkpoint *checkpoint,
				struct found *found, size_t *again)
{
	struct worker_job *job = worker_job__new(1, found->end_ns, mono_at(1), &job_options, &found->receiver);
	uint64_t resume = 0;

	if (worker_job__load(job, NAME, checkpoint->bytes, checkpoint->size, mono_at(1), &resume, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(resume, checkpoint->resume);
	assert_true(resume > 0);
	for (size_t i = resume - 1; i < until; i++, (*again)++)
		give(job, sent, i, mono_at(1));
	return job;
}

/* A new job takes over after each window, and once more some blocks later. */
static void test_go_on(void **state)
{
	(void)state;
	for (unsigned disorder = 0; disorder < 40; disorder += 13) {
		struct worker_job_state before, after;
		struct worker_checkpoint checkpoint = {.bytes = NULL};
		struct sent sent;
		struct found found;
		struct worker_job *job;
		size_t again = 0, resumed = 0;
		char *reference;

		make_long_blocks(&sent, disorder);
		reference = in_order(&sent);
		job = new_job(&found);
		for (size_t i = 0; i < sent.count; i++) {
			uint64_t end_ns = found.end_ns;

			give(job, &sent, i, mono_at(1));
			assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
			if (found.end_ns == end_ns && (!checkpoint.bytes || i % 11))
				continue;
			if (found.end_ns != end_ns) {
				free(checkpoint.bytes);
				checkpoint = save(job);
				assert_int_equal(checkpoint.end_ns, found.end_ns);
			}
			worker_job__state(job, &before);
			worker_job__free(job);
			job = go_on(&sent, i + 1, &checkpoint, &found, &again);
			assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
			worker_job__state(job, &after);
			assert_int_equal(after.judged_ns, before.judged_ns);
			assert_int_equal(after.blocks, before.blocks);
			assert_int_equal(after.input_bytes, before.input_bytes);
			assert_int_equal(after.missing + after.late + after.refused, 0);
			resumed++;
		}
		assert_int_equal(worker_job__finish(job, mono_at(1)), 0);
		assert_string_equal(found.lines, reference);
		assert_true(resumed > 5);
		assert_true(again < resumed * sent.count / 2);
		worker_job__free(job);
		free(checkpoint.bytes);
		free(found.lines);
		free(reference);
		free_blocks(&sent);
	}
}

/* Puts blocks in order, without those of a host that end later. */
static void give_all(struct worker_job *job, const struct sent *sent, const char *host, uint64_t end_ns,
		     uint64_t now_ns)
{
	for (size_t i = 0; i < sent->count; i++) {
		struct block_head head;

		assert_int_equal(block__head(&head, sent->blocks[i].bytes, sent->blocks[i].size, err, sizeof(err)), 0);
		if (strcmp(head.host, host) != 0 || head.last_ns < end_ns)
			give(job, sent, i, now_ns);
	}
}

/* Late blocks are judged again from the checkpoint before them. */
static void test_late(void **state)
{
	struct worker_checkpoint checkpoint = {.bytes = NULL};
	const uint64_t late_ns = UTC + 58 * S;
	struct worker_job_state after;
	struct worker_job *job;
	struct sent sent;
	struct found found;
	uint64_t resume;
	char *reference;

	(void)state;
	make_long_blocks(&sent, 0);
	reference = in_order(&sent);
	job = new_job(&found);
	for (size_t i = 0; !checkpoint.bytes; i++) {
		give(job, &sent, i, mono_at(1));
		assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
		if (found.end_ns >= UTC + 35 * S)
			checkpoint = save(job);
	}
	give_all(job, &sent, "node-1", late_ns, mono_at(2));
	assert_int_equal(worker_job__advance(job, mono_at(3), true), 0);
	assert_int_equal(worker_job__advance(job, mono_at(20), true), 0);
	assert_true(found.end_ns > UTC + 60 * S);
	for (size_t i = 0; i < sent.count; i++)
		give(job, &sent, i, mono_at(30));
	assert_true(worker_job__wants_again(job, mono_at(300)));
	assert_true(worker_job__again_from(job) >= checkpoint.end_ns);
	assert_true(worker_job__again_from(job) < late_ns);
	assert_int_equal(
	    worker_job__save(job, NAME, mono_at(300), &(struct worker_checkpoint){.size = 0}, err, sizeof(err)),
	    -EAGAIN);
	assert_int_equal(worker_job__again(job, mono_at(300)), 0);
	assert_int_equal(
	    worker_job__load(job, NAME, checkpoint.bytes, checkpoint.size, mono_at(300), &resume, err, sizeof(err)), 0);
	free(found.lines);
	found.lines = NULL;
	for (size_t i = resume - 1; i < sent.count; i++)
		give(job, &sent, i, mono_at(300));
	assert_int_equal(worker_job__advance(job, mono_at(300), true), 0);
	assert_int_equal(worker_job__finish(job, mono_at(300)), 0);
	worker_job__state(job, &after);
	assert_int_equal(after.blocks, sent.count);
	assert_int_equal(after.missing + after.late, 0);
	for (char *pass; (pass = strstr(found.lines, "\"pass\":1}"));)
		pass[7] = '0';
	assert_true(strlen(found.lines) < strlen(reference));
	assert_string_equal(found.lines, reference + strlen(reference) - strlen(found.lines));
	worker_job__free(job);
	free(checkpoint.bytes);
	free(found.lines);
	free(reference);
	free_blocks(&sent);
}

/* A checkpoint in the middle of the job. */
static struct worker_checkpoint middle(const struct sent *sent)
{
	struct worker_checkpoint checkpoint = {.bytes = NULL};
	struct found found;
	struct worker_job *job = new_job(&found);

	for (size_t i = 0; !checkpoint.bytes; i++) {
		give(job, sent, i, mono_at(1));
		assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
		if (found.end_ns >= UTC + 45 * S)
			checkpoint = save(job);
	}
	worker_job__free(job);
	free(found.lines);
	return checkpoint;
}

/* Sums up lost.published of all windows. */
static uint64_t sum_published(const char *lines)
{
	const char *key = "\"published\":", *at = lines;
	uint64_t sum = 0;

	while ((at = strstr(at, key))) {
		at += strlen(key);
		sum += strtoull(at, NULL, 10);
	}
	return sum;
}

/* Blocks that a checkpoint needs are gone: they are counted, and the job goes on to its end. */
static void test_gone(void **state)
{
	struct worker_checkpoint checkpoint;
	struct worker_job_state after;
	struct worker_job *job;
	struct found found = {.receiver = {find}};
	struct sent sent;
	uint64_t resume;
	char *reference;

	(void)state;
	make_long_blocks(&sent, 0);
	checkpoint = middle(&sent);
	reference = in_order(&sent);
	assert_int_equal(sum_published(reference), 0);
	free(reference);
	for (size_t gone = 1; gone < 90; gone += 8) {
		found.end_ns = 0;
		job = worker_job__new(2, checkpoint.end_ns, mono_at(1), &job_options, &found.receiver);
		assert_int_equal(worker_job__load(job, NAME, checkpoint.bytes, checkpoint.size, mono_at(1), &resume,
						  err, sizeof(err)),
				 0);
		for (size_t i = resume - 1 + gone; i < sent.count; i++)
			give(job, &sent, i, mono_at(1));
		assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
		assert_true(worker_job__ended(job, mono_at(1), 100 * S));
		assert_int_equal(worker_job__finish(job, mono_at(1)), 0);
		assert_int_equal(found.end_ns, UTC + (SECONDS + 3) * S);
		assert_non_null(strstr(found.lines, "blocks_missing"));
		/* a block has two or three fragments, and facts follow where it was not the last one */
		assert_in_range(sum_published(found.lines), 1, 4 * gone);
		worker_job__state(job, &after);
		assert_in_range(after.missing, 1, gone);
		worker_job__free(job);
		free(found.lines);
		found.lines = NULL;
	}
	free(checkpoint.bytes);
	free_blocks(&sent);
}

/*
 * A checkpoint that is refused leaves an empty job, which reads all blocks; one that is not refused is what it was, as
 * where a bit is changed that unpacking does not need. Returns whether it was refused.
 */
static bool check_refused(const struct sent *sent, const char *name, const uint8_t *bytes, size_t size,
			  const char *reference)
{
	struct found found;
	struct worker_job *job = new_job(&found);
	uint64_t resume;
	bool refused = worker_job__load(job, name, bytes, size, mono_at(1), &resume, err, sizeof(err)) < 0;

	assert_true(!refused || strlen(err) > 0);
	for (size_t i = refused ? 0 : resume - 1; reference && i < sent->count; i++)
		give(job, sent, i, mono_at(1));
	if (reference) {
		assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
		assert_int_equal(worker_job__finish(job, mono_at(1)), 0);
		assert_string_equal(found.lines, reference + strlen(reference) - strlen(found.lines));
		assert_true(!refused || strlen(found.lines) == strlen(reference));
	}
	worker_job__free(job);
	free(found.lines);
	return refused;
}

static void test_refused(void **state)
{
	struct worker_checkpoint checkpoint;
	struct sent sent;
	size_t refused = 0;
	char *reference;

	(void)state;
	make_long_blocks(&sent, 0);
	reference = in_order(&sent);
	checkpoint = middle(&sent);
	assert_true(check_refused(&sent, "vapro.v1.state.test.other", checkpoint.bytes, checkpoint.size, reference));
	assert_non_null(strstr(err, "another job"));
	assert_true(check_refused(&sent, NAME, checkpoint.bytes, checkpoint.size / 2, reference));
	assert_true(check_refused(&sent, NAME, checkpoint.bytes, 0, NULL));
	assert_false(check_refused(&sent, NAME, checkpoint.bytes, checkpoint.size, reference));
	for (size_t at = 0; at < checkpoint.size; at += 31) {
		checkpoint.bytes[at] ^= 0x10;
		refused += check_refused(&sent, NAME, checkpoint.bytes, checkpoint.size, at % 8 ? NULL : reference);
		checkpoint.bytes[at] ^= 0x10;
	}
	assert_true(refused > checkpoint.size / 31 * 9 / 10);
	free(checkpoint.bytes);
	free(reference);
	free_blocks(&sent);
}

/* Bytes that obey the format and hold random values: the job that loads them does not crash, hang or grow. */
static void test_hostile(void **state)
{
	struct worker_checkpoint checkpoint;
	struct sent sent;
	uint8_t *raw, *packed;
	size_t size, room, begin, accepted = 0;
	uint64_t length, resume;

	(void)state;
	make_long_blocks(&sent, 0);
	checkpoint = middle(&sent);
	size = ZSTD_getFrameContentSize(checkpoint.bytes, checkpoint.size);
	room = ZSTD_compressBound(size);
	raw = malloc(size);
	packed = malloc(room);
	assert_int_equal(ZSTD_decompress(raw, size, checkpoint.bytes, checkpoint.size), size);
	memcpy(&length, raw, sizeof(length));
	length = le64toh(length);
	/* after the length of the part about the job, its head, its length and its checksum */
	begin = sizeof(length) + strlen("vapro-checkpoint/4 job\n") + 12;
	for (size_t at = begin; at < sizeof(length) + length; at += 11) {
		uint32_t crc;
		struct found found;
		struct worker_job *job = new_job(&found);

		raw[at] ^= (uint8_t)(1U << at % 8);
		crc = htole32((uint32_t)crc32_z(0, raw + begin, sizeof(length) + length - begin));
		memcpy(raw + begin - sizeof(crc), &crc, sizeof(crc));
		if (!worker_job__load(job, NAME, packed, ZSTD_compress(packed, room, raw, size, 1), mono_at(1), &resume,
				      err, sizeof(err))) {
			accepted++;
			for (size_t i = 0; i < sent.count; i++)
				give(job, &sent, i, mono_at(1));
			if (!worker_job__advance(job, mono_at(100), true))
				worker_job__finish(job, mono_at(100));
		}
		worker_job__free(job);
		free(found.lines);
		raw[at] ^= (uint8_t)(1U << at % 8);
	}
	assert_true(accepted > 0);
	free(raw);
	free(packed);
	free(checkpoint.bytes);
	free_blocks(&sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_go_on, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_late, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

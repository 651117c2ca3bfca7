// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks: each is read alone, together they are what was put, and a hostile one harms nothing. */
#include <errno.h>
#include <math.h>
#include <zstd.h>

#include "blocks.h"
#include "capture/capture_format.h"
#include "capture/crc.h"
#include "wire/announcements.h"

static struct shelf shelf;
static struct recorder got;

static int begin(void **state)
{
	setup(state);
	shelf__clear(&shelf);
	recorder__clear(&got);
	return 0;
}

static int end(void **state)
{
	shelf__clear(&shelf);
	recorder__clear(&got);
	return teardown(state);
}

/* A sink in front of a splitter: a second of the clock passes with every so many bundles. */
struct ticker {
	struct stream_sink sink; /* first */
	struct wire_split *split;
	size_t bundles, every;
};

static int ticker__put(struct stream_sink *sink, const struct stream_event *event)
{
	struct ticker *ticker = (struct ticker *)sink;
	int ret = stream__put(wire_split__sink(ticker->split), event);

	if (event->type == STREAM_BUNDLE && !(++ticker->bundles % ticker->every))
		wire_split__tick(ticker->split, ticker->bundles * S);
	return ret;
}

/* Packs a capture into blocks of about so many bundles. */
static void pack(const char *path, size_t every)
{
	struct wire_split *split = wire_split__new("main", "", "{\"threshold\":0.9}", &shelf.receiver);
	struct ticker ticker = {.sink.put = ticker__put, .split = split, .every = every};
	const char *const paths[] = {path};

	assert_non_null(split);
	assert_int_equal(capture__replay(paths, 1, &ticker.sink, err, sizeof(err)), 0);
	assert_int_equal(stream__close(wire_split__sink(split)), 0);
	wire_split__free(split);
}

static int read_stored(struct block_reader *reader, size_t index, struct block_head *head)
{
	const struct block *block = &shelf.stored[index].block;

	return block_reader__read(reader, block->bytes, block->size, head, &got.sink, err, sizeof(err));
}

static const struct stream_event *next_of(const struct recorder *from, enum stream_type type, size_t *at)
{
	while (*at < from->count && from->events[*at].type != type)
		(*at)++;
	return *at < from->count ? &from->events[(*at)++] : NULL;
}

static void test_round_trip(void **state)
{
	static const enum stream_type same[] = {STREAM_BUNDLE, STREAM_FACTS, STREAM_WINDOW, STREAM_SEEN, STREAM_PLACE};
	struct block_reader *reader = block_reader__new();
	struct block_head head;
	uint64_t bundles = 0;

	(void)state;
	write_host(path_a, "n1.site", 0, 1000, 0, true);
	pack(path_a, 5);
	assert_true(shelf.count > 8);
	for (size_t i = 0; i < shelf.count; i++) {
		assert_int_equal(read_stored(reader, i, &head), 0);
		assert_int_equal(head.sequence, i);
		assert_int_equal(head.run, shelf.stored[i].block.run);
		assert_string_equal(head.host, "n1.site");
		assert_string_equal(head.job.job, "slurm:7");
		assert_string_equal(head.job.cluster, "main");
		assert_int_equal(head.job.user, 1001);
		assert_true(wire_job__equal(&head.job, &shelf.stored[i].job));
		assert_int_equal(head.flags & BLOCK_LAST, i == shelf.count - 1 ? BLOCK_LAST : 0);
		assert_int_equal(head.flags & BLOCK_INTRODUCES, i ? 0 : BLOCK_INTRODUCES);
		bundles += shelf.stored[i].block.fragments;
	}
	assert_int_equal(head.through_ns, UTC + 25 * S);
	assert_int_equal(head.dropped_blocks, 0);
	assert_int_equal(bundles, 50);
	assert_string_equal(block_reader__tunables(reader), "{\"threshold\":0.9}");
	assert_non_null(strstr(block_reader__hello(reader), "\"host\":\"n1.site\""));
	assert_int_equal(replay(path_a), 0);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		const struct stream_event *one, *other;
		size_t at = 0, there = 0;

		assert_true(recorder__count(&seen, same[i]) > 0);
		while ((one = next_of(&seen, same[i], &at))) {
			struct capture_buffer a = {0}, b = {0};

			other = next_of(&got, same[i], &there);
			assert_non_null(other);
			capture__encode(&a, one);
			capture__encode(&b, other);
			assert_int_equal(a.length, b.length);
			assert_memory_equal(a.data, b.data, a.length);
			free(a.data);
			free(b.data);
		}
		assert_null(next_of(&got, same[i], &there));
	}
	assert_int_equal(recorder__count(&got, STREAM_LINE), 0);
	assert_int_equal(recorder__count(&got, STREAM_END), 1);
	block_reader__free(reader);
}

/* Each block has all that it needs, whatever was read before. */
static void test_alone(void **state)
{
	(void)state;
	write_host(path_a, "n1", 0, 1000, 0, true);
	pack(path_a, 3);
	for (size_t i = shelf.count; i-- > 0;) {
		struct block_reader *reader = block_reader__new();
		uint64_t fragments = 0;
		struct block_head head;
		uint32_t threads = 0, states = 0;

		recorder__clear(&got);
		assert_int_equal(read_stored(reader, i, &head), 0);
		assert_int_equal(got.events[0].type, STREAM_CLOCK);
		assert_int_equal(got.events[0].clock.utc_ns - got.events[0].clock.mono_ns, 1000);
		for (size_t k = 0; k < got.count; k++) {
			const struct stream_event *event = &got.events[k];

			if (event->type == STREAM_THREAD)
				threads |= 1U << event->thread.id;
			if (event->type == STREAM_STATE)
				states |= 1U << event->state.id;
			if (event->type != STREAM_BUNDLE)
				continue;
			assert_true(threads & 1U << event->bundle.thread);
			assert_true(states & 1U << event->bundle.state);
			assert_true(event->bundle.end_ns + 1000 >= head.first_ns);
			assert_true(event->bundle.end_ns + 1000 <= head.last_ns);
			fragments += event->bundle.n;
		}
		assert_int_equal(fragments, shelf.stored[i].block.fragments);
		assert_int_equal(head.events, got.count);
		block_reader__free(reader);
	}
}

/* Every byte of a block damaged, and every length: refused with the host's name where it can be read, and in silence.
 */
static void test_damage(void **state)
{
	struct block_reader *reader = block_reader__new();
	struct block_head head;
	struct block *block;
	uint8_t *bytes;

	(void)state;
	write_host(path_a, "node-a", 0, 1000, 0, true);
	pack(path_a, 9);
	block = &shelf.stored[1].block;
	bytes = block->bytes;
	for (size_t at = 0; at < block->size; at++) {
		uint8_t before = bytes[at];

		for (int bit = 0; bit < 8; bit++) {
			bytes[at] = before ^ (uint8_t)(1 << bit);
			assert_true(read_stored(reader, 1, &head) < 0);
			assert_int_equal(got.count, 0);
			assert_true(strstr(err, "host node-a") || at < 28); /* the host lies there */
			assert_true(strstr(err, "host"));
		}
		bytes[at] = before;
	}
	for (size_t size = 0; size < block->size; size++) {
		uint8_t *copy = malloc(size ? size : 1); /* its end is watched */

		memcpy(copy, bytes, size);
		assert_int_equal(block_reader__read(reader, copy, size, &head, &got.sink, err, sizeof(err)), -EBADMSG);
		assert_int_equal(got.count, 0);
		free(copy);
	}
	assert_int_equal(read_stored(reader, 1, &head), 0);
	block_reader__free(reader);
}

/* Makes a block of any frame, as one who knows the format can. */
static void forge(struct shelf *into, size_t index, const void *raw, size_t raw_size, void (*change)(uint8_t *head))
{
	struct block *block = &into->stored[index].block;
	struct capture_buffer out = {0};
	uint8_t *bytes = block->bytes;
	uint32_t length, word;
	size_t packed = ZSTD_compressBound(raw_size);
	void *frame = malloc(packed);

	memcpy(&length, bytes + 16, sizeof(length));
	packed = ZSTD_compress(frame, packed, raw, raw_size, 1);
	capture_buffer__add(&out, bytes, length);
	/* before cluster, job and the checksum: raw_bytes, packed_bytes, frame_crc, user */
	word = (uint32_t)raw_size;
	memcpy(out.data + length - 35, &word, 4);
	word = (uint32_t)packed;
	memcpy(out.data + length - 31, &word, 4);
	word = crc__of(frame, packed);
	memcpy(out.data + length - 27, &word, 4);
	if (change)
		change(out.data);
	word = crc__of(out.data, length - 4);
	memcpy(out.data + length - 4, &word, 4);
	capture_buffer__add(&out, frame, packed);
	free(frame);
	free(block->bytes);
	block->bytes = out.data;
	block->size = out.length;
}

static void claims_less(uint8_t *head)
{
	uint32_t length, raw = 100;

	memcpy(&length, head + 16, sizeof(length));
	memcpy(head + length - 35, &raw, sizeof(raw));
}

/* The words of a record that follow its type and length. */
static size_t record(uint8_t *to, uint32_t type, const void *payload, uint32_t size)
{
	memcpy(to, &type, 4);
	memcpy(to + 4, &size, 4);
	memcpy(to + 8, payload, size);
	return 8 + size;
}

static size_t encoded(uint8_t *to, struct stream_event event)
{
	struct capture_buffer buffer = {0};
	size_t size;

	capture__encode(&buffer, &event);
	size = record(to, event.type, buffer.data, (uint32_t)buffer.length);
	free(buffer.data);
	return size;
}

static void test_hostile(void **state)
{
	const struct stream_event clock = {.type = STREAM_CLOCK, .clock = {UTC - 1000, UTC}};
	struct stream_event thread = {.type = STREAM_THREAD,
				      .thread = {.job = "slurm:7", .host = "evil", .user = 1001}};
	struct stream_event step = {.type = STREAM_STATE, .state = {.to = "a@1+0x1", .labels = "", .common = ""}};
	struct stream_event good = bundle(0, 0, UTC - 500, 400);
	struct {
		const char *what, *says;
		struct stream_event events[4];
	} cases[] = {
	    {"no clock", "begin with the clock", {thread, step, good, {0}}},
	    {"unknown thread", "unknown thread", {clock, step, good, {0}}},
	    {"unknown state", "unknown thread or state", {clock, thread, good, {0}}},
	    {"another host", "another job or host", {clock, thread, step, good}},
	    {"another job", "another job or host", {clock, thread, step, good}},
	    {"too late", "outside of the block's", {clock, thread, step, bundle(0, 0, UTC - 500 + 1000 * S, 400)}},
	    {"since ever", "impossible", {clock, thread, step, bundle(0, 0, 0, UTC)}},
	    {"no number", "no number", {clock, thread, step, good}},
	    {"a bin of no time",
	     "impossible",
	     {clock, thread, {.type = STREAM_ACCOUNT, .account = {.bin = UINT64_MAX}}, {0}}},
	    {"no border", "border", {clock, {.type = STREAM_WINDOW, .window = {UTC, UTC + 1}}, {0}, {0}}},
	    {"clock", "clock is impossible", {{.type = STREAM_CLOCK, .clock = {1, UINT64_MAX}}, {0}, {0}, {0}}},
	    {"facts", "another job", {clock, {.type = STREAM_FACTS, .facts = {.job = "slurm:8"}}, {0}, {0}}},
	};
	struct block_reader *reader = block_reader__new();
	static uint8_t raw[1 << 20];
	struct block_head head;
	uint32_t huge = UINT32_MAX - 7;
	size_t size;

	(void)state;
	cases[3].events[1].thread.host = "other";
	cases[4].events[1].thread.user = 7;
	cases[7].events[3].bundle.factor[3] = NAN;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(NULL);
		write_host(path_a, "evil", 0, 1000, 0, true);
		pack(path_a, 9);
		size = 0;
		for (size_t k = 0; k < 4 && cases[i].events[k].type; k++)
			size += encoded(raw + size, cases[i].events[k]);
		forge(&shelf, 1, raw, size, NULL);
		if (read_stored(reader, 1, &head) != -EBADMSG || !strstr(err, cases[i].says) || !strstr(err, "evil"))
			fail_msg("%s: %s", cases[i].what, err);
		assert_int_equal(got.count, 0);
	}
	/* a bomb that says its size, one that says another, one beyond all bounds */
	memset(raw, 0, sizeof(raw));
	forge(&shelf, 1, raw, sizeof(raw), NULL);
	assert_int_equal(read_stored(reader, 1, &head), -EBADMSG);
	assert_non_null(strstr(err, "larger than a block may be"));
	forge(&shelf, 1, raw, 700000, claims_less);
	assert_int_equal(read_stored(reader, 1, &head), -EBADMSG);
	assert_non_null(strstr(err, "larger than its head says"));
	/* lengths beyond the block */
	size = encoded(raw, clock);
	memcpy(raw + size, &(uint32_t){STREAM_BUNDLE}, 4);
	memcpy(raw + size + 4, &huge, 4);
	forge(&shelf, 1, raw, size + 8, NULL);
	assert_int_equal(read_stored(reader, 1, &head), -EBADMSG);
	assert_non_null(strstr(err, "record is cut"));
	/* records of a later version are passed over */
	size = encoded(raw, clock);
	size += record(raw + size, 999, "later", 5);
	forge(&shelf, 1, raw, size, NULL);
	assert_int_equal(read_stored(reader, 1, &head), 0);
	assert_int_equal(got.count, 1);
	/* the others are read as before */
	assert_int_equal(read_stored(reader, 0, &head), 0);
	block_reader__free(reader);
}

/* Random frames behind a head that is right. */
static void test_random(void **state)
{
	struct block_reader *reader = block_reader__new();
	uint8_t raw[600];
	struct block_head head;
	size_t clock;

	(void)state;
	srand(3);
	write_host(path_a, "evil", 0, 1000, 0, true);
	pack(path_a, 9);
	clock = encoded(raw, (struct stream_event){.type = STREAM_CLOCK, .clock = {UTC - 1000, UTC}});
	for (int round = 0; round < 30000; round++) {
		size_t size = clock;

		while (size < 400 && rand() % 8) {
			uint8_t payload[60];
			size_t length = (size_t)rand() % sizeof(payload);

			for (size_t i = 0; i < length; i++)
				payload[i] = rand() % 3 ? (uint8_t)(rand() % 4) : (uint8_t)rand();
			size += record(raw + size, (uint32_t)rand() % 17, payload, (uint32_t)length);
		}
		forge(&shelf, 1, raw, size, NULL);
		recorder__clear(&got);
		if (read_stored(reader, 1, &head)) {
			assert_int_equal(got.count, 0);
			assert_non_null(strstr(err, "evil"));
		}
	}
	block_reader__free(reader);
}

static void other_digest(uint8_t *head)
{
	uint16_t host;

	memcpy(&host, head + 20, sizeof(host));
	head[22 + host] ^= 1;
}

static void test_versions(void **state)
{
	struct block_reader *reader = block_reader__new(), *other;
	struct capture_buffer raw = {0};
	uint64_t digest = 0xcbf29ce484222325ULL;
	struct block_head head;
	const char *own = block__tables_text(), *cut;
	uint8_t *bytes;
	char *text;

	(void)state;
	write_host(path_a, "n1", 0, 1000, 0, true);
	pack(path_a, 9);
	bytes = shelf.stored[1].block.bytes;
	bytes[11] = '7';
	assert_int_equal(read_stored(reader, 1, &head), -EPROTO);
	assert_non_null(strstr(err, "host n1"));
	assert_non_null(strstr(err, "version 7"));
	bytes[11] = '1';
	/* other columns, and no word about them yet */
	forge(&shelf, 1, "", 0, other_digest);
	assert_int_equal(read_stored(reader, 1, &head), -EAGAIN);
	/* a version without the last column of facts, which it names in its introduction */
	cut = strstr(
	    own,
	    ",{\"name\":\"without_own\",\"type\":\"text\",\"unit\":\"those that the node's own governor left out\"}]}"
	    ",\"window\"");
	assert_non_null(cut);
	text = calloc(1, strlen(own) + 1);
	memcpy(text, own, (size_t)(cut - own));
	strcat(text, strstr(cut, "]},\"window\""));
	for (const char *at = text; *at; at++)
		digest = (digest ^ (uint8_t)*at) * 0x100000001b3ULL;
	capture_buffer__add_u32(&raw, (uint32_t)strlen(text));
	capture_buffer__add(&raw, text, strlen(text));
	capture_buffer__add_u32(&raw, 2);
	capture_buffer__add(&raw, "{}", 2);
	capture_buffer__add_u32(&raw, 0);
	raw.length += encoded(raw.data + raw.length, /* its room was doubled */
			      (struct stream_event){.type = STREAM_CLOCK, .clock = {UTC - 1000, UTC}});
	bytes = shelf.stored[0].block.bytes;
	forge(&shelf, 0, raw.data, raw.length, other_digest);
	assert_int_equal(read_stored(reader, 0, &head), -EBADMSG);
	assert_non_null(strstr(err, "digest"));
	bytes = shelf.stored[0].block.bytes;
	memcpy(bytes + 22 + 2, &digest, sizeof(digest)); /* after the host n1 */
	forge(&shelf, 0, raw.data, raw.length, NULL);
	assert_int_equal(read_stored(reader, 0, &head), 0);
	assert_string_equal(block_reader__tunables(reader), "{}");
	assert_int_equal(recorder__count(&got, STREAM_CLOCK), 1);
	/* another reader of the run goes on with what this one knows */
	assert_string_equal(block_reader__columns(reader), text);
	other = block_reader__new();
	assert_string_equal(block_reader__columns(other), own);
	assert_int_equal(block_reader__introduce(other, own, NULL, NULL), 0);
	assert_ptr_equal(block_reader__columns(other), own);
	assert_int_equal(block_reader__introduce(other, "{\"bundle\":7", NULL, NULL), -EBADMSG);
	assert_int_equal(
	    block_reader__introduce(other, block_reader__columns(reader), block_reader__tunables(reader), "hello"), 0);
	assert_string_equal(block_reader__columns(other), text);
	assert_string_equal(block_reader__tunables(other), "{}");
	assert_string_equal(block_reader__hello(other), "hello");
	block_reader__free(other);
	free(text);
	free(raw.data);
	block_reader__free(reader);
}

/* After a drop the counts are in the heads, and the next block has an introduction with places and the clock. */
static void test_drops(void **state)
{
	struct wire_split *split = wire_split__new("main", "n1", "{}", &shelf.receiver);
	struct stream_sink *sink = wire_split__sink(split);
	struct block_reader *reader = block_reader__new();
	uint64_t mono = UTC - 1000;
	struct block_head head;

	(void)state;
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {mono, UTC}});
	put(sink, (struct stream_event){.type = STREAM_THREAD,
					.thread = {.pid = 7, .job = "mpi:1", .host = "n1", .user = 1}});
	put(sink, (struct stream_event){.type = STREAM_PLACE, .place = {.cpu = 3}});
	put(sink, (struct stream_event){.type = STREAM_HOST_CLOCK, .host_clock = {"n1", true, 5000}});
	put(sink, (struct stream_event){.type = STREAM_STATE, .state = {.to = "a@1+0x2", .labels = "", .common = ""}});
	for (uint64_t i = 1; i <= 125; i++) {
		put(sink, bundle(0, 0, mono + i * S, S / 2));
		wire_split__tick(split, i * S);
		if (i == 10)
			wire_split__dropped(split, &(struct block_drop){
						       .run = shelf.stored[0].block.run, .blocks = 4, .fragments = 40});
	}
	stream__close(sink);
	wire_split__free(split);
	for (size_t i = 0; i < shelf.count; i++) {
		recorder__clear(&got);
		assert_int_equal(read_stored(reader, i, &head), 0);
		/* the drop came while block 10 was under way or empty */
		assert_int_equal(head.dropped_fragments, i >= 10 ? 40 : 0);
		assert_int_equal(head.dropped_blocks, i >= 10 ? 4 : 0);
		assert_int_equal(recorder__count(&got, STREAM_PLACE), head.flags & BLOCK_INTRODUCES ? 1 : 0);
		/* the first block has it as it came, too */
		assert_int_equal(recorder__count(&got, STREAM_HOST_CLOCK), !!(head.flags & BLOCK_INTRODUCES));
		if (head.flags & BLOCK_INTRODUCES)
			assert_true(i % 60 == 0 || i == 10 || i == 11);
	}
	assert_true(shelf.count > 100);
	block_reader__free(reader);
}

/* Names of code go to the jobs that have the code: in a state, or where samples fell; and no others. */
static void test_names(void **state)
{
	struct wire_split *split = wire_split__new("main", "n1", "{}", &shelf.receiver);
	struct stream_sink *sink = wire_split__sink(split);
	struct block_reader *reader = block_reader__new();
	static const char *const sites[] = {"a@1+0x2", "a@1+0x3", "a@1+0x9", "a@1+0x7"};
	struct block_head head;

	(void)state;
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {UTC - 1000, UTC}});
	for (uint32_t i = 0; i < 2; i++) {
		put(sink,
		    (struct stream_event){.type = STREAM_THREAD,
					  .thread = {.id = i, .pid = i, .job = i ? "mpi:2" : "mpi:1", .host = "n1"}});
		put(sink,
		    (struct stream_event){
			.type = STREAM_STATE,
			.state = {.id = i, .to = i ? "b@1+0x2" : "a@1+0x2 < a@1+0x3", .labels = "", .common = ""}});
		put(sink, bundle(i, i, UTC, 1000));
	}
	put(sink, (struct stream_event){.type = STREAM_NAME, .name = {.site = sites[3], .function = "later"}});
	put(sink, (struct stream_event){.type = STREAM_INSIDE, .inside = {.site = sites[2], .samples = 1}});
	for (size_t i = 0; i < 3; i++)
		put(sink, (struct stream_event){.type = STREAM_NAME, .name = {.site = sites[i], .function = "f"}});
	/* its name is known before */
	put(sink, (struct stream_event){.type = STREAM_INSIDE, .inside = {.site = sites[3], .samples = 1}});
	stream__close(sink);
	wire_split__free(split);
	for (size_t i = 0; i < shelf.count; i++) {
		size_t names = 0;

		recorder__clear(&got);
		assert_int_equal(read_stored(reader, i, &head), 0);
		for (size_t at = 0; at < got.count; at++)
			names += got.events[at].type == STREAM_NAME;
		assert_int_equal(names, strcmp(head.job.job, "mpi:1") ? 0 : 4);
	}
	assert_int_equal(shelf.count, 2);
	block_reader__free(reader);
}

/* Large events, and more than a block holds: nothing is lost, and a block is never larger than it may be. */
static void test_bounds(void **state)
{
	struct wire_split *split = wire_split__new("main", "n1", "{}", &shelf.receiver);
	struct stream_sink *sink = wire_split__sink(split);
	struct block_reader *reader = block_reader__new();
	size_t bundles = 2000, read = 0;
	struct block_head head;
	char *label = malloc(300000);

	(void)state;
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {UTC - 1000, UTC}});
	put(sink, (struct stream_event){.type = STREAM_THREAD, .thread = {.job = "mpi:1", .host = "n1"}});
	for (uint32_t i = 0; i < 8; i++) {
		memset(label, 'a' + (int)i, 299999);
		label[i == 7 ? 299999 : 100000] = 0;
		put(sink, (struct stream_event){
			      .type = STREAM_STATE,
			      .state = {.id = i, .to = "a@1+0x2", .labels = label, .common = i == 7 ? label : ""}});
	}
	for (size_t i = 0; i < bundles; i++)
		put(sink, bundle(0, i % 8, UTC + i * S / 100, 1000));
	assert_int_equal(stream__close(sink), -E2BIG); /* the state with 600 KB is in no block, and said */
	wire_split__free(split);
	for (size_t i = 0; i < shelf.count; i++) {
		assert_true(shelf.stored[i].block.size <= BLOCK_BYTES_MAX);
		recorder__clear(&got);
		assert_int_equal(read_stored(reader, i, &head), 0);
		read += recorder__count(&got, STREAM_BUNDLE);
	}
	assert_int_equal(read, bundles / 8 * 7);
	free(label);
	block_reader__free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_round_trip, begin, end),
	    cmocka_unit_test_setup_teardown(test_alone, begin, end),
	    cmocka_unit_test_setup_teardown(test_damage, begin, end),
	    cmocka_unit_test_setup_teardown(test_hostile, begin, end),
	    cmocka_unit_test_setup_teardown(test_random, begin, end),
	    cmocka_unit_test_setup_teardown(test_versions, begin, end),
	    cmocka_unit_test_setup_teardown(test_drops, begin, end),
	    cmocka_unit_test_setup_teardown(test_names, begin, end),
	    cmocka_unit_test_setup_teardown(test_bounds, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources that arrive in parts, blocks in any order, leases: vapro-worker without a broker. */
#include "capture/stream_merge.h"
#include "job_blocks.h"
#include "worker/lease.h"

/* ---- sources of a merge */

/* Gives its events up to `ready`, then none yet. */
struct script {
	struct merge_reader reader; /* first */
	struct stream_event events[16];
	size_t count, at, ready;
};

static int script_next(struct merge_reader *reader, struct stream_event *event)
{
	struct script *script = (struct script *)reader;

	if (script->at == script->count)
		return 0;
	if (script->at == script->ready)
		return -EAGAIN;
	*event = script->events[script->at++];
	return 1;
}

static void script_add(struct script *script, struct stream_event event)
{
	script->events[script->count++] = event;
}

/* A thread and a state with the given ids, and a bundle and a window for each of two windows of a second. */
static void script_host(struct script *script, uint32_t id, int32_t rank, uint64_t boot_ns)
{
	uint64_t mono = UTC - boot_ns;

	*script = (struct script){.reader = {script_next}};
	script_add(script, (struct stream_event){.type = STREAM_CLOCK, .clock = {mono, UTC}});
	for (uint64_t i = 0; i < 2; i++) {
		/* announced again, as in each block */
		script_add(script, (struct stream_event){
				       .type = STREAM_THREAD,
				       .thread = {.id = id, .rank = rank, .world_size = 2, .job = "j", .host = "h"}});
		script_add(script, (struct stream_event){
				       .type = STREAM_STATE,
				       .state = {.id = id + 1, .from = "a", .to = "b", .labels = "", .common = ""}});
		script_add(script, bundle(id, id + 1, mono + i * S, S / 2));
		script_add(script, (struct stream_event){.type = STREAM_INSIDE,
							 .inside = {.thread = id, .state = id + 1, .samples = 1}});
		script_add(script, (struct stream_event){.type = STREAM_WINDOW,
							 .window = {UTC + i * S, UTC + (i + 1) * S, i == 1, 0}});
	}
	script->ready = script->count;
}

/* A merge of two hosts into `seen`. */
static struct stream_merge *merge_of(struct script *one, struct script *other)
{
	struct stream_merge *merge = stream_merge__new(&seen.sink, MERGE_BY_WINDOW);

	recorder__clear(&seen);
	assert_int_equal(stream_merge__add(merge, &one->reader), 0);
	assert_int_equal(stream_merge__add(merge, &other->reader), 1);
	return merge;
}

static void test_waits_for_sources(void **state)
{
	struct script one, other;
	struct stream_merge *merge;

	(void)state;
	script_host(&one, 7, 0, 5 * S);
	script_host(&other, 1000, 1, 9 * S);
	other.ready = 5;
	merge = merge_of(&one, &other);
	assert_int_equal(stream_merge__advance(merge), 0);
	assert_int_equal(recorder__count(&seen, STREAM_WINDOW), 0);
	assert_int_equal(stream_merge__read_ns(merge, 1), 0);
	assert_int_equal(stream_merge__due_ns(merge), UTC + S);
	other.ready = 6;
	assert_int_equal(stream_merge__advance(merge), 1);
	assert_int_equal(stream_merge__end_ns(merge), UTC + S);
	assert_int_equal(stream_merge__advance(merge), 0);
	/* without the other, whose events then come with the next window */
	stream_merge__excuse(merge, 1, true);
	assert_int_equal(stream_merge__advance(merge), 1);
	assert_int_equal(recorder__count(&seen, STREAM_BUNDLE), 3);
	assert_false(stream_merge__ended(merge));
	other.ready = other.count;
	stream_merge__excuse(merge, 1, false);
	assert_int_equal(stream_merge__advance(merge), 0);
	assert_true(stream_merge__ended(merge));
	assert_int_equal(stream_merge__finish(merge, true), 0);
	assert_int_equal(recorder__count(&seen, STREAM_BUNDLE), 4);
	/* equal states are one, threads are announced once, with dense ids; times are UTC */
	assert_int_equal(recorder__count(&seen, STREAM_THREAD), 2);
	assert_int_equal(recorder__count(&seen, STREAM_STATE), 1);
	for (size_t i = 0; i < seen.count; i++) {
		if (seen.events[i].type == STREAM_INSIDE) {
			assert_true(seen.events[i].inside.thread < 2);
			assert_int_equal(seen.events[i].inside.state, 0);
			continue;
		}
		if (seen.events[i].type != STREAM_BUNDLE)
			continue;
		assert_true(seen.events[i].bundle.thread < 2);
		assert_int_equal(seen.events[i].bundle.state, 0);
		assert_in_range(seen.events[i].bundle.start_ns, UTC, UTC + S);
	}
	stream_merge__free(merge);
}

/* A node's first windows are lost: its threads are there in windows before them, as in its capture. */
static void seen_before_its_windows(uint64_t from_ns)
{
	struct script one, other;
	struct stream_merge *merge;

	script_host(&one, 7, 0, 5 * S);
	other = (struct script){.reader = {script_next}};
	script_add(&other, (struct stream_event){.type = STREAM_CLOCK, .clock = {S, UTC}});
	script_add(&other,
		   (struct stream_event){.type = STREAM_THREAD,
					 .thread = {.id = 4, .rank = 1, .world_size = 2, .job = "j", .host = "i"}});
	script_add(&other, (struct stream_event){.type = STREAM_SEEN, .seen = {.thread = 4, .from_ns = from_ns}});
	script_add(&other, (struct stream_event){.type = STREAM_WINDOW, .window = {UTC + S, UTC + 2 * S, true, 0}});
	other.ready = other.count;
	merge = merge_of(&one, &other);
	assert_int_equal(stream_merge__advance(merge), 1);
	assert_int_equal(stream_merge__end_ns(merge), UTC + S);
	assert_int_equal(recorder__count(&seen, STREAM_SEEN), 1);
	assert_int_equal(recorder__count(&seen, STREAM_THREAD), 2);
	assert_int_equal(stream_merge__advance(merge), 1);
	assert_int_equal(recorder__count(&seen, STREAM_SEEN), 1);
	stream_merge__free(merge);
}

static void test_seen_before_its_windows(void **state)
{
	(void)state;
	seen_before_its_windows(S - 5);
	seen_before_its_windows(UINT64_MAX - UTC); /* a node that lies */
}

static void test_wrong_ids(void **state)
{
	struct stream_merge *merge;
	struct script script;

	(void)state;
	for (int i = 0; i < 2; i++) {
		recorder__clear(&seen);
		merge = stream_merge__new(&seen.sink, MERGE_BY_WINDOW);
		script_host(&script, i ? STREAM_MERGE_IDS : 3, 0, S);
		if (!i)
			script.events[3].bundle.thread = 4; /* not announced */
		assert_int_equal(stream_merge__add(merge, &script.reader), 0);
		assert_int_equal(stream_merge__advance(merge), -EINVAL);
		stream_merge__free(merge);
	}
}

/* ---- blocks of a job */

static void test_any_order(void **state)
{
	struct worker_job_state job_state;
	struct sent sent;
	struct found found;
	char *reference;

	(void)state;
	make_blocks(&sent);
	reference = in_order(&sent);
	for (unsigned seed = 1; seed < 6; seed++) {
		struct worker_job *job = new_job(&found);
		size_t order[BLOCKS];

		srandom(seed);
		for (size_t i = 0; i < sent.count; i++) {
			size_t k = (size_t)random() % (i + 1);

			order[i] = order[k];
			order[k] = i;
		}
		for (size_t i = 0; i < sent.count; i++) {
			give(job, &sent, order[i], mono_at(1));
			give(job, &sent, order[i], mono_at(1));
			assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
		}
		assert_int_equal(worker_job__finish(job, mono_at(1)), 0);
		assert_string_equal(found.lines, reference);
		worker_job__state(job, &job_state);
		assert_int_equal(job_state.blocks, sent.count);
		assert_int_equal(job_state.duplicates, sent.count);
		assert_int_equal(job_state.missing + job_state.late + job_state.refused, 0);
		worker_job__free(job);
		free(found.lines);
	}
	free(reference);
	free_blocks(&sent);
}

/* A later epoch gives what an earlier one has not, and nothing twice. */
static void test_another_epoch(void **state)
{
	struct worker_job *job;
	struct sent sent;
	struct found found = {.receiver = {find}};
	char *reference;

	(void)state;
	make_blocks(&sent);
	reference = in_order(&sent);
	job = worker_job__new(1, UTC + 15 * S, mono_at(1), &job_options, &found.receiver);
	for (size_t i = 0; i < sent.count; i++)
		give(job, &sent, i, mono_at(1));
	assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
	assert_int_equal(worker_job__finish(job, mono_at(1)), 0);
	assert_true(strlen(found.lines) < strlen(reference));
	assert_string_equal(found.lines, reference + strlen(reference) - strlen(found.lines));
	worker_job__free(job);
	free(found.lines);
	free(reference);
	free_blocks(&sent);
}

/* Each byte of a block damaged, blocks cut, and blocks under others' subjects: refused, and the rest stays as it was.
 */
static void test_hostile(void **state)
{
	struct worker_job_state job_state;
	struct worker_job *job;
	struct sent sent;
	struct found found;
	size_t refused = 0;

	(void)state;
	make_blocks(&sent);
	job = new_job(&found);
	for (size_t at = 0; at < sent.blocks[0].size; at += 7) {
		uint8_t *copy = malloc(sent.blocks[0].size);

		memcpy(copy, sent.blocks[0].bytes, sent.blocks[0].size);
		copy[at] ^= 0x40;
		assert_int_equal(worker_job__put(job, sent.subjects[0], 1, copy, sent.blocks[0].size, mono_at(1)), 0);
		copy = malloc(at + 1);
		memcpy(copy, sent.blocks[0].bytes, at);
		assert_int_equal(worker_job__put(job, sent.subjects[0], 1, copy, at, mono_at(1)), 0);
		refused += 2;
	}
	for (size_t i = 0; i < sent.count; i++) {
		void *copy = malloc(sent.blocks[i].size);

		memcpy(copy, sent.blocks[i].bytes, sent.blocks[i].size);
		assert_int_equal(
		    worker_job__put(job, "vapro.v1.in.test.other.node-0", 1, copy, sent.blocks[i].size, mono_at(1)), 0);
		give(job, &sent, i, mono_at(1));
		refused++;
	}
	assert_int_equal(worker_job__advance(job, mono_at(20), true), 0);
	assert_int_equal(worker_job__finish(job, mono_at(20)), 0);
	worker_job__state(job, &job_state);
	assert_true(job_state.refused > 0 && job_state.refused <= refused);
	assert_int_equal(found.end_ns, UTC + 25 * S);
	assert_non_null(strstr(found.lines, "block_refused"));
	assert_non_null(strstr(found.lines, "node-0"));
	worker_job__free(job);
	free(found.lines);
	free_blocks(&sent);
}

/* ---- leases */

static void test_lease_value(void **state)
{
	struct lease_value value = {LEASE_DONE, "host-0123", 7, UINT32_MAX, 5, 9}, again;
	char text[LEASE_VALUE_MAX];

	(void)state;
	assert_int_equal(lease_value__format(text, sizeof(text), &value), 0);
	assert_int_equal(lease_value__parse(&again, text), 0);
	assert_int_equal(again.state, value.state);
	assert_string_equal(again.worker, value.worker);
	assert_int_equal(again.epoch, value.epoch);
	assert_int_equal(again.through, value.through);
	assert_int_equal(again.blocks, value.blocks);
	assert_int_equal(again.checkpoint, value.checkpoint);
	assert_int_equal(lease_value__parse(&again, "{\"state\":\"mine\",\"worker\":\"w\"}"), -EINVAL);
	assert_int_equal(lease_value__parse(&again, "{\"state\":\"held\"}"), -EINVAL);
	assert_int_equal(lease_value__parse(&again, "[["), -EINVAL);
}

static void test_leases(void **state)
{
	struct lease_table leases = {.expire_ns = 5 * S};
	struct lease *lease = lease_table__of(&leases, "c.j");
	const char *held = "{\"state\":\"held\",\"worker\":\"a\",\"epoch\":3}";

	(void)state;
	assert_ptr_equal(lease_table__of(&leases, "c.j"), lease);
	assert_false(lease_table__may_take(&leases, lease, mono_at(1))); /* no blocks */
	lease->present = true;
	lease__note(lease, NULL, 0, mono_at(1));
	assert_true(lease_table__may_take(&leases, lease, mono_at(1)));
	/* time runs from when a revision was first seen, by the own clock */
	lease__note(lease, held, 10, mono_at(2));
	assert_int_equal(lease->value.epoch, 3);
	lease__note(lease, held, 10, mono_at(6));
	assert_false(lease_table__may_take(&leases, lease, mono_at(6)));
	assert_true(lease_table__may_take(&leases, lease, mono_at(7)));
	lease__note(lease, held, 11, mono_at(7));
	assert_false(lease_table__may_take(&leases, lease, mono_at(11)));
	/* an unreadable entry does not lose the epoch */
	lease__note(lease, "?", 12, mono_at(12));
	assert_true(lease_table__may_take(&leases, lease, mono_at(12)));
	assert_int_equal(lease->value.epoch, 3);
	lease__note(lease, "{\"state\":\"done\",\"worker\":\"a\",\"epoch\":3}", 13, mono_at(13));
	assert_false(lease_table__may_take(&leases, lease, mono_at(100)));
	lease->more = true;
	assert_true(lease_table__may_take(&leases, lease, mono_at(100)));

	/* shares, rounded up */
	lease_table__of(&leases, "c.k")->present = true;
	lease_table__of(&leases, "c.l")->present = true;
	lease_table__of(&leases, "c.gone");
	assert_int_equal(lease_table__wanted(&leases, 1), 3);
	assert_int_equal(lease_table__wanted(&leases, 2), 2);
	lease->ours = true;
	assert_int_equal(lease_table__wanted(&leases, 2), 1);
	assert_int_equal(lease_table__wanted(&leases, 3), 0);
	/* what is held beyond the share */
	lease_table__of(&leases, "c.k")->ours = true;
	lease_table__of(&leases, "c.l")->ours = true;
	assert_int_equal(lease_table__surplus(&leases, 0), 0); /* the number of workers is unknown */
	assert_int_equal(lease_table__surplus(&leases, 1), 0);
	assert_int_equal(lease_table__surplus(&leases, 2), 1);
	assert_int_equal(lease_table__surplus(&leases, 4), 2);
	lease_table__clear(&leases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_waits_for_sources),
	    cmocka_unit_test(test_wrong_ids),
	    cmocka_unit_test(test_seen_before_its_windows),
	    cmocka_unit_test(test_any_order),
	    cmocka_unit_test(test_another_epoch),
	    cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_lease_value),
	    cmocka_unit_test(test_leases),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

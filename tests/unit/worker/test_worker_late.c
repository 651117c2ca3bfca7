/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks that come late, only when the stream is read again, or never: vapro-worker without a broker. */
#include "job_blocks.h"

/* The place of the second node's first block: those of the first node come before. */
static size_t first_of_second(const struct sent *sent)
{
	size_t first = 0;

	while (strcmp(sent->subjects[first], sent->subjects[sent->count - 1]))
		first++;
	return first;
}

/* Some blocks come only when all are read again: nothing is missing, and nothing twice. */
static void test_passed_over(void **state)
{
	struct worker_job_state job_state;
	struct worker_job *job;
	struct sent sent;
	struct found found;
	char *reference;

	(void)state;
	make_blocks(&sent);
	reference = in_order(&sent);
	job = new_job(&found);
	for (size_t i = 0; i < sent.count; i++) {
		if (i % 7 != 3)
			give(job, &sent, i, mono_at(1));
	}
	assert_false(worker_job__wants_reread(job, mono_at(1), true));
	assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
	/* they may be on their way, and are waited for as long as the stream is being read */
	assert_false(worker_job__wants_reread(job, mono_at(2), true));
	assert_false(worker_job__wants_reread(job, mono_at(8), false));
	assert_true(worker_job__wants_reread(job, mono_at(8), true));
	for (size_t i = 0; i < sent.count; i++) {
		assert_false(worker_job__wants_save(job));
		give(job, &sent, i, mono_at(8));
		assert_false(worker_job__wants_reread(job, mono_at(8), false));
	}
	assert_false(worker_job__wants_reread(job, mono_at(9), true));
	assert_int_equal(worker_job__advance(job, mono_at(9), true), 0);
	assert_false(worker_job__wants_reread(job, mono_at(100), true));
	assert_int_equal(worker_job__finish(job, mono_at(100)), 0);
	assert_string_equal(found.lines, reference);
	worker_job__state(job, &job_state);
	assert_int_equal(job_state.blocks, sent.count);
	assert_int_equal(job_state.missing + job_state.late + job_state.refused, 0);
	worker_job__free(job);
	free(found.lines);
	free(reference);
	free_blocks(&sent);
}

/* A gap that comes soon after the blocks were read again waits until they may be read again once more. */
static void test_second_gap(void **state)
{
	struct worker_job_state job_state;
	struct worker_job *job;
	struct sent sent;
	struct found found;
	uint64_t s = 1;

	(void)state;
	make_blocks(&sent);
	job = new_job(&found);
	for (size_t i = 0; i < sent.count; i++) {
		if (i != 5 && i < sent.count - 4)
			give(job, &sent, i, mono_at(s));
	}
	for (; !worker_job__wants_reread(job, mono_at(s), true); s++) {
		assert_int_equal(worker_job__advance(job, mono_at(s), true), 0);
		assert_true(s < 10);
	}
	/* that takes 2 s, so that 20 s have to pass before it is done again */
	give(job, &sent, 5, mono_at(s + 2));
	assert_false(worker_job__wants_reread(job, mono_at(s + 2), true));
	give(job, &sent, sent.count - 1, mono_at(s + 2));
	for (s += 2; !worker_job__wants_reread(job, mono_at(s), true); s++) {
		assert_int_equal(worker_job__advance(job, mono_at(s), true), 0);
		worker_job__state(job, &job_state);
		assert_int_equal(job_state.missing, 0);
		assert_true(s < 40);
	}
	assert_true(s > 20);
	worker_job__free(job);
	free(found.lines);
	free_blocks(&sent);
}

/*
 * A block that is not there is missing after the stream was read again three times; it may come with the last one.
 * Returns how many blocks are missing.
 */
static uint64_t read_again(unsigned comes_with)
{
	struct worker_job_state job_state;
	struct worker_job *job;
	struct sent sent;
	struct found found;
	uint64_t s = 1;
	unsigned again = 0;

	make_blocks(&sent);
	job = new_job(&found);
	for (bool wants = true; wants; again++) {
		for (size_t i = 0; i < sent.count; i++) {
			if (i != 5 || (comes_with && again == comes_with))
				give(job, &sent, i, mono_at(s));
		}
		wants = worker_job__wants_reread(job, mono_at(s), true);
		for (uint64_t until = s + 20; s < until && !wants; s++) {
			assert_int_equal(worker_job__advance(job, mono_at(s), true), 0);
			wants = worker_job__wants_reread(job, mono_at(s), true);
		}
	}
	assert_int_equal(again, comes_with ? comes_with + 1 : 4);
	assert_int_equal(worker_job__advance(job, mono_at(s + 20), true), 0);
	assert_int_equal(worker_job__advance(job, mono_at(s + 40), true), 0);
	worker_job__state(job, &job_state);
	assert_false(worker_job__wants_reread(job, mono_at(s + 50), true));
	worker_job__free(job);
	free(found.lines);
	free_blocks(&sent);
	return job_state.missing;
}

static void test_not_there(void **state)
{
	(void)state;
	assert_int_equal(read_again(0), 1);
	assert_int_equal(read_again(1), 0);
	assert_int_equal(read_again(3), 0);
}

/* While blocks are read again new ones come, and they have a gap, too: that was read once, and is read again. */
static void test_gap_meanwhile(void **state)
{
	struct worker_job_state job_state;
	struct worker_job *job;
	struct sent sent;
	struct found found;
	uint64_t s = 1;
	size_t known;

	(void)state;
	make_blocks(&sent);
	known = sent.count - 20;
	job = new_job(&found);
	for (size_t i = 0; i < known; i++)
		if (i != 5)
			give(job, &sent, i, mono_at(s));
	for (; !worker_job__wants_reread(job, mono_at(s), true); s++) {
		assert_int_equal(worker_job__advance(job, mono_at(s), true), 0);
		assert_true(s < 10);
	}
	for (size_t i = 0; i < sent.count; i++)
		if (i != known + 7)
			give(job, &sent, i, mono_at(s));
	for (; !worker_job__wants_reread(job, mono_at(s), true); s++) {
		assert_int_equal(worker_job__advance(job, mono_at(s), true), 0);
		assert_true(s < 20);
	}
	give(job, &sent, known + 7, mono_at(s));
	assert_false(worker_job__wants_reread(job, mono_at(s), true));
	assert_int_equal(worker_job__finish(job, mono_at(s + 60)), 0);
	worker_job__state(job, &job_state);
	assert_int_equal(job_state.missing, 0);
	worker_job__free(job);
	free(found.lines);
	free_blocks(&sent);
}

/* A gap counts from the start, also while the blocks before it wait for a node that has sent nothing. */
static void test_gap_further_on(void **state)
{
	struct worker_job *job;
	struct sent sent;
	struct found found;
	uint64_t s = 1;
	size_t count = 0;

	(void)state;
	make_blocks(&sent);
	while (!strcmp(sent.subjects[count], sent.subjects[0]))
		count++;
	job = new_job(&found);
	for (size_t i = 0; i < count; i++)
		if (i != count - 3)
			give(job, &sent, i, mono_at(s));
	for (; !worker_job__wants_reread(job, mono_at(s), true); s++) {
		assert_int_equal(worker_job__advance(job, mono_at(s), true), 0);
		assert_true(s < 10);
	}
	assert_int_equal(found.windows, 0);
	worker_job__free(job);
	free(found.lines);
	free_blocks(&sent);
}

/* Removes the hello records, and returns how many there were. */
static unsigned remove_hellos(char *lines)
{
	unsigned count = 0;
	char *at = lines;

	while (*at) {
		char *next = strchr(at, '\n') + 1, *hello = strstr(at, "\"type\":\"hello\"");

		if (hello && hello < next) {
			memmove(at, next, strlen(next) + 1);
			count++;
		} else {
			at = next;
		}
	}
	return count;
}

/* A node whose introduction comes after the job has begun is introduced then; the records are the first node's. */
static void test_introduced_later(void **state)
{
	size_t first_of_b;
	struct sent sent;
	char *reference;

	(void)state;
	make_blocks(&sent);
	reference = in_order(&sent);
	assert_int_equal(remove_hellos(reference), 2);
	first_of_b = first_of_second(&sent);
	for (unsigned second = 0; second < 2; second++) {
		size_t from = second ? first_of_b : 0, to = second ? sent.count : first_of_b;
		struct worker_job *job;
		struct found found;

		job = new_job(&found);
		for (size_t i = 0; i < sent.count; i++) {
			if (i < from || i >= to || i == from + 2)
				give(job, &sent, i, mono_at(1));
		}
		assert_int_equal(worker_job__advance(job, mono_at(12), true), 0);
		for (size_t i = from; i < to; i++)
			give(job, &sent, i, mono_at(13));
		assert_int_equal(worker_job__advance(job, mono_at(13), true), 0);
		assert_int_equal(worker_job__finish(job, mono_at(14)), 0);
		assert_int_equal(remove_hellos(found.lines), 2);
		assert_string_equal(found.lines, reference);
		worker_job__free(job);
		free(found.lines);
	}
	free(reference);
	free_blocks(&sent);
}

/* The lines are those of the reference, but of the second pass. */
static void assert_second_pass(char *lines, const char *reference)
{
	assert_non_null(strstr(lines, "\"pass\":1}"));
	for (char *pass; (pass = strstr(lines, "\"pass\":1}"));)
		pass[7] = '0';
	assert_string_equal(lines, reference);
}

/* A node that is silent is not waited for; when its blocks come, the windows are judged again. */
static void test_late(void **state)
{
	size_t first_of_b;
	struct worker_job_state job_state;
	struct worker_job *job;
	struct sent sent;
	struct found found;
	char *reference;

	(void)state;
	make_blocks(&sent);
	reference = in_order(&sent);
	first_of_b = first_of_second(&sent);
	job = new_job(&found);
	for (size_t i = 0; i < first_of_b; i++)
		give(job, &sent, i, mono_at(1));
	assert_int_equal(worker_job__advance(job, mono_at(2), true), 0);
	assert_int_equal(found.windows, 0); /* one rank of two is missing */
	assert_int_equal(worker_job__advance(job, mono_at(12), true), 0);
	assert_true(found.windows >= 2);
	assert_string_not_equal(found.lines, reference);
	for (size_t i = first_of_b; i < sent.count; i++)
		give(job, &sent, i, mono_at(30));
	assert_false(worker_job__wants_again(job, mono_at(30)));
	assert_false(worker_job__ended(job, mono_at(30), 100 * S));
	assert_true(worker_job__wants_again(job, mono_at(200)));
	assert_int_equal(worker_job__again(job, mono_at(200)), 0);
	worker_job__state(job, &job_state);
	assert_int_equal(job_state.pass, 1);
	assert_int_equal(job_state.from_ns, 0);
	free(found.lines);
	found.lines = NULL;
	for (size_t i = 0; i < sent.count; i++)
		give(job, &sent, i, mono_at(200));
	assert_int_equal(worker_job__advance(job, mono_at(200), true), 0);
	assert_int_equal(worker_job__finish(job, mono_at(200)), 0);
	assert_second_pass(found.lines, reference);
	worker_job__free(job);
	free(found.lines);

	/* too late: counted */
	job = new_job(&found);
	for (size_t i = 0; i < first_of_b; i++)
		give(job, &sent, i, mono_at(1));
	assert_int_equal(worker_job__advance(job, mono_at(12), true), 0);
	for (size_t i = first_of_b; i < sent.count; i++)
		give(job, &sent, i, mono_at(80));
	assert_false(worker_job__wants_again(job, mono_at(200)));
	worker_job__state(job, &job_state);
	assert_true(job_state.late > 0);
	worker_job__free(job);
	free(found.lines);
	free(reference);
	free_blocks(&sent);
}

/* What a job finds that has all blocks when it begins, of which first ones of a node are gone. */
static char *in_time(const struct sent *sent, struct worker_job *job, struct found *found, uint64_t now_s)
{
	free(found->lines);
	found->lines = NULL;
	for (size_t i = 0; i < sent->count; i++)
		give(job, sent, i, mono_at(now_s));
	for (uint64_t later = 0; later < 60; later += 5)
		assert_int_equal(worker_job__advance(job, mono_at(now_s + later), true), 0);
	assert_false(worker_job__wants_again(job, mono_at(now_s + 60)));
	assert_int_equal(worker_job__finish(job, mono_at(now_s + 60)), 0);
	/* a warning has the time at which it was emitted */
	for (char *warning; (warning = strstr(found->lines, "\"type\":\"warning\",\"time\":\"2"));)
		memset(warning + strlen("\"type\":\"warning\",\"time\":\""), '-',
		       strlen("2026-11-24T00:00:00.000000000Z"));
	return found->lines;
}

/* A node whose first blocks are gone joins after windows were judged: these count its ranks, and are judged again. */
static void test_joined(void **state)
{
	static struct sent sent; /* with its blocks too large for a stack */
	size_t first_of_b, joined, early;
	struct worker_job *job;
	struct found found;
	char *reference;

	(void)state;
	make_blocks(&sent);
	first_of_b = first_of_second(&sent);
	joined = (sent.count - first_of_b) * 9 / 10;
	for (size_t i = first_of_b; i < first_of_b + joined; i++)
		free(sent.blocks[i].bytes);
	for (size_t i = first_of_b + joined; i < sent.count; i++) {
		sent.blocks[i - joined] = sent.blocks[i];
		strcpy(sent.subjects[i - joined], sent.subjects[i]);
	}
	sent.count -= joined;
	job = new_job(&found);
	reference = in_time(&sent, job, &found, 1);
	worker_job__free(job);

	early = first_of_b * 9 / 10;
	job = new_job(&found);
	for (size_t i = 0; i < early; i++)
		give(job, &sent, i, mono_at(1));
	assert_int_equal(worker_job__advance(job, mono_at(12), true), 0);
	assert_true(found.windows >= 1);
	for (size_t i = early; i < sent.count; i++)
		give(job, &sent, i, mono_at(20));
	assert_true(worker_job__wants_again(job, mono_at(200)));
	assert_int_equal(worker_job__again(job, mono_at(200)), 0);
	in_time(&sent, job, &found, 200);
	assert_second_pass(found.lines, reference);
	worker_job__free(job);
	free(found.lines);

	/* too late: its ranks count from then on */
	job = new_job(&found);
	for (size_t i = 0; i < early; i++)
		give(job, &sent, i, mono_at(1));
	assert_int_equal(worker_job__advance(job, mono_at(12), true), 0);
	for (size_t i = early; i < sent.count; i++)
		give(job, &sent, i, mono_at(80));
	assert_false(worker_job__wants_again(job, mono_at(300)));
	worker_job__free(job);
	free(found.lines);
	free(reference);
	free_blocks(&sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_gap_further_on), cmocka_unit_test(test_gap_meanwhile),
	    cmocka_unit_test(test_passed_over),	   cmocka_unit_test(test_not_there),
	    cmocka_unit_test(test_second_gap),	   cmocka_unit_test(test_introduced_later),
	    cmocka_unit_test(test_late),	   cmocka_unit_test(test_joined),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

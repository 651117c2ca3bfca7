/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoints that are cut, damaged, of another version or hostile: refused with a sentence, or harmless. A hostile
 * one has a right checksum; what is accepted goes on with more data and windows under the sanitizers.
 */
#include "checkpointed.h"

#include <endian.h>
#include <errno.h>
#include <zlib.h>

#include "sim.h"

#define HEAD (sizeof("vapro-checkpoint/4 analysis\n") - 1)

static struct vapro_config config;
static uint8_t *checkpoint;
static size_t size;

static int make(void **state)
{
	const struct sim_scenario scenario = {
	    .ranks = 3,
	    .seconds = 32,
	    .seed = 7,
	    .noise = 0.03,
	    .write_every = 10,
	    .hogs = {{.rank = 2, .begin = 12, .end = 24, .pid = 4711}},
	    .hog_count = 1,
	    .cpus = "0-3",
	};
	static struct sim_report report;

	(void)state;
	run.checkpoints = true;
	run.remembers = true;
	sim_run(&scenario, VAPRO_BY_INSTRUCTIONS, &report);
	end_run();
	checkpoint = run.last;
	size = run.bytes;
	run.last = NULL;
	sim_config(&config);
	config.hop_frames = 4;
	return 0;
}

static int drop(void **state)
{
	(void)state;
	free(checkpoint);
	return 0;
}

/* Loads, and where that succeeds goes on for two windows. */
static int load(const uint8_t *data, size_t length, char *err, size_t err_size)
{
	struct analysis *analysis = __real_analysis__new(&config, VAPRO_BY_INSTRUCTIONS);
	const uint64_t begin = SIM_BEGIN_NS + 40 * 1000000000ULL;
	const struct job_result *results;
	struct vapro_hop_event hop;
	uint32_t count;
	int status;

	assert_non_null(analysis);
	*err = '\0';
	status = analysis__load(analysis, data, length, err, err_size);
	for (uint32_t i = 0; !status && i < 200; i++) {
		const struct vapro_bundle bundle = {
		    .thread = i % 3,
		    .state = i % 5,
		    .n = 1,
		    .start_ns = begin + i * 90000000ULL,
		    .end_ns = begin + i * 90000000ULL + 7000000,
		    .sum_ns = 7000000,
		    .min_ns = 7000000,
		    .max_ns = 7000000,
		    .magnitude_min = {6e6},
		    .magnitude_max = {6e6},
		};

		(void)analysis__add_bundle(analysis, &bundle);
	}
	for (unsigned i = 0; !status && i < 2; i++) {
		const uint64_t from = begin + i * 10000000000ULL;

		(void)__real_analysis__end_window(analysis, from, from + 10000000000ULL, i == 1, &results, &count);
		analysis__hop_request(analysis, from, &hop);
	}
	analysis__free(analysis);
	return status;
}

/* Sets the checksum of damaged bytes right. */
static void forge(uint8_t *data)
{
	uint32_t crc = htole32((uint32_t)crc32_z(0, data + HEAD + 12, size - HEAD - 12));

	memcpy(data + HEAD + 8, &crc, sizeof(crc));
}

static void test_cut(void **state)
{
	char err[256];

	(void)state;
	assert_int_equal(load(checkpoint, size, err, sizeof(err)), 0);
	for (size_t cut = 0; cut < size; cut += cut < 64 ? 1 : 997) {
		uint8_t *data = malloc(cut + 1); /* sanitizers see what is read beyond */

		memcpy(data, checkpoint, cut);
		assert_int_equal(load(data, cut, err, sizeof(err)), -EBADMSG);
		assert_memory_equal(err, "the checkpoint is refused: it ", 30);
		free(data);
	}
}

static void test_damaged(void **state)
{
	char err[256];

	(void)state;
	for (size_t at = 0; at < size; at += at < 64 ? 1 : 499) {
		checkpoint[at] ^= (uint8_t)(1U << at % 8);
		assert_int_equal(load(checkpoint, size, err, sizeof(err)), -EBADMSG);
		assert_non_null(strstr(err, at < 17 ? "no checkpoint" : "it "));
		checkpoint[at] ^= (uint8_t)(1U << at % 8);
	}
	assert_int_equal(load(checkpoint, size, err, sizeof(err)), 0);
}

/* Any byte may have any value. Most are refused; none does harm. */
static void test_hostile(void **state)
{
	const uint8_t values[] = {0, 1, 2, 3, 0x7f, 0x80, 0xff};
	uint8_t *data = malloc(size);
	unsigned refused = 0, accepted = 0;
	uint64_t seed = 1;
	char err[256];

	(void)state;
	for (unsigned round = 0; round < 1500; round++) {
		size_t at = HEAD + 12 + (size_t)(sim_random(&seed) * (double)(size - HEAD - 12));
		unsigned changes = 1 + (unsigned)(3 * sim_random(&seed));
		int status;

		memcpy(data, checkpoint, size);
		/* the first part names tables and has the threads: it gets as many rounds as all others */
		if (round & 1)
			at = HEAD + 12 + (size_t)(sim_random(&seed) * 12000);
		for (unsigned i = 0; i < changes && at + i < size; i++)
			data[at + i] = sim_random(&seed) < 0.5
					   ? (uint8_t)(256 * sim_random(&seed))
					   : values[(size_t)(sim_random(&seed) * (double)sizeof(values))];
		forge(data);
		status = load(data, size, err, sizeof(err));
		if (status)
			assert_memory_equal(err, "the checkpoint is refused: ", 27);
		refused += status != 0;
		accepted += !status;
	}
	assert_true(refused > 100);
	assert_true(accepted > 0);
	free(data);
}

/* ---- no memory: the linker wraps the allocator, which fails on request */

static size_t allocations, fail_at; /* fail_at: number of the allocation that fails; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return ++allocations == fail_at ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return ++allocations == fail_at ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return ++allocations == fail_at ? NULL : __real_realloc(memory, bytes);
}

/* Wherever memory ends, neither loading nor saving does harm, and what was to be saved is as before. */
static void test_no_memory(void **state)
{
	struct analysis *whole = __real_analysis__new(&config, VAPRO_BY_INSTRUCTIONS), *part;
	uint8_t *data = NULL, *again;
	size_t length, all;
	char err[256];

	(void)state;
	allocations = 0;
	assert_int_equal(analysis__load(whole, checkpoint, size, err, sizeof(err)), 0);
	all = allocations;
	assert_true(all > 500);
	for (size_t at = 1; at <= all; at += 1 + at / 40) {
		part = __real_analysis__new(&config, VAPRO_BY_INSTRUCTIONS);
		allocations = 0;
		fail_at = at;
		assert_int_equal(analysis__load(part, checkpoint, size, err, sizeof(err)), -ENOMEM);
		fail_at = 0;
		assert_string_equal(err, "the checkpoint is refused: out of memory");
		analysis__free(part);
	}
	allocations = 0;
	assert_int_equal(analysis__save(whole, &data, &length, err, sizeof(err)), 0);
	all = allocations;
	for (size_t at = 1; at <= all; at += 1 + at / 40) {
		allocations = 0;
		fail_at = at;
		assert_int_equal(analysis__save(whole, &again, &length, err, sizeof(err)), -ENOMEM);
		fail_at = 0;
		assert_null(again);
	}
	assert_int_equal(length, 0);
	assert_int_equal(analysis__save(whole, &again, &length, err, sizeof(err)), 0);
	assert_int_equal(length, size);
	assert_memory_equal(again, data, length);
	assert_memory_equal(again, checkpoint, length);
	free(again);
	free(data);
	analysis__free(whole);
}

static void test_other_kinds(void **state)
{
	const char *const others[] = {"", "vapro-capture/1", "vapro-checkpoint/1 analysis\n............",
				      "vapro-checkpoint/4 pipeline\n............"};
	const char *const words[] = {"no checkpoint", "no checkpoint", "another version", "something else"};
	char err[256];

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		assert_int_equal(load((const uint8_t *)others[i], strlen(others[i]), err, sizeof(err)), -EBADMSG);
		assert_non_null(strstr(err, words[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut),		cmocka_unit_test(test_damaged),	  cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_other_kinds), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, make, drop);
}

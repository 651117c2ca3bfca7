// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernels compute what is known beforehand, on memory of any size, and a wrong result is noticed. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/kernels.h"

#define MIB (1UL << 20)

static struct kernel_line line;

static struct kernel_memory *memory_of(size_t bytes)
{
	struct kernel_memory *memory;

	memset(&line, 0, sizeof(line));
	memory = kernels__new(bytes, &line.word[1]);
	assert_non_null(memory);
	return memory;
}

/* Arrays shorter than the work of an iteration, of no power of two, and longer: they are passed once, in parts, often.
 */
static void test_results(void **state)
{
	static const size_t sizes[] = {MIB, 3 * MIB + 4096, 20 * MIB};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct kernel_memory *memory = memory_of(sizes[i]);

		for (int kernel = 0; kernel < NODE_KERNELS; kernel++) {
			assert_true(kernels__right(memory, (enum node_kernel)kernel));
			for (int times = 0; times < 3; times++) {
				kernels__run(memory, (enum node_kernel)kernel);
				assert_true(kernels__right(memory, (enum node_kernel)kernel));
			}
		}
		assert_int_equal(line.word[1], 3 * kernels__work(NODE_FALSE_SHARING));
		assert_int_equal(line.word[0], 0);
		assert_int_equal(line.word[2], 0);
		kernels__free(memory);
	}
}

static void test_wrong_results(void **state)
{
	(void)state;
	for (int kernel = 0; kernel < NODE_KERNELS; kernel++) {
		struct kernel_memory *memory = memory_of(MIB);

		kernels__run(memory, (enum node_kernel)kernel);
		kernels__damage(memory, (enum node_kernel)kernel);
		for (int other = 0; other < NODE_KERNELS; other++)
			assert_int_equal(kernels__right(memory, (enum node_kernel)other), other != kernel);
		kernels__free(memory);
	}
}

/* The work is exact: an instance's word counts each addition, whatever others do to the line. */
static void *add_beside(void *arg)
{
	struct kernel_memory *memory = arg;

	for (int times = 0; times < 5; times++)
		kernels__run(memory, NODE_FALSE_SHARING);
	return NULL;
}

static void test_shared_line(void **state)
{
	struct kernel_memory *memory = memory_of(MIB), *other = kernels__new(MIB, &line.word[0]);
	pthread_t thread;

	(void)state;
	assert_non_null(other);
	assert_int_equal(pthread_create(&thread, NULL, add_beside, other), 0);
	add_beside(memory);
	pthread_join(thread, NULL);
	assert_true(kernels__right(memory, NODE_FALSE_SHARING));
	assert_true(kernels__right(other, NODE_FALSE_SHARING));
	assert_int_equal(line.word[0], 5 * kernels__work(NODE_FALSE_SHARING));
	assert_int_equal(line.word[1], line.word[0]);
	kernels__free(memory);
	kernels__free(other);
}

static void test_work(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct kernel_line), 64);
	for (int kernel = 0; kernel < NODE_KERNELS; kernel++)
		assert_true(kernels__work((enum node_kernel)kernel) > 10000);
	assert_true(kernels__needs(MIB) > 3 * MIB);
	assert_true(kernels__needs(MIB) < 4 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_results),
	    cmocka_unit_test(test_wrong_results),
	    cmocka_unit_test(test_shared_line),
	    cmocka_unit_test(test_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

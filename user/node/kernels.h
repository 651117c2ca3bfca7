/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The five kernels of varbench (ICPP'18), each of which uses one resource of a node: a cache line of two CPUs, the
 * last-level cache, the latency of memory, its bandwidth, and the arithmetic of a core. An iteration has a fixed amount
 * of work, some milliseconds of a usual CPU, so that iterations of all CPUs, runs and nodes of a class are comparable.
 * All results are known beforehand.
 */
#ifndef VAPRO_NODE_KERNELS_H
#define VAPRO_NODE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum node_kernel {
	NODE_FALSE_SHARING, /* atomic additions to a word of a line whose other words other instances add to */
	NODE_LAST_LEVEL,    /* one word of each line of a part of a large array */
	NODE_RANDOM_ACCESS, /* updates of a table in random order */
	NODE_TRIAD,	    /* a = b + 3 c */
	NODE_MATRIX_PRODUCT,
	NODE_KERNELS,
};

extern const char *const node_kernel_name[NODE_KERNELS];

/* Words of a cache line, which belong to different instances. */
enum { KERNEL_LINE_WORDS = 8 };
struct kernel_line {
	uint64_t word[KERNEL_LINE_WORDS];
} __attribute__((aligned(64)));

/* Memory and state of one instance. */
struct kernel_memory;

/*
 * Makes the memory of an instance on the CPU that it runs on, which touches it first: three arrays of `bytes` (1 MiB
 * or more). word: its own of a shared line, 0 at first. Returns NULL when out of memory.
 */
struct kernel_memory *kernels__new(size_t bytes, uint64_t *word);
void kernels__free(struct kernel_memory *memory);

/* Bytes that an instance holds with arrays of `bytes`. */
size_t kernels__needs(size_t bytes);

/* Runs one iteration, which does kernels__work() units. */
void kernels__run(struct kernel_memory *memory, enum node_kernel kernel);
uint64_t kernels__work(enum node_kernel kernel);

/* Bytes that an iteration moves to or from memory at least; 0 where they say nothing of its speed. */
uint64_t kernels__bytes(enum node_kernel kernel);

/* Returns whether the results of all iterations of a kernel so far are right; takes some iterations' time. */
bool kernels__right(const struct kernel_memory *memory, enum node_kernel kernel);

/* Bends one result, so that a test sees what is said of a wrong one. */
void kernels__damage(struct kernel_memory *memory, enum node_kernel kernel);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/kernels.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	ADDITIONS = 100000,
	LINES = 65536, /* of 64 bytes: 4 MiB */
	UPDATES = 32768,
	ELEMENTS = 262144, /* 6 MiB of three arrays */
	ORDER = 96,	   /* of the matrices, 72 KiB each */
	PRODUCTS = 4,
	LINE_BYTES = sizeof(struct kernel_line),
	ARRAYS = 3, /* of kernels__new(): lines, table, triad */
};

#define TRIAD_FACTOR 3.0

const char *const node_kernel_name[NODE_KERNELS] = {
    [NODE_FALSE_SHARING] = "false_sharing",   [NODE_LAST_LEVEL] = "last_level_cache",
    [NODE_RANDOM_ACCESS] = "random_access",   [NODE_TRIAD] = "triad",
    [NODE_MATRIX_PRODUCT] = "matrix_product",
};

struct kernel_memory {
	uint64_t *word, additions;
	struct kernel_line *lines; /* each begins with its number */
	size_t line_count, line_at;
	uint64_t line_sum, line_expected;
	uint64_t *table; /* each is its number at first */
	size_t table_mask;
	uint64_t random, changes; /* all updates by exclusive or */
	double *a;		  /* then b and c */
	size_t elements, element_at, elements_run;
	double (*left)[ORDER], (*right)[ORDER], (*product)[ORDER];
	bool multiplied;
	size_t bytes;
};

static uint64_t power_of_two(uint64_t least)
{
	uint64_t power = 1;

	while (power * 2 <= least)
		power *= 2;
	return power;
}

static size_t matrix_bytes(void)
{
	return sizeof(double[ORDER][ORDER]);
}

size_t kernels__needs(size_t bytes)
{
	return ARRAYS * bytes + 3 * matrix_bytes();
}

/* Pages of one size, however fragmented the memory of the node is: large ones come and go from run to run. */
static void *map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

static double left_at(size_t i, size_t k)
{
	return (double)((i + k) % 7);
}

static double right_at(size_t k, size_t j)
{
	return (double)((k * j) % 5);
}

static double b_at(size_t i)
{
	return (double)(i % 1024);
}

static void fill(struct kernel_memory *memory)
{
	for (size_t i = 0; i < memory->line_count; i++)
		memory->lines[i].word[0] = i;
	for (size_t i = 0; i <= memory->table_mask; i++)
		memory->table[i] = i;
	for (size_t i = 0; i < memory->elements; i++) {
		memory->a[i] = 0;
		memory->a[memory->elements + i] = b_at(i);
		memory->a[2 * memory->elements + i] = 2;
	}
	for (size_t i = 0; i < ORDER; i++) {
		for (size_t j = 0; j < ORDER; j++) {
			memory->left[i][j] = left_at(i, j);
			memory->right[i][j] = right_at(i, j);
		}
	}
}

struct kernel_memory *kernels__new(size_t bytes, uint64_t *word)
{
	struct kernel_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NULL;
	memory->word = word;
	memory->bytes = bytes;
	memory->random = 88172645463325252ULL;
	memory->line_count = bytes / LINE_BYTES;
	memory->table_mask = power_of_two(bytes / sizeof(*memory->table)) - 1;
	memory->elements = bytes / (3 * sizeof(*memory->a));
	memory->lines = map(bytes);
	memory->table = map(bytes);
	memory->a = map(bytes);
	memory->left = map(matrix_bytes());
	memory->right = map(matrix_bytes());
	memory->product = map(matrix_bytes());
	if (!memory->lines || !memory->table || !memory->a || !memory->left || !memory->right || !memory->product) {
		kernels__free(memory);
		return NULL;
	}
	fill(memory);
	return memory;
}

static void unmap(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

void kernels__free(struct kernel_memory *memory)
{
	if (!memory)
		return;
	unmap(memory->lines, memory->bytes);
	unmap(memory->table, memory->bytes);
	unmap(memory->a, memory->bytes);
	unmap(memory->left, matrix_bytes());
	unmap(memory->right, matrix_bytes());
	unmap(memory->product, matrix_bytes());
	free(memory);
}

static void share_falsely(struct kernel_memory *memory)
{
	for (int i = 0; i < ADDITIONS; i++)
		__atomic_fetch_add(memory->word, 1, __ATOMIC_RELAXED);
	memory->additions += ADDITIONS;
}

static void walk_lines(struct kernel_memory *memory)
{
	size_t at = memory->line_at;
	uint64_t sum = 0;

	for (int i = 0; i < LINES; i++) {
		sum += memory->lines[at].word[0];
		at = at + 1 < memory->line_count ? at + 1 : 0;
	}
	/* the sum of numbers from line_at on, with what is passed again */
	for (size_t left = LINES, from = memory->line_at; left;) {
		size_t count = left < memory->line_count - from ? left : memory->line_count - from;

		memory->line_expected += (uint64_t)count * (2 * from + count - 1) / 2;
		left -= count;
		from = 0;
	}
	memory->line_at = at;
	memory->line_sum += sum;
}

static void access_randomly(struct kernel_memory *memory)
{
	uint64_t x = memory->random, changes = 0;

	for (int i = 0; i < UPDATES; i++) {
		x ^= x << 13; /* Marsaglia (2003) */
		x ^= x >> 7;
		x ^= x << 17;
		memory->table[x & memory->table_mask] ^= x;
		changes ^= x;
	}
	memory->random = x;
	memory->changes ^= changes;
}

static void run_triad(struct kernel_memory *memory)
{
	size_t at = memory->element_at;

	for (size_t left = ELEMENTS; left;) {
		size_t count = left < memory->elements - at ? left : memory->elements - at;
		double *restrict a = memory->a + at;
		const double *restrict b = memory->a + memory->elements + at;
		const double *restrict c = memory->a + 2 * memory->elements + at;

		for (size_t i = 0; i < count; i++)
			a[i] = b[i] + TRIAD_FACTOR * c[i];
		left -= count;
		at = at + count < memory->elements ? at + count : 0;
	}
	memory->element_at = at;
	memory->elements_run += ELEMENTS;
}

static void multiply(struct kernel_memory *memory)
{
	memset(memory->product, 0, matrix_bytes());
	for (int times = 0; times < PRODUCTS; times++) {
		for (size_t i = 0; i < ORDER; i++) {
			double *restrict row = memory->product[i];

			for (size_t k = 0; k < ORDER; k++) {
				const double *restrict other = memory->right[k];
				double factor = memory->left[i][k];

				for (size_t j = 0; j < ORDER; j++)
					row[j] += factor * other[j];
			}
		}
	}
	memory->multiplied = true;
}

void kernels__run(struct kernel_memory *memory, enum node_kernel kernel)
{
	switch (kernel) {
	case NODE_FALSE_SHARING:
		share_falsely(memory);
		break;
	case NODE_LAST_LEVEL:
		walk_lines(memory);
		break;
	case NODE_RANDOM_ACCESS:
		access_randomly(memory);
		break;
	case NODE_TRIAD:
		run_triad(memory);
		break;
	default:
		multiply(memory);
		break;
	}
}

uint64_t kernels__work(enum node_kernel kernel)
{
	static const uint64_t work[NODE_KERNELS] = {
	    [NODE_FALSE_SHARING] = ADDITIONS,
	    [NODE_LAST_LEVEL] = LINES,
	    [NODE_RANDOM_ACCESS] = UPDATES,
	    [NODE_TRIAD] = ELEMENTS,
	    [NODE_MATRIX_PRODUCT] = (uint64_t)PRODUCTS * ORDER * ORDER * ORDER,
	};

	return work[kernel];
}

uint64_t kernels__bytes(enum node_kernel kernel)
{
	return kernel == NODE_LAST_LEVEL ? (uint64_t)LINES * LINE_BYTES
	       : kernel == NODE_TRIAD	 ? (uint64_t)ELEMENTS * 3 * sizeof(double)
					 : 0;
}

static bool table_is_right(const struct kernel_memory *memory)
{
	uint64_t found = 0, expected = memory->changes;

	for (size_t i = 0; i <= memory->table_mask; i++) {
		found ^= memory->table[i];
		expected ^= i;
	}
	return found == expected;
}

static bool triad_is_right(const struct kernel_memory *memory)
{
	size_t run = memory->elements_run < memory->elements ? memory->elements_run : memory->elements;

	for (size_t i = 0; i < run; i++) {
		if (memory->a[i] != b_at(i) + TRIAD_FACTOR * 2)
			return false;
	}
	return true;
}

/* Products of small whole numbers are exact. */
static bool product_is_right(const struct kernel_memory *memory)
{
	for (size_t i = 0; memory->multiplied && i < ORDER; i++) {
		for (size_t j = 0; j < ORDER; j++) {
			double expected = 0;

			for (size_t k = 0; k < ORDER; k++)
				expected += PRODUCTS * left_at(i, k) * right_at(k, j);
			if (memory->product[i][j] != expected)
				return false;
		}
	}
	return true;
}

bool kernels__right(const struct kernel_memory *memory, enum node_kernel kernel)
{
	switch (kernel) {
	case NODE_FALSE_SHARING:
		return __atomic_load_n(memory->word, __ATOMIC_RELAXED) == memory->additions;
	case NODE_LAST_LEVEL:
		return memory->line_sum == memory->line_expected;
	case NODE_RANDOM_ACCESS:
		return table_is_right(memory);
	case NODE_TRIAD:
		return triad_is_right(memory);
	default:
		return product_is_right(memory);
	}
}

void kernels__damage(struct kernel_memory *memory, enum node_kernel kernel)
{
	switch (kernel) {
	case NODE_FALSE_SHARING:
		(*memory->word)++;
		break;
	case NODE_LAST_LEVEL:
		memory->line_sum ^= 1;
		break;
	case NODE_RANDOM_ACCESS:
		memory->table[memory->table_mask] ^= 1;
		break;
	case NODE_TRIAD:
		memory->a[0] += 1;
		break;
	default:
		memory->product[ORDER - 1][ORDER - 1] += 1;
		break;
	}
}

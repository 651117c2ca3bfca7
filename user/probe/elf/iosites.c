// SPDX-License-Identifier: GPL-2.0-or-later
/* The wrappers are disassembled; .eh_frame shows how far the stack has moved at each `syscall`. */
#include "probe/elf/iosites.h"

#include <stdlib.h>
#include <string.h>

/* Names lack leading underscores, so that aliases are found whichever of them a libc exports. */
static const char *const wrappers[] = {
    "read",   "write",	  "pread64", "pwrite64", "pread", "pwrite", "readv", "writev",	  "preadv", "pwritev",
    "open64", "openat64", "open",    "openat",	 "creat", "close",  "fsync", "fdatasync", "lseek",  "lseek64",
};

#define WRAPPERS (sizeof(wrappers) / sizeof(*wrappers))

const char *iosites__wrapper(size_t index)
{
	return index < WRAPPERS ? wrappers[index] : NULL;
}

#if defined(__x86_64__)

#include "probe/elf/instruction.h"

#define WRAPPER_BYTES_MAX 8192

struct search {
	struct image *image;
	struct io_site *out;
	size_t count, max;
};

static const char *wrapper_name(const char *symbol)
{
	while (*symbol == '_')
		symbol++;
	for (size_t i = 0; i < WRAPPERS; i++)
		if (!strcmp(wrappers[i], symbol))
			return wrappers[i];
	return NULL;
}

static bool known(const struct search *search, uint64_t vaddr)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->out[i].vaddr == vaddr)
			return true;
	return false;
}

static void add(struct search *search, const char *name, const struct instruction *instruction)
{
	uint64_t after = instruction->address + instruction->size, offset;
	int64_t cfa;

	/* The return address is the word below the CFA. A system call does not touch the stack. */
	if (known(search, after) || image__cfa(search->image, instruction->address, &cfa) || cfa < 8 ||
	    cfa > INT32_MAX || image__offset_of(search->image, after, &offset))
		return;
	search->out[search->count++] = (struct io_site){
	    .vaddr = after,
	    .offset = offset,
	    .displacement = (int32_t)(cfa - 8),
	    .name = name,
	};
}

static int visit(const struct image_symbol *symbol, void *ctx)
{
	struct search *search = ctx;
	const char *name = wrapper_name(symbol->name);
	struct instruction instruction;
	const uint8_t *code;
	size_t left;

	if (!name || symbol->ifunc || !symbol->dynamic || !symbol->size || symbol->size > WRAPPER_BYTES_MAX)
		return 0;
	code = image__bytes(search->image, symbol->vaddr, &left);
	if (!code || symbol->size > left)
		return 0;
	for (uint64_t k = 0; k < symbol->size && search->count < search->max; k += instruction.size) {
		if (!instruction__decode(code + k, symbol->size - k, symbol->vaddr + k, &instruction))
			break;
		if (instruction.system_call)
			add(search, name, &instruction);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct io_site *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

int iosites__find(struct image *image, struct io_site *out, size_t max)
{
	struct search search = {.image = image, .out = out, .max = max};

	image__functions(image, false, visit, &search);
	if (search.count)
		qsort(out, search.count, sizeof(*out), compare);
	return (int)search.count;
}

#else

/* arm64: the wrappers' return address is in x30, which leaf and frame keep in different places. */
int iosites__find(struct image *image, struct io_site *out, size_t max)
{
	(void)image;
	(void)out;
	(void)max;
	return 0;
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/pool_reader.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../bpf/logic.h"
#include "probe/bpf/kernel_side.h"

struct pool_reader {
	struct kernel_side *side;
	struct bpf_pool_slot *mapped; /* first `size` bytes of the pool; NULL: none */
	size_t size;
	uint32_t read_out[2]; /* bundles read of each half */
};

struct pool_reader *pool_reader__new(struct kernel_side *side, uint64_t now_ns)
{
	struct pool_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->side = side;
	*kernel_side__shared(side)->closed_bin = (uint32_t)(now_ns / KERNEL_BIN_NS - 1);
	return reader;
}

void pool_reader__free(struct pool_reader *reader)
{
	if (!reader)
		return;
	if (reader->mapped)
		munmap(reader->mapped, reader->size);
	free(reader);
}

/* Maps the first count places at least. Returns 0 or -errno. */
static int map(struct pool_reader *reader, uint32_t count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       size = (sizeof(struct bpf_pool_slot) * count + page - 1) & ~(page - 1);
	void *mapped;

	if (size <= reader->size)
		return 0;
	mapped =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, kernel_side__map(reader->side, KERNEL_MAP_POOL), 0);
	if (mapped == MAP_FAILED)
		return -errno;
	if (reader->mapped)
		munmap(reader->mapped, reader->size);
	reader->mapped = mapped;
	reader->size = size;
	return 0;
}

/* Reads even or odd bins. */
static void read_half(struct pool_reader *reader, unsigned odd, uint32_t last, uint32_t used, merged_bundle emit,
		      void *ctx)
{
	for (uint32_t i = 0; i < used; i++) {
		struct bpf_pool_slot *place = &reader->mapped[2 * i + odd];

		/* 0: already read, or being written; the bin is not over then */
		if (!__atomic_load_n(&place->key.state, __ATOMIC_ACQUIRE) || bin_after(place->key.bin, last) ||
		    !emit(ctx, &place->key, &place->bundle))
			continue;
		__atomic_store_n(&place->key.state, 0, __ATOMIC_RELEASE);
		reader->read_out[odd]++;
	}
}

int pool_reader__read(struct pool_reader *reader, uint32_t last, merged_bundle emit, void *ctx)
{
	uint32_t half = kernel_side__map_room(reader->side, KERNEL_MAP_POOL) / 2;

	*kernel_side__shared(reader->side)->closed_bin = last;
	for (unsigned odd = 0; odd < 2; odd++) {
		uint32_t *given = &kernel_side__shared(reader->side)->pool_used[odd],
			 used = __atomic_load_n(given, __ATOMIC_ACQUIRE);
		uint32_t count = used < half ? used : half;
		int status = map(reader, 2 * count);

		if (status)
			return status;
		read_half(reader, odd, last, count, emit, ctx);
		/* a half with more bundles by now goes on */
		if (reader->read_out[odd] == count &&
		    __atomic_compare_exchange_n(given, &used, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			reader->read_out[odd] = 0;
	}
	return 0;
}

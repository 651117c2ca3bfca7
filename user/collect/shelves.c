// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/shelves.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "../bpf/logic.h"
#include "model/grow.h"
#include "vapro.skel.h"

struct late {
	struct kernel_bundle_key key;
	struct kernel_bundle bundle;
};

struct shelves {
	struct vapro_bpf *bpf;
	char *mapped; /* of the first ones, as many as were in use so far; NULL: none */
	size_t size, stride;
	struct late *late; /* could not be told yet */
	size_t late_count, late_capacity;
};

struct shelves *shelves__new(struct vapro_bpf *bpf)
{
	struct shelves *shelves = calloc(1, sizeof(*shelves));

	if (!shelves)
		return NULL;
	shelves->bpf = bpf;
	shelves->stride = (sizeof(struct kernel_shelf) + 7) & ~(size_t)7;
	return shelves;
}

static void unmap(struct shelves *shelves)
{
	if (shelves->mapped)
		munmap(shelves->mapped, shelves->size);
	shelves->mapped = NULL;
	shelves->size = 0;
}

/* All that is mapped counts as this process's memory: no more than is used. Returns 0 or -errno. */
static int map(struct shelves *shelves, uint32_t count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (shelves->stride * count + page - 1) & ~(page - 1);
	void *mapped;

	if (size <= shelves->size)
		return 0;
	unmap(shelves);
	mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(shelves->bpf->maps.shelves), 0);
	if (mapped == MAP_FAILED)
		return -errno;
	shelves->mapped = mapped;
	shelves->size = size;
	return 0;
}

void shelves__free(struct shelves *shelves)
{
	if (!shelves)
		return;
	unmap(shelves);
	free(shelves->late);
	free(shelves);
}

static int keep(struct shelves *shelves, const struct kernel_bundle_key *key, const struct kernel_bundle *bundle)
{
	if (grow(&shelves->late, &shelves->late_capacity, shelves->late_count + 1, sizeof(*shelves->late)))
		return -ENOMEM;
	shelves->late[shelves->late_count++] = (struct late){.key = *key, .bundle = *bundle};
	return 0;
}

static void tell_late(struct shelves *shelves, shelves_bundle tell, void *ctx)
{
	size_t left = 0;

	for (size_t i = 0; i < shelves->late_count; i++) {
		if (!tell(ctx, &shelves->late[i].key, &shelves->late[i].bundle))
			shelves->late[left++] = shelves->late[i];
	}
	shelves->late_count = left;
}

int shelves__read(struct shelves *shelves, uint32_t last, shelves_bundle tell, void *ctx)
{
	uint32_t read = shelves->bpf->bss->read_bin, count = shelves->bpf->bss->shelves_used;
	int status;

	tell_late(shelves, tell, ctx);
	if (count > KERNEL_SHELVES)
		count = KERNEL_SHELVES;
	status = map(shelves, count);
	if (status)
		return status;
	shelves->bpf->bss->closed_bin = last;
	for (uint32_t i = 0; i < count; i++) {
		const struct kernel_shelf *shelf = (const struct kernel_shelf *)(shelves->mapped + i * shelves->stride);

		for (uint32_t place = 0; place < KERNEL_SHELF; place++) {
			const struct kernel_bundle_key *key = &shelf->key[place];

			/* keys lie together: most are judged without a look at their bundles */
			if (!bin_after(key->bin, read) || bin_after(key->bin, last) || !shelf->bundle[place].n)
				continue;
			if (!tell(ctx, key, &shelf->bundle[place]))
				status = keep(shelves, key, &shelf->bundle[place]) ? -ENOMEM : status;
		}
	}
	shelves->bpf->bss->read_bin = last;
	return status;
}

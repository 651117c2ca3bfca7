// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/finder.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_PAGES 8 /* 32 KiB, some 250 mappings per CPU between two drains */
#define RECORD_MAX 8192

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* the data follow the page */
};

struct finder {
	struct ring *rings;
	struct pollfd *fds;
	size_t count;
	size_t page_bytes;
	char record[RECORD_MAX]; /* a record that wraps around the end of a ring */
};

/* The part of PERF_RECORD_MMAP2 that is read. */
struct mapped_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
	char path[];
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

static int open_ring(struct finder *finder, struct ring *ring, int cpu)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE,
	    .size = sizeof(attr),
	    .config = PERF_COUNT_SW_DUMMY,
	    .mmap = 1, /* code only: data would be mmap_data */
	    .mmap2 = 1,
	    .watermark = 1,
	    .wakeup_watermark = (uint32_t)(RING_PAGES * finder->page_bytes / 2),
	};

	ring->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0)
		return -errno;
	ring->page = mmap(NULL, (1 + RING_PAGES) * finder->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (ring->page != MAP_FAILED)
		return 0;
	ring->page = NULL;
	return -errno;
}

struct finder *finder__new(char *err, size_t err_size)
{
	struct finder *finder = calloc(1, sizeof(*finder));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int status = -ENOMEM;

	if (!finder)
		goto fail;
	finder->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	finder->rings = calloc((size_t)cpus, sizeof(*finder->rings));
	finder->fds = calloc((size_t)cpus, sizeof(*finder->fds));
	if (!finder->rings || !finder->fds)
		goto fail;
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct ring *ring = &finder->rings[finder->count];

		status = open_ring(finder, ring, cpu);
		if (status == -ENODEV && ring->fd < 0)
			continue; /* CPU is offline */
		finder->count += ring->fd >= 0;
		if (status)
			goto fail;
		finder->fds[finder->count - 1] = (struct pollfd){.fd = ring->fd, .events = POLLIN};
	}
	return finder;
fail:
	snprintf(err, err_size, "mappings cannot be watched (perf event: %s)", strerror(-status));
	finder__free(finder);
	return NULL;
}

void finder__free(struct finder *finder)
{
	if (!finder)
		return;
	for (size_t i = 0; i < finder->count; i++) {
		if (finder->rings[i].page)
			munmap(finder->rings[i].page, (1 + RING_PAGES) * finder->page_bytes);
		close(finder->rings[i].fd);
	}
	free(finder->rings);
	free(finder->fds);
	free(finder);
}

/* Returns the record at a ring's position in one piece. NULL where it is none. */
static const struct perf_event_header *record_at(struct finder *finder, const struct ring *ring, uint64_t at)
{
	const char *data = (const char *)ring->page + finder->page_bytes;
	size_t size = RING_PAGES * finder->page_bytes, from = (size_t)(at % size);
	const struct perf_event_header *header = (const void *)(data + from); /* records are 8-byte aligned */

	if (header->size < sizeof(*header) || header->size > RECORD_MAX)
		return NULL;
	if (from + header->size <= size)
		return header;
	memcpy(finder->record, data + from, size - from);
	memcpy(finder->record + (size - from), data, header->size - (size - from));
	return (const void *)finder->record;
}

static size_t drain_ring(struct finder *finder, struct ring *ring, finder_mapped mapped, void *ctx, uint64_t *lost)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE), at = ring->page->data_tail;
	size_t reported = 0;

	/* what did not fit is recorded as lost with the next mapping on this CPU, which may be minutes later */
	if (head - at > RING_PAGES * finder->page_bytes - RECORD_MAX)
		*lost += 1;
	while (at < head) {
		const struct perf_event_header *header = record_at(finder, ring, at);

		if (!header) { /* never seen; the rest has no record borders */
			*lost += 1;
			at = head;
			break;
		}
		if (header->type == PERF_RECORD_LOST && header->size >= sizeof(struct lost_record)) {
			*lost += ((const struct lost_record *)header)->lost;
		} else if (header->type == PERF_RECORD_MMAP2 && header->size > sizeof(struct mapped_record)) {
			const struct mapped_record *record = (const void *)header;

			mapped(ctx, (pid_t)record->pid, record->path);
			reported++;
		}
		at += header->size;
	}
	__atomic_store_n(&ring->page->data_tail, at, __ATOMIC_RELEASE);
	return reported;
}

size_t finder__drain(struct finder *finder, finder_mapped mapped, void *ctx, uint64_t *lost)
{
	uint64_t missed = 0;
	size_t reported = 0;

	for (size_t i = 0; i < finder->count; i++)
		reported += drain_ring(finder, &finder->rings[i], mapped, ctx, &missed);
	if (lost)
		*lost = missed;
	return reported;
}

const struct pollfd *finder__fds(const struct finder *finder, size_t *count)
{
	*count = finder->count;
	return finder->fds;
}

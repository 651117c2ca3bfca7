/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A kernel side that only notes which probes are open: the real attachers run on it, without root. */
#ifndef VAPRO_FAKE_KERNEL_SIDE_H
#define VAPRO_FAKE_KERNEL_SIDE_H

#include <bpf/bpf.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "probe/attach/attachments.h"

#define PROBES_MAX 256
#define REFUSED 0xbad /* offset at which the kernel accepts no probe */

struct kernel_side {
	enum attach_mode mode;
	struct open_probe {
		uint64_t offset;
		pid_t pid;
		const struct kernel_link *link;
	} open[PROBES_MAX];
	size_t count;
	uint64_t calls[KERNEL_FUNCTIONS];
	uint64_t waits[KERNEL_FUNCTIONS], waited_ns[KERNEL_FUNCTIONS];	       /* of these calls */
	double entries_per_s[KERNEL_FUNCTIONS], exits_per_s[KERNEL_FUNCTIONS]; /* hits since begin_ns */
	uint64_t begin_ns;
	char order[256]; /* what was opened and closed: "+pid:offset", "-pid:offset" */
	uint64_t polls, looks;
	uint32_t rows_generation;
	struct kernel_shared shared;
};

static void note(struct kernel_side *side, char what, const struct open_probe *probe)
{
	size_t used = strlen(side->order);

	snprintf(side->order + used, sizeof(side->order) - used, "%c%d:%llu ", what, probe->pid,
		 (unsigned long long)probe->offset);
}

static bool is_open(const struct kernel_side *side, uint64_t offset, pid_t pid)
{
	for (size_t i = 0; i < side->count; i++)
		if (side->open[i].offset == offset && side->open[i].pid == pid)
			return true;
	return false;
}

int kernel_side__link(struct kernel_side *side, const struct kernel_sites *sites, struct kernel_link **link)
{
	size_t before = side->count;

	*link = calloc(1, sizeof(**link));
	for (uint32_t i = 0; i < sites->count; i++) {
		struct open_probe probe = {sites->offsets[i], sites->pid, *link};

		if (probe.offset == REFUSED) {
			sites->refused[i] = true;
			continue;
		}
		assert_true(side->count < PROBES_MAX);
		assert_false(is_open(side, probe.offset, probe.pid)); /* its calls would be seen twice */
		note(side, '+', &probe);
		side->open[side->count++] = probe;
	}
	if (side->count > before)
		return 0;
	free(*link);
	*link = NULL;
	return -EOPNOTSUPP;
}

void kernel_side__unlink(struct kernel_side *side, struct kernel_link *link)
{
	size_t left = 0;

	if (!link)
		return;
	for (size_t i = 0; i < side->count; i++)
		if (side->open[i].link != link)
			side->open[left++] = side->open[i];
		else
			note(side, '-', &side->open[i]);
	side->count = left;
	free(link);
}

enum attach_mode kernel_side__mode(const struct kernel_side *side)
{
	return side->mode;
}

bool kernel_side__frugal(const struct kernel_side *side)
{
	return side->mode == ATTACH_MODE_PERF;
}

void kernel_side__finalize(struct kernel_side *side)
{
	(void)side;
}

bool kernel_side__detaching(const struct kernel_side *side)
{
	(void)side;
	return false;
}

void kernel_side__hold(struct kernel_side *side, bool held)
{
	(void)side;
	(void)held;
}

const struct kernel_shared *kernel_side__shared(const struct kernel_side *side)
{
	return &side->shared;
}

static struct kernel_side side;

/* Begins without probes. */
static inline void fake__reset(enum attach_mode mode)
{
	side = (struct kernel_side){.mode = mode};
	side.begin_ns = mono_now();
	side.shared.polls_seen = &side.polls;
	side.shared.row_looks = &side.looks;
	side.shared.rows_generation = &side.rows_generation;
}

/* What is closed in the background is closed at once. */
struct async_detach *async_detach__new(void)
{
	return malloc(1);
}

void async_detach__free(struct async_detach *detacher)
{
	free(detacher);
}

void async_detach__close(struct async_detach *detacher, struct kernel_link *link)
{
	(void)detacher;
	kernel_side__unlink(&side, link);
}

bool async_detach__busy(struct async_detach *detacher, pid_t pid)
{
	(void)detacher;
	(void)pid;
	return false;
}

bool async_detach__busy_since(struct async_detach *detacher, uint64_t since_ns)
{
	(void)detacher;
	(void)since_ns;
	return false;
}

void async_detach__wait(struct async_detach *detacher)
{
	(void)detacher;
}

int kernel_side__map(struct kernel_side *of, enum kernel_map map)
{
	(void)of;
	return (int)map;
}

int bpf_map_lookup_elem(int map, const void *key, void *value)
{
	struct kernel_function_counters *per_cpu = value;
	double passed_s = (double)(mono_now() - side.begin_ns) * 1e-9;
	uint32_t row = *(const uint32_t *)key;

	assert_int_equal(map, KERNEL_MAP_FUNCTION_COUNTERS);
	memset(per_cpu, 0, sizeof(*per_cpu));
	per_cpu->enter = side.calls[row];
	per_cpu->waits = side.waits[row];
	per_cpu->waited_ns = side.waited_ns[row];
	per_cpu->entry_hits = (uint64_t)(side.entries_per_s[row] * passed_s);
	per_cpu->exit_hits = (uint64_t)(side.exits_per_s[row] * passed_s);
	return 0;
}

/* As kernels before 5.13, which read counters one by one. */
int bpf_map_lookup_batch(int map, void *in, void *out, void *keys, void *values, unsigned *count,
			 const struct bpf_map_batch_opts *opts)
{
	(void)in, (void)out, (void)keys, (void)values, (void)count, (void)opts;
	assert_int_equal(map, KERNEL_MAP_FUNCTION_COUNTERS);
	errno = EOPNOTSUPP;
	return -EOPNOTSUPP;
}

int bpf_map_update_batch(int map, const void *keys, const void *values, unsigned *count,
			 const struct bpf_map_batch_opts *opts)
{
	(void)keys, (void)values, (void)count, (void)opts;
	assert_int_equal(map, KERNEL_MAP_FUNCTIONS);
	return -EOPNOTSUPP;
}

int bpf_map_update_elem(int map, const void *key, const void *value, unsigned long long flags)
{
	(void)key;
	(void)value;
	(void)flags;
	assert_int_equal(map, KERNEL_MAP_FUNCTIONS);
	return 0;
}

#endif

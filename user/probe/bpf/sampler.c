// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/sampler.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/grow.h"
#include "probe/bpf/kernel_side.h"

#define BATCH 256

struct clock {
	pid_t tid;
	int file;
};

struct sampler {
	struct kernel_side *side;
	struct clock clocks[SAMPLER_THREADS];
	size_t count;
	uint64_t lost; /* reported so far, of the kernel side's count */
	struct sampler_entry *entries;
	size_t room;
};

struct sampler *sampler__new(struct kernel_side *side)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	if (sampler)
		sampler->side = side;
	return sampler;
}

void sampler__free(struct sampler *sampler)
{
	if (!sampler)
		return;
	sampler__select(sampler, NULL, 0);
	free(sampler->entries);
	free(sampler);
}

int sampler__open(const struct kernel_side *side, pid_t tid, uint64_t period_ns)
{
	struct perf_event_attr clock = {.type = PERF_TYPE_SOFTWARE,
					.size = sizeof(clock),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = period_ns};
	int program = kernel_side__sampling_program(side), file, error;

	if (program < 0)
		return program;
	file = (int)syscall(SYS_perf_event_open, &clock, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (file < 0)
		return -errno;
	if (!ioctl(file, PERF_EVENT_IOC_SET_BPF, program))
		return file;
	error = errno;
	close(file);
	return -error;
}

static bool is_wanted(pid_t tid, const pid_t *tids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

static bool is_sampled(const struct sampler *sampler, pid_t tid)
{
	for (size_t i = 0; i < sampler->count; i++)
		if (sampler->clocks[i].tid == tid)
			return true;
	return false;
}

int sampler__select(struct sampler *sampler, const pid_t *tids, size_t count)
{
	for (size_t i = sampler->count; i-- > 0;) {
		if (is_wanted(sampler->clocks[i].tid, tids, count))
			continue;
		close(sampler->clocks[i].file);
		sampler->clocks[i] = sampler->clocks[--sampler->count];
	}
	for (size_t i = 0; i < count && sampler->count < SAMPLER_THREADS; i++) {
		int file;

		if (is_sampled(sampler, tids[i]))
			continue;
		file = sampler__open(sampler->side, tids[i], 1000000000 / SAMPLER_HZ);
		if (file == -ESRCH)
			continue;
		if (file < 0) {
			sampler__select(sampler, NULL, 0);
			return file;
		}
		sampler->clocks[sampler->count++] = (struct clock){tids[i], file};
	}
	return 0;
}

size_t sampler__count(const struct sampler *sampler)
{
	return sampler->count;
}

size_t sampler__drain(struct sampler *sampler, struct sampler_entry **entries, uint64_t *lost)
{
	int map = kernel_side__map(sampler->side, KERNEL_MAP_INSIDE_SAMPLES), status = 0;
	uint64_t full = *kernel_side__shared(sampler->side)->inside_lost;
	struct kernel_inside_key keys[BATCH];
	struct kernel_inside values[BATCH];
	uint32_t in, out = 0, read;
	size_t count = 0;

	*lost = full - sampler->lost;
	sampler->lost = full;
	for (bool first = true; !status; first = false) {
		in = out;
		read = BATCH;
		status = bpf_map_lookup_and_delete_batch(map, first ? NULL : &in, &out, keys, values, &read, NULL);
		if (status && errno != ENOENT) /* ENOENT: these are the last ones */
			break;
		if (grow(&sampler->entries, &sampler->room, count + read, sizeof(*sampler->entries)))
			break;
		for (uint32_t i = 0; i < read; i++)
			sampler->entries[count++] = (struct sampler_entry){keys[i], values[i]};
	}
	*entries = sampler->entries;
	return count;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/instances.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define SLOT_NS (VAPRO_BIN_NS / 2) /* time of a kernel before the next one: a slot lies in one bin */
#define LONG_ITERATION_NS (SLOT_NS / 8)
#define STACK_BYTES (256UL << 10)

enum { PER_LINE = 2 }; /* instances that share a cache line: neighbours on a socket */

/* What all threads do in the next iteration. */
struct plan {
	enum node_kernel kernel;
	bool counts; /* the first iteration of a slot has the caches of another kernel */
	bool over;
};

struct instances {
	const struct machine_cpus *machine;
	int pipe;
	uint64_t utc_offset_ns; /* UTC less the monotonic clock */
	double seconds;
	pthread_barrier_t barrier;
	struct plan plans[2]; /* of even and of odd iterations: one is read while the other is made */
	struct kernel_line *lines;
	/* Of the leader, instance 0. */
	uint64_t end_ns; /* monotonic */
	uint64_t slot;
	bool begun;
	enum node_kernel kernel;
	uint64_t lasts_ns[NODE_KERNELS]; /* its latest iteration of each; 0: none yet */
};

struct instance {
	struct instances *all;
	uint32_t number;
	struct kernel_memory *memory;
	struct node_bundle open; /* n 0: none */
	bool pinned;
};

static void send(const struct instances *all, const struct instance_message *message)
{
	while (write(all->pipe, message, sizeof(*message)) < 0) {
		if (errno != EINTR)
			_exit(1); /* the parent is gone */
	}
}

__attribute__((noreturn)) static void fail(const struct instances *all, int error)
{
	struct instance_message message = {.news = INSTANCE_FAILED, .error = error};

	send(all, &message);
	_exit(1);
}

static uint64_t slot_of(const struct instances *all, uint64_t mono_ns)
{
	return (mono_ns + all->utc_offset_ns) / SLOT_NS;
}

/* Returns the monotonic time at which a slot ends. */
static uint64_t end_of(const struct instances *all, uint64_t slot)
{
	return (slot + 1) * SLOT_NS - all->utc_offset_ns;
}

static void sleep_until(uint64_t mono_ns)
{
	struct timespec until = {.tv_sec = (time_t)(mono_ns / 1000000000), .tv_nsec = (long)(mono_ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* Whether an instance has others to share a cache line with. */
static bool shares(const struct instances *all)
{
	return all->machine->count > 1;
}

/*
 * Decides the next iteration. Where another one would not fit into the slot it sleeps until the next slot, with the
 * others at the barrier: an iteration is part of the bin in which it ends.
 */
static void make_plan(struct instances *all, struct plan *plan)
{
	uint64_t now = mono_now(), slot = slot_of(all, now);
	bool next = !all->begun || slot != all->slot;

	if (!next && now + all->lasts_ns[all->kernel] + all->lasts_ns[all->kernel] / 4 > end_of(all, slot)) {
		sleep_until(end_of(all, slot));
		slot = slot_of(all, mono_now());
		next = true;
	}
	if (!all->begun) {
		sleep_until(end_of(all, slot));
		slot = slot_of(all, mono_now());
	}
	if (next) {
		all->kernel = all->begun ? (all->kernel + 1) % NODE_KERNELS : NODE_LAST_LEVEL;
		if (all->kernel == NODE_FALSE_SHARING && !shares(all))
			all->kernel++;
	}
	all->slot = slot;
	all->begun = true;
	*plan = (struct plan){.kernel = all->kernel,
			      .counts = !next || all->lasts_ns[all->kernel] > LONG_ITERATION_NS,
			      .over = mono_now() >= all->end_ns};
}

static void flush(struct instance *instance)
{
	struct instance_message message = {.news = INSTANCE_BUNDLE, .bundle = instance->open};

	if (instance->open.n)
		send(instance->all, &message);
	instance->open.n = 0;
	if (instance->pinned && sched_getcpu() != instance->all->machine->cpus[instance->number].cpu) {
		/* its CPU went offline */
		message = (struct instance_message){.news = INSTANCE_UNPINNED, .bundle.instance = instance->number};
		instance->pinned = false;
		send(instance->all, &message);
	}
}

static void note(struct instance *instance, enum node_kernel kernel, uint64_t start_ns, uint64_t end_ns,
		 uint64_t waited_ns)
{
	uint64_t offset = instance->all->utc_offset_ns, ns = end_ns - start_ns;
	struct node_bundle *open = &instance->open;

	if (open->n &&
	    (open->kernel != kernel || slot_of(instance->all, end_ns) != slot_of(instance->all, open->end_ns - offset)))
		flush(instance);
	if (!open->n)
		*open = (struct node_bundle){.instance = instance->number,
					     .kernel = kernel,
					     .start_ns = start_ns + offset,
					     .min_ns = ns,
					     .max_ns = ns};
	open->n++;
	open->end_ns = end_ns + offset;
	open->sum_ns += ns;
	open->min_ns = ns < open->min_ns ? ns : open->min_ns;
	open->max_ns = ns > open->max_ns ? ns : open->max_ns;
	open->waited_ns += waited_ns < ns ? waited_ns : ns;
}

static void check_results(struct instance *instance)
{
	for (int kernel = 0; kernel < NODE_KERNELS; kernel++) {
		struct instance_message message = {
		    .news = INSTANCE_WRONG, .bundle = {.instance = instance->number, .kernel = (uint32_t)kernel}};

		if (!kernels__right(instance->memory, (enum node_kernel)kernel))
			send(instance->all, &message);
	}
}

/* Gives the thread its CPU. */
static void pin(struct instance *instance)
{
	struct instance_message message = {.news = INSTANCE_UNPINNED, .bundle.instance = instance->number};
	int cpu = instance->all->machine->cpus[instance->number].cpu;
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);

	if (!set)
		fail(instance->all, ENOMEM);
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	instance->pinned = !sched_setaffinity(0, size, set);
	CPU_FREE(set);
	if (!instance->pinned)
		send(instance->all, &message);
}

static void *run_instance(void *arg)
{
	struct instance *instance = arg;
	struct instances *all = instance->all;
	uint32_t group = instance->number / PER_LINE, word = instance->number % PER_LINE;

	/* the last of an odd number shares the line of the two before */
	if (!word && instance->number && instance->number + 1 == all->machine->count) {
		group--;
		word = PER_LINE;
	}
	pin(instance);
	instance->memory = kernels__new(all->machine->array_bytes, &all->lines[group].word[word]);
	if (!instance->memory)
		fail(all, ENOMEM);
	pthread_barrier_wait(&all->barrier);
	if (!instance->number)
		all->end_ns = mono_now() + (uint64_t)(all->seconds * 1e9); /* the memory of all is there */
	for (uint64_t iteration = 0;; iteration++) {
		struct plan *plan = &all->plans[iteration & 1];
		uint64_t start_ns, end_ns, cpu_ns;

		if (!instance->number)
			make_plan(all, plan);
		pthread_barrier_wait(&all->barrier);
		if (plan->over)
			break;
		cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		start_ns = mono_now();
		kernels__run(instance->memory, plan->kernel);
		end_ns = mono_now();
		cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
		if (!instance->number)
			all->lasts_ns[plan->kernel] = end_ns - start_ns;
		if (plan->counts)
			note(instance, plan->kernel, start_ns, end_ns,
			     end_ns - start_ns > cpu_ns ? end_ns - start_ns - cpu_ns : 0);
	}
	flush(instance);
	check_results(instance);
	kernels__free(instance->memory);
	return NULL;
}

void instances__run(const struct machine_cpus *machine, double seconds, int pipe)
{
	struct instances all = {.machine = machine, .pipe = pipe, .seconds = seconds};
	struct instance_message done = {.news = INSTANCE_DONE};
	struct instance *list = calloc(machine->count, sizeof(*list));
	pthread_t *threads = calloc(machine->count, sizeof(*threads));
	pthread_attr_t attributes;
	int error;

	all.utc_offset_ns = utc_now() - mono_now();
	all.lines = aligned_alloc(sizeof(*all.lines), (machine->count + 1) * sizeof(*all.lines));
	if (!list || !threads || !all.lines)
		fail(&all, ENOMEM);
	memset(all.lines, 0, (machine->count + 1) * sizeof(*all.lines));
	prctl(PR_SET_NAME, "vapro-node");
	error = pthread_attr_init(&attributes);
	error = error ? error : pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = error ? error : pthread_barrier_init(&all.barrier, NULL, (unsigned)machine->count);
	for (uint32_t i = 0; !error && i < machine->count; i++) {
		list[i] = (struct instance){.all = &all, .number = i};
		error = pthread_create(&threads[i], &attributes, run_instance, &list[i]);
	}
	if (error)
		fail(&all, error);
	for (size_t i = 0; i < machine->count; i++)
		pthread_join(threads[i], NULL);
	send(&all, &done);
	_exit(0);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/node_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define SITE "barrier@check+0x1" /* iterations begin and end at barriers */
#define TIME_MOST (1ULL << 62)

enum { BUNDLES_MOST = 400000, TYPES_MOST = 8, LABELS_SIZE = 96 };

struct node_run {
	struct machine_cpus machine;
	struct node_bundle *bundles; /* as they came: those of an instance in the order of time */
	size_t count, capacity;
	bool *unpinned;	 /* by instance */
	uint32_t *wrong; /* bits of kernels, by instance */
};

struct node_run *node_run__empty(void)
{
	return calloc(1, sizeof(struct node_run));
}

/* Makes the lists by instance. Returns 0 or -ENOMEM. */
static int make_lists(struct node_run *run)
{
	run->unpinned = calloc(run->machine.count + 1, sizeof(*run->unpinned));
	run->wrong = calloc(run->machine.count + 1, sizeof(*run->wrong));
	return run->unpinned && run->wrong ? 0 : -ENOMEM;
}

struct node_run *node_run__new(const struct machine_cpus *machine)
{
	struct node_run *run = node_run__empty();

	if (run && !machine_cpus__copy(&run->machine, machine) && !make_lists(run))
		return run;
	node_run__free(run);
	return NULL;
}

void node_run__free(struct node_run *run)
{
	if (!run)
		return;
	machine_cpus__clear(&run->machine);
	free(run->bundles);
	free(run->unpinned);
	free(run->wrong);
	free(run);
}

static bool possible(const struct node_run *run, const struct node_bundle *bundle)
{
	return bundle->instance < run->machine.count && bundle->kernel < NODE_KERNELS && bundle->n &&
	       bundle->start_ns < bundle->end_ns && bundle->end_ns < TIME_MOST && bundle->min_ns <= bundle->max_ns &&
	       bundle->max_ns <= bundle->sum_ns && bundle->sum_ns <= bundle->end_ns - bundle->start_ns &&
	       bundle->min_ns <= bundle->sum_ns / bundle->n && bundle->waited_ns <= bundle->sum_ns;
}

int node_run__add(struct node_run *run, const struct node_bundle *bundle)
{
	if (!possible(run, bundle))
		return -EINVAL;
	if (run->count >= BUNDLES_MOST)
		return -E2BIG;
	if (grow(&run->bundles, &run->capacity, run->count + 1, sizeof(*run->bundles)))
		return -ENOMEM;
	run->bundles[run->count++] = *bundle;
	return 0;
}

void node_run__unpin(struct node_run *run, uint32_t instance)
{
	if (instance < run->machine.count)
		run->unpinned[instance] = true;
}

void node_run__note_wrong(struct node_run *run, uint32_t instance, enum node_kernel kernel)
{
	if (instance < run->machine.count)
		run->wrong[instance] |= 1U << kernel;
}

const struct machine_cpus *node_run__machine(const struct node_run *run)
{
	return &run->machine;
}

size_t node_run__count(const struct node_run *run)
{
	return run->count;
}

size_t node_run__unpinned(const struct node_run *run)
{
	size_t count = 0;

	for (size_t i = 0; i < run->machine.count; i++)
		count += run->unpinned[i];
	return count;
}

bool node_run__wrong(const struct node_run *run, uint32_t instance, enum node_kernel kernel)
{
	return run->wrong[instance] & 1U << kernel;
}

double node_run__mean_ns(const struct node_run *run, enum node_kernel kernel)
{
	double sum = 0, n = 0;

	for (size_t i = 0; i < run->count; i++) {
		if (run->bundles[i].kernel != kernel)
			continue;
		sum += (double)run->bundles[i].sum_ns;
		n += run->bundles[i].n;
	}
	return n > 0 ? sum / n : NAN;
}

/* The first begin and the last end; false of an empty run. */
static bool span_of(const struct node_run *run, uint64_t *begin_ns, uint64_t *end_ns)
{
	*begin_ns = UINT64_MAX;
	*end_ns = 0;
	for (size_t i = 0; i < run->count; i++) {
		if (run->bundles[i].start_ns < *begin_ns)
			*begin_ns = run->bundles[i].start_ns;
		if (run->bundles[i].end_ns > *end_ns)
			*end_ns = run->bundles[i].end_ns;
	}
	return run->count;
}

double node_run__seconds(const struct node_run *run)
{
	uint64_t begin_ns, end_ns;

	return span_of(run, &begin_ns, &end_ns) ? (double)(end_ns - begin_ns) * 1e-9 : 0;
}

uint64_t node_run__begin_ns(const struct node_run *run)
{
	uint64_t begin_ns, end_ns;

	return span_of(run, &begin_ns, &end_ns) ? begin_ns : 0;
}

double node_run__waited(const struct node_run *run, uint32_t instance)
{
	double sum = 0, waited = 0;

	for (size_t i = 0; i < run->count; i++) {
		if (run->bundles[i].instance != instance)
			continue;
		sum += (double)run->bundles[i].sum_ns;
		waited += (double)run->bundles[i].waited_ns;
	}
	return sum > 0 ? waited / sum : 0;
}

enum node_kernel node_run__kernel_of(const char *labels)
{
	const char *at = labels ? strstr(labels, "kernel=") : NULL;

	for (int kernel = 0; at && kernel < NODE_KERNELS; kernel++) {
		size_t length = strlen(node_kernel_name[kernel]);

		if (!strncmp(at + 7, node_kernel_name[kernel], length) && strchr(" ", at[7 + length]))
			return (enum node_kernel)kernel;
	}
	return NODE_KERNELS;
}

/* The types of cores, and their states: a kernel of a type each. */
struct states {
	const char *type[TYPES_MOST];
	uint32_t types;
	char labels[TYPES_MOST * NODE_KERNELS][LABELS_SIZE];
};

/* Returns the number of a core's type; further types than are expected share the last one. */
static uint32_t type_of(const struct states *states, const char *type)
{
	uint32_t at = 0;

	while (at + 1 < states->types && strcmp(states->type[at], type) != 0)
		at++;
	return at;
}

static void make_states(struct states *states, const struct machine_cpus *machine)
{
	*states = (struct states){.types = 0};
	for (size_t i = 0; i < machine->count; i++) {
		const char *type = machine->cpus[i].core_type;

		if (states->types && !strcmp(states->type[type_of(states, type)], type))
			continue;
		if (states->types < TYPES_MOST)
			states->type[states->types++] = type;
	}
	for (uint32_t type = 0; type < states->types; type++) {
		for (uint32_t kernel = 0; kernel < NODE_KERNELS; kernel++)
			snprintf(states->labels[type * NODE_KERNELS + kernel], LABELS_SIZE,
				 *states->type[type] ? "core=%s kernel=%s" : "%skernel=%s", states->type[type],
				 node_kernel_name[kernel]);
	}
}

static struct vapro_state state_at(const struct states *states, uint32_t id)
{
	return (struct vapro_state){.id = id,
				    .class = VAPRO_COMPUTATION,
				    .from = SITE,
				    .to = SITE,
				    .labels = states->labels[id],
				    .common = states->labels[id]};
}

static struct vapro_thread thread_at(const struct machine_cpus *machine, uint32_t instance)
{
	return (struct vapro_thread){.id = instance,
				     .rank = (int32_t)instance,
				     .world_size = (uint32_t)machine->count,
				     .pid = instance + 1,
				     .tid = instance + 1,
				     .job = "node-check",
				     .host = machine->host};
}

static struct vapro_bundle bundle_of(const struct node_run *run, const struct states *states,
				     const struct node_bundle *own)
{
	struct vapro_bundle bundle = {.thread = own->instance,
				      .n = own->n,
				      .start_ns = own->start_ns,
				      .end_ns = own->end_ns,
				      .sum_ns = own->sum_ns,
				      .min_ns = own->min_ns,
				      .max_ns = own->max_ns};

	bundle.state =
	    type_of(states, run->machine.cpus[own->instance].core_type) * NODE_KERNELS + (uint32_t)own->kernel;
	bundle.magnitude_min[VAPRO_INSTRUCTIONS] = bundle.magnitude_max[VAPRO_INSTRUCTIONS] =
	    (double)kernels__work((enum node_kernel)own->kernel);
	bundle.factor[VAPRO_PREEMPTED] = (double)own->waited_ns;
	return bundle;
}

static int compare_ends(const void *a, const void *b)
{
	const struct node_bundle *left = *(const struct node_bundle *const *)a;
	const struct node_bundle *right = *(const struct node_bundle *const *)b;

	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	if (left->instance != right->instance)
		return left->instance < right->instance ? -1 : 1;
	return left->kernel < right->kernel ? -1 : left->kernel > right->kernel;
}

/* Returns the bundles by time, to be freed. */
static const struct node_bundle **in_order(const struct node_run *run)
{
	const struct node_bundle **order = calloc(run->count + 1, sizeof(*order));

	for (size_t i = 0; order && i < run->count; i++)
		order[i] = &run->bundles[i];
	if (order)
		qsort(order, run->count, sizeof(*order), compare_ends);
	return order;
}

static int put_tables(const struct node_run *run, const struct states *states, uint64_t begin_ns, uint64_t end_ns,
		      struct stream_sink *sink)
{
	const struct machine_cpus *machine = &run->machine;
	struct stream_event event = {.type = STREAM_CLOCK, .clock = {.mono_ns = begin_ns, .utc_ns = begin_ns}};
	int ret = stream__put(sink, &event);

	for (uint32_t i = 0; !ret && i < machine->count; i++) {
		const struct machine_cpu *cpu = &machine->cpus[i];

		event = (struct stream_event){.type = STREAM_THREAD, .thread = thread_at(machine, i)};
		ret = stream__put(sink, &event);
		event = (struct stream_event){.type = STREAM_SEEN,
					      .seen = {.thread = i, .from_ns = begin_ns, .to_ns = end_ns}};
		ret = ret ? ret : stream__put(sink, &event);
		event = (struct stream_event){.type = STREAM_PLACE,
					      .place = {.thread = i,
							.cpu = run->unpinned[i] ? -1 : cpu->cpu,
							.socket = cpu->socket,
							.numa = cpu->numa,
							.core_type = *cpu->core_type ? cpu->core_type : NULL,
							.cpu_model = *machine->model ? machine->model : NULL}};
		ret = ret ? ret : stream__put(sink, &event);
	}
	for (uint32_t i = 0; !ret && i < states->types * NODE_KERNELS; i++) {
		event = (struct stream_event){.type = STREAM_STATE, .state = state_at(states, i)};
		ret = stream__put(sink, &event);
	}
	return ret;
}

static struct stream_event window_event(uint64_t begin_ns, uint64_t end_ns, bool last)
{
	return (struct stream_event){.type = STREAM_WINDOW,
				     .window = {.begin_ns = begin_ns,
						.end_ns = end_ns,
						.last = last,
						.daemon_cpu_pct = NAN,
						.io_traced_pct = NAN,
						.io_tax_pct = NAN,
						.bystander_hits = NAN,
						.bystander_pct = NAN}};
}

static int put_windows(const struct node_run *run, const struct states *states, const struct node_bundle **order,
		       double window_s, uint64_t begin_ns, uint64_t last_ns, struct stream_sink *sink)
{
	uint64_t stride = (uint64_t)fmax(1, round(window_s * 1e9 / VAPRO_BIN_NS)) * VAPRO_BIN_NS;
	struct stream_event event;
	size_t next = 0;
	int ret = 0;

	for (uint64_t end_ns; !ret && begin_ns < last_ns; begin_ns = end_ns) {
		end_ns = begin_ns + stride < last_ns ? begin_ns + stride : last_ns;
		while (!ret && next < run->count && order[next]->end_ns < end_ns) {
			event = (struct stream_event){.type = STREAM_BUNDLE,
						      .bundle = bundle_of(run, states, order[next++])};
			ret = stream__put(sink, &event);
		}
		event = window_event(begin_ns, end_ns, end_ns == last_ns);
		ret = ret ? ret : stream__put(sink, &event);
	}
	return ret;
}

int node_run__feed(const struct node_run *run, double window_s, struct stream_sink *sink)
{
	const struct node_bundle **order = in_order(run);
	struct stream_event end = {.type = STREAM_END};
	uint64_t begin_ns, end_ns;
	struct states states;
	int ret = order ? 0 : -ENOMEM;

	if (!ret && !span_of(run, &begin_ns, &end_ns))
		ret = -ENODATA;
	if (!ret) {
		begin_ns = begin_ns / VAPRO_BIN_NS * VAPRO_BIN_NS;
		end_ns = (end_ns / VAPRO_BIN_NS + 1) * VAPRO_BIN_NS;
		make_states(&states, &run->machine);
		ret = put_tables(run, &states, begin_ns, end_ns, sink);
	}
	if (!ret)
		ret = put_windows(run, &states, order, window_s, begin_ns, end_ns, sink);
	if (!ret)
		ret = stream__put(sink, &end);
	free(order);
	return ret;
}

int node_run__profile(const struct node_run *run, struct profile **profile)
{
	const struct node_bundle **order = in_order(run);
	struct states states;
	int error = order ? 0 : -ENOMEM;

	make_states(&states, &run->machine);
	*profile = profile__new(true);
	if (!*profile)
		error = -ENOMEM;
	for (uint32_t i = 0; !error && i < run->machine.count; i++) {
		struct vapro_thread thread = thread_at(&run->machine, i);

		error = profile__add_thread(*profile, &thread);
	}
	for (uint32_t i = 0; !error && i < states.types * NODE_KERNELS; i++) {
		struct vapro_state state = state_at(&states, i);

		error = profile__add_state(*profile, &state);
	}
	for (size_t i = 0; !error && i < run->count; i++) {
		struct vapro_bundle bundle = bundle_of(run, &states, order[i]);

		error = profile__add_bundle(*profile, &bundle);
	}
	free(order);
	return error ? error : profile__end(*profile);
}

static const struct archive_column machine_columns[] = {
    ARCHIVE_MANY(struct machine_cpus, host),	   ARCHIVE_MANY(struct machine_cpus, model),
    ARCHIVE_MANY(struct machine_cpus, build),	   ARCHIVE_ONE(struct machine_cpus, cache_bytes),
    ARCHIVE_ONE(struct machine_cpus, array_bytes),
};
static const struct archive_table machine_table = ARCHIVE_TABLE("machine", struct machine_cpus, machine_columns);

static const struct archive_column cpu_columns[] = {
    ARCHIVE_ONE(struct machine_cpu, cpu),
    ARCHIVE_ONE(struct machine_cpu, socket),
    ARCHIVE_ONE(struct machine_cpu, numa),
    ARCHIVE_MANY(struct machine_cpu, core_type),
};
static const struct archive_table cpu_table = ARCHIVE_TABLE("cpu", struct machine_cpu, cpu_columns);

static const struct archive_column bundle_columns[] = {
    ARCHIVE_ONE(struct node_bundle, instance),	ARCHIVE_ONE(struct node_bundle, kernel),
    ARCHIVE_ONE(struct node_bundle, n),		ARCHIVE_ONE(struct node_bundle, start_ns),
    ARCHIVE_ONE(struct node_bundle, end_ns),	ARCHIVE_ONE(struct node_bundle, sum_ns),
    ARCHIVE_ONE(struct node_bundle, min_ns),	ARCHIVE_ONE(struct node_bundle, max_ns),
    ARCHIVE_ONE(struct node_bundle, waited_ns),
};
static const struct archive_table bundle_table = ARCHIVE_TABLE("bundle", struct node_bundle, bundle_columns);

/* A file that is refused may not bend a terminal either. */
static bool printable_text(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			return false;
	}
	return true;
}

/* Checks what was read of the machine; its lists are made. */
static void check_machine(struct archive *archive, struct node_run *run)
{
	struct machine_cpus *machine = &run->machine;

	archive__check(archive, machine->count > 0 && machine->count <= MACHINE_CPUS_MOST,
		       "it has no CPUs, or too many");
	archive__check(
	    archive, printable_text(machine->host) && printable_text(machine->model) && printable_text(machine->build),
	    "its texts are none");
	for (size_t i = 0; !archive__error(archive) && i < machine->count; i++)
		archive__check(archive, printable_text(machine->cpus[i].core_type) && machine->cpus[i].cpu >= 0,
			       "its CPUs are none");
	if (!archive__error(archive) && make_lists(run))
		archive__fail(archive, -ENOMEM, "out of memory");
}

void node_run__archive(struct archive *archive, struct node_run *run)
{
	archive__record(archive, &machine_table, &run->machine);
	archive__rows(archive, &cpu_table, &run->machine.cpus, &run->machine.count, &run->machine.capacity);
	archive__rows(archive, &bundle_table, &run->bundles, &run->count, &run->capacity);
	if (!archive__reads(archive) || archive__error(archive))
		return;
	check_machine(archive, run);
	archive__check(archive, run->count > 0 && run->count <= BUNDLES_MOST, "it has no iterations, or too many");
	for (size_t i = 0; !archive__error(archive) && i < run->count; i++)
		archive__check(archive, possible(run, &run->bundles[i]), "its iterations contradict themselves");
	if (!archive__error(archive))
		archive__check(archive, node_run__seconds(run) < 86400, "its iterations are not those of one check");
}

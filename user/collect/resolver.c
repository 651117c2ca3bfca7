// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/resolver.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/callsites.h"
#include "collect/image_cache.h"
#include "collect/labels.h"
#include "collect/id_cache.h"
#include "collect/name_reader.h"
#include "collect/site_name.h"
#include "collect/state_names.h"
#include "base/grow.h"
#include "base/table.h"
#include "probe/bpf/kernel_side.h"

#define UNUSED_SHARE 256       /* 1/256 of the memory cap is for states of processes that ended */
#define UNUSED_BYTES (1 << 20) /* limit without a cap */
#define PATHLESS 2	       /* vertices without a path before a report */

struct known_thread {
	uint32_t tid, tgid, id;
};

struct known_process {
	struct process *process;
	struct callsites *callsites;
	struct labels_process labels;
	bool unseen; /* the epoch was odd before a call-site was hopped */
	uint32_t threads;
	uint32_t with_path, without_path; /* vertices */
};

struct resolver {
	struct kernel_side *side;
	struct stream_sink *sink;
	const char *host;
	struct known_process *processes;
	size_t process_count, process_room;
	struct known_thread *threads;
	size_t thread_count, thread_room; /* entries; ids go on */
	struct table *by_tid;		  /* places of the tids' present threads; NULL: linear search */
	uint32_t next_thread;
	struct id_cache *ids;
	struct state_names *states;
	struct name_reader *names;
	struct image_cache *images;
	const struct vapro_config *config;
};

struct resolver *resolver__new(struct kernel_side *side, struct stream_sink *sink, const char *host,
			       const struct vapro_config *config)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return NULL;
	resolver->side = side;
	resolver->sink = sink;
	resolver->host = host;
	resolver->config = config;
	resolver->ids = id_cache__new(side);
	resolver->states = state_names__new(config->memory_cap ? config->memory_cap / UNUSED_SHARE : UNUSED_BYTES);
	resolver->names = name_reader__new(sink);
	resolver->images = image_cache__new(resolver->names);
	resolver->by_tid = table__new();
	if (!resolver->ids || !resolver->states || !resolver->names || !resolver->images || !resolver->by_tid) {
		resolver__free(resolver);
		return NULL;
	}
	return resolver;
}

static void forget_process(struct known_process *known)
{
	callsites__free(known->callsites);
	process__free(known->process);
}

void resolver__free(struct resolver *resolver)
{
	if (!resolver)
		return;
	for (size_t i = 0; i < resolver->process_count; i++)
		forget_process(&resolver->processes[i]);
	free(resolver->processes);
	free(resolver->threads);
	table__free(resolver->by_tid);
	id_cache__free(resolver->ids);
	state_names__free(resolver->states);
	image_cache__free(resolver->images);
	name_reader__free(resolver->names);
	free(resolver);
}

static struct known_process *process_of(struct resolver *resolver, uint32_t tgid)
{
	for (size_t i = 0; i < resolver->process_count; i++)
		if ((uint32_t)resolver->processes[i].process->pid == tgid)
			return &resolver->processes[i];
	return NULL;
}

static void push_hops(struct kernel_side *side, struct callsites *callsites)
{
	if (callsites__push_hops(callsites, kernel_side__map(side, KERNEL_MAP_HOPPED)))
		*kernel_side__shared(side)->hopping = 1;
}

/* Epoch of a process. Odd: time between two calls is no fragment. Each change makes threads begin again. */
static uint32_t *epoch_of(struct kernel_side *side, pid_t pid)
{
	struct bpf_process_state process;

	if (bpf_map_lookup_elem(kernel_side__map(side, KERNEL_MAP_PROCESSES), &pid, &process))
		return NULL;
	return &kernel_side__shared(side)->governed[process.slot & (KERNEL_SLOTS - 1)].probe_epoch;
}

int resolver__hop(struct resolver *resolver, const char *site, bool up, const char **refusal, bool *top)
{
	struct kernel_side *side = resolver->side;
	int status = up ? image_cache__hop(resolver->images, site, refusal, top) : 0;
	uint32_t *epoch;

	if (status)
		return status;
	if (!up)
		image_cache__unhop(resolver->images, site);
	for (size_t i = 0; i < resolver->process_count; i++) {
		epoch = epoch_of(side, resolver->processes[i].process->pid);
		resolver->processes[i].unseen = epoch && *epoch & 1;
		if (epoch)
			__atomic_fetch_add(epoch, *epoch & 1 ? 2 : 1, __ATOMIC_RELEASE);
	}
	for (size_t i = 0; i < resolver->process_count; i++)
		push_hops(side, resolver->processes[i].callsites);
	__atomic_fetch_add(kernel_side__shared(side)->states_epoch, 1, __ATOMIC_RELEASE);
	for (size_t i = 0; i < resolver->process_count; i++) {
		epoch = epoch_of(side, resolver->processes[i].process->pid);
		if (epoch && !resolver->processes[i].unseen)
			__atomic_fetch_add(epoch, 1, __ATOMIC_RELEASE);
	}
	return 0;
}

void resolver__resume_hops(struct resolver *resolver, uint64_t now_ns)
{
	struct kernel_side *side = resolver->side;

	if (!image_cache__look_up(resolver->images, now_ns))
		return;
	for (size_t i = 0; i < resolver->process_count; i++)
		push_hops(side, resolver->processes[i].callsites);
	__atomic_fetch_add(kernel_side__shared(side)->states_epoch, 1, __ATOMIC_RELEASE);
}

bool resolver__hop_trouble(struct resolver *resolver, char *text, size_t size)
{
	return image_cache__hop_trouble(resolver->images, text, size);
}

static void push_kernel(struct resolver *resolver, struct callsites *callsites, pid_t pid, enum process_mpi mpi)
{
	struct kernel_side *side = resolver->side;

	labels__push_handles(callsites, kernel_side__map(side, KERNEL_MAP_HANDLES), pid, mpi);
	callsites__push_transparent(callsites, kernel_side__map(side, KERNEL_MAP_TRANSPARENT),
				    kernel_side__map(side, KERNEL_MAP_HOPS), resolver->config->transparent,
				    kernel_side__shared(side)->transparents);
	callsites__push_io(callsites, kernel_side__map(side, KERNEL_MAP_IO_SITES), pid);
	push_hops(side, callsites);
	(*kernel_side__shared(side)->states_epoch)++;
}

const struct process *resolver__remapped(struct resolver *resolver, pid_t pid, const struct process_library *library)
{
	struct known_process *known = process_of(resolver, (uint32_t)pid);

	if (!known || callsites__remapped(known->callsites))
		return NULL;
	if (library)
		known->process->library = *library;
	push_kernel(resolver, known->callsites, pid, library ? library->mpi : PROCESS_NO_MPI);
	return known->process;
}

int resolver__add(struct resolver *resolver, struct process *process)
{
	struct callsites *callsites;

	if (process_of(resolver, (uint32_t)process->pid)) {
		process__free(process);
		return 0;
	}
	callsites = callsites__new(resolver->images, process);
	if (!callsites || grow(&resolver->processes, &resolver->process_room, resolver->process_count + 1,
			       sizeof(*resolver->processes))) {
		callsites__free(callsites);
		process__free(process);
		return -ENOMEM;
	}
	resolver->processes[resolver->process_count++] =
	    (struct known_process){.process = process, .callsites = callsites};
	push_kernel(resolver, callsites, process->pid, process__mpi(process, NULL));
	return 0;
}

int resolver__prepare(struct resolver *resolver, const struct process *process, char *err, size_t err_size)
{
	if (process_of(resolver, (uint32_t)process->pid))
		return 0;
	return image_cache__prepare(resolver->images, process, resolver->config->transparent, err, err_size);
}

uint64_t resolver__read_ns(struct resolver *resolver, pid_t pid)
{
	struct known_process *known = process_of(resolver, (uint32_t)pid);

	return known ? callsites__read_ns(known->callsites) : 0;
}

const char *resolver__build_id(struct resolver *resolver, pid_t pid)
{
	struct known_process *known = process_of(resolver, (uint32_t)pid);

	return known ? callsites__build_id(known->callsites) : "";
}

bool resolver__trouble(struct resolver *resolver, char *text, size_t size)
{
	return image_cache__trouble(resolver->images, text, size);
}

void resolver__read_names(struct resolver *resolver, uint64_t now_ns)
{
	name_reader__step(resolver->names, now_ns);
}

void resolver__finish_names(struct resolver *resolver, uint64_t limit_ns)
{
	name_reader__finish(resolver->names, limit_ns);
}

bool resolver__nameless(struct resolver *resolver, char *text, size_t size)
{
	return name_reader__trouble(resolver->names, text, size);
}

/* Without memory the index is dropped, not the thread. */
static void note_thread(struct resolver *resolver, uint32_t at)
{
	if (!resolver->by_tid || !table__put(resolver->by_tid, resolver->threads[at].tid, 0, at))
		return;
	table__free(resolver->by_tid);
	resolver->by_tid = NULL;
}

static bool find_thread(const struct resolver *resolver, uint32_t tid, uint32_t tgid, uint32_t *at)
{
	if (resolver->by_tid) {
		if (!table__get(resolver->by_tid, tid, 0, at))
			return false;
		if (!tgid || resolver->threads[*at].tgid == tgid)
			return true;
		/* a reused tid: the thread that had it before still has records to read */
	}
	for (*at = 0; *at < resolver->thread_count; ++*at) {
		if (resolver->threads[*at].tid == tid && (!tgid || resolver->threads[*at].tgid == tgid))
			return true;
	}
	return false;
}

int64_t resolver__thread(struct resolver *resolver, uint32_t tid, uint32_t tgid)
{
	struct stream_event event = {.type = STREAM_THREAD};
	struct known_process *known;
	uint32_t at;
	int status;

	if (find_thread(resolver, tid, tgid, &at))
		return resolver->threads[at].id;
	known = tgid ? process_of(resolver, tgid) : NULL;
	if (!known)
		return -ENOENT;
	if (grow(&resolver->threads, &resolver->thread_room, resolver->thread_count + 1, sizeof(*resolver->threads)))
		return -ENOMEM;
	event.thread = (struct vapro_thread){
	    .id = resolver->next_thread,
	    .rank = known->process->rank,
	    .thread = tid == tgid ? 0 : (int32_t)++known->threads,
	    .world_size = known->process->world_size,
	    .pid = tgid,
	    .tid = tid,
	    .job = known->process->job,
	    .user = (uint32_t)known->process->uid + 1,
	    .host = resolver->host,
	};
	status = stream__put(resolver->sink, &event);
	if (status)
		return status;
	resolver->threads[resolver->thread_count++] = (struct known_thread){tid, tgid, resolver->next_thread};
	note_thread(resolver, (uint32_t)resolver->thread_count - 1);
	return resolver->next_thread++;
}

void resolver__begin(struct resolver *resolver)
{
	id_cache__begin(resolver->ids);
}

void resolver__purge(struct resolver *resolver, const struct numbered_process *processes, size_t count)
{
	id_cache__purge(resolver->ids, processes, count);
}

static void emit_gone(void *arg, uint32_t id)
{
	struct resolver *resolver = arg;
	struct stream_event event = {.type = STREAM_GONE, .gone = {id}};

	stream__put(resolver->sink, &event);
}

void resolver__remove(struct resolver *resolver, pid_t pid)
{
	uint32_t tgid = (uint32_t)pid, live = 0;

	state_names__release(resolver->states, tgid, emit_gone, resolver);
	table__free(resolver->by_tid);
	resolver->by_tid = table__new();
	for (size_t i = 0; i < resolver->thread_count; i++)
		if (resolver->threads[i].tgid != tgid)
			resolver->threads[live++] = resolver->threads[i];
	resolver->thread_count = live;
	for (uint32_t i = 0; i < live; i++)
		note_thread(resolver, i);
	for (size_t i = 0; i < resolver->process_count; i++) {
		if (resolver->processes[i].process->pid != pid)
			continue;
		forget_process(&resolver->processes[i]);
		resolver->processes[i] = resolver->processes[--resolver->process_count];
		break;
	}
}

void resolver__give_back(struct resolver *resolver, const struct numbered_process *processes, size_t count)
{
	id_cache__give_back(resolver->ids, processes, count);
}

/* Announces a state of a process unless one with equal texts is known. */
static int64_t announce(struct resolver *resolver, pid_t pid, struct vapro_state *state)
{
	struct stream_event event = {.type = STREAM_STATE};
	char text[2 * SITE_TEXT_MAX + LABELS_MAX + 8];
	int64_t id;
	bool fresh;
	int status;

	snprintf(text, sizeof(text), "%d|%s|%s|%s", (int)state->class, state->from ? state->from : "", state->to,
		 state->labels);
	id = state_names__use(resolver->states, (uint32_t)pid, text, &fresh);
	if (id < 0 || !fresh)
		return id;
	state->id = (uint32_t)id;
	event.state = *state;
	status = stream__put(resolver->sink, &event);
	return status ? status : id;
}

/* Names the call-site of a vertex, and its callers as configured. */
static void resolve_site(struct resolver *resolver, struct known_process *known, const struct kernel_vertex_key *key,
			 struct site_name *name)
{
	bool other = key->path == KERNEL_OTHER_PATHS;
	const struct kernel_path_key *path = key->path && !other ? id_cache__path(resolver->ids, key->path) : NULL;

	if (resolver->config->states == VAPRO_BY_CALL_PATH)
		site_name__by_path(name, known->callsites, key, path);
	else
		site_name__hopped(name, known->callsites, key, path, resolver->config->hop_frames);
	if (other)
		site_name__other_path(name);
}

static int64_t vertex_state(struct resolver *resolver, struct numbered_vertex *vertex)
{
	char labels[LABELS_MAX], common[LABELS_MAX];
	struct known_process *known = process_of(resolver, vertex->key.tgid);
	struct site_name site;
	struct vapro_state state;

	if (!known)
		return -ENOENT;
	resolve_site(resolver, known, &vertex->key, &site);
	if (site.transparent) /* mapped a moment ago, or without known frames */
		vertex->key.flags |= KERNEL_VERTEX_APPROX;
	known->with_path += vertex->key.path != 0;
	known->without_path += (vertex->key.flags & KERNEL_VERTEX_NO_FRAMES) != 0;
	labels__vertex(&known->labels, &vertex->key, labels, common, LABELS_MAX);
	state = (struct vapro_state){.class = labels__class(&vertex->key),
				     .to = site.text,
				     .labels = labels,
				     .common = common,
				     .to_symbol = site.symbol[0] ? site.symbol : NULL,
				     .to_path = site.path};
	return announce(resolver, known->process->pid, &state);
}

static int64_t edge_state(struct resolver *resolver, uint32_t id, const struct kernel_edge_key *key)
{
	int status = -ENOENT;
	struct numbered_vertex *from = id_cache__vertex(resolver->ids, key->from, &status);
	struct numbered_vertex *to = from ? id_cache__vertex(resolver->ids, key->to, &status) : NULL;
	struct known_process *known = to ? process_of(resolver, to->key.tgid) : NULL;
	char labels[LABELS_MAX], common[LABELS_MAX];
	struct site_name site_from, site_to;
	struct vapro_state state;
	uint32_t times;
	bool polls;

	if (!known)
		return to ? -ENOENT : status;
	resolve_site(resolver, known, &from->key, &site_from);
	resolve_site(resolver, known, &to->key, &site_to);
	polls = !bpf_map_lookup_elem(kernel_side__map(resolver->side, KERNEL_MAP_POLLED), &id, &times);
	labels__edge(&from->key, &to->key, polls, labels, common, LABELS_MAX);
	/* no thread computes while polling: communication makes progress */
	state = (struct vapro_state){.class = polls ? VAPRO_COMMUNICATION : VAPRO_COMPUTATION,
				     .from = site_from.text,
				     .to = site_to.text,
				     .labels = labels,
				     .common = common,
				     .from_symbol = site_from.symbol[0] ? site_from.symbol : NULL,
				     .to_symbol = site_to.symbol[0] ? site_to.symbol : NULL,
				     .from_path = site_from.path,
				     .to_path = site_to.path};
	return announce(resolver, known->process->pid, &state);
}

int64_t resolver__state(struct resolver *resolver, uint32_t id, uint32_t *tgid)
{
	int status = -ENOENT;

	if (id & KERNEL_EDGE) {
		struct numbered_edge *edge = id_cache__edge(resolver->ids, id & ~KERNEL_EDGE, &status);
		struct numbered_vertex *to = edge ? id_cache__vertex(resolver->ids, edge->key.to, &status) : NULL;

		if (!to)
			return status;
		*tgid = to->key.tgid;
		if (edge->state < 0)
			edge->state = edge_state(resolver, id & ~KERNEL_EDGE, &edge->key);
		return edge->state;
	} else {
		struct numbered_vertex *vertex = id_cache__vertex(resolver->ids, id, &status);

		if (!vertex)
			return status;
		*tgid = vertex->key.tgid;
		if (vertex->state < 0)
			vertex->state = vertex_state(resolver, vertex);
		return vertex->state;
	}
}

static bool vertex_approx(struct resolver *resolver, uint32_t id)
{
	const struct numbered_vertex *vertex = id_cache__known_vertex(resolver->ids, id);

	return vertex && vertex->key.flags & (KERNEL_VERTEX_APPROX | KERNEL_VERTEX_NO_SIZE);
}

bool resolver__approx(struct resolver *resolver, uint32_t id)
{
	const struct numbered_edge *edge;

	if (!(id & KERNEL_EDGE))
		return vertex_approx(resolver, id);
	id &= ~KERNEL_EDGE;
	edge = id_cache__known_edge(resolver->ids, id);
	return edge && (vertex_approx(resolver, edge->key.from) || vertex_approx(resolver, edge->key.to));
}

size_t resolver__bytes(const struct resolver *resolver)
{
	return state_names__bytes(resolver->states) + name_reader__bytes(resolver->names) +
	       resolver->thread_room * sizeof(*resolver->threads) +
	       (resolver->by_tid ? table__bytes(resolver->by_tid) : 0);
}

bool resolver__pathless(struct resolver *resolver, pid_t pid)
{
	const struct known_process *known = process_of(resolver, (uint32_t)pid);

	return known && known->without_path >= PATHLESS && !known->with_path;
}

int resolver__place(struct resolver *resolver, pid_t pid, uint64_t address, char *text, size_t size)
{
	struct known_process *known = process_of(resolver, (uint32_t)pid);
	struct callsite site;

	if (!known)
		return -ENOENT;
	/* names are those of the instruction before a return address */
	callsites__resolve(known->callsites, address + 1, &site);
	callsites__name(known->callsites, address + 1, site.text, false);
	snprintf(text, size, "%s", site.text);
	return 0;
}

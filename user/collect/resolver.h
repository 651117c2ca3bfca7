/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translates the kernel side's numbers into the stream's: thread ids, vertices and edges become
 * threads and states with canonical texts (ARCHITECTURE sections 3 and 4), so that ranks, ASLR and
 * restarts agree. Each is looked up once.
 */
#ifndef VAPRO_RESOLVER_H
#define VAPRO_RESOLVER_H

#include "capture/stream.h"
#include "collect/id_cache.h"
#include "probe/bpf/kernel_side.h"
#include "target/process.h"

struct resolver;

/* Announcements go to sink. All arguments outlive the resolver. NULL when out of memory. */
struct resolver *resolver__new(struct kernel_side *side, struct stream_sink *sink, const char *host,
			       const struct vapro_config *config);
void resolver__free(struct resolver *resolver);

/*
 * Reads what a process that is to be added maps. 0, or where that takes longer confine__is_later() (sandbox/confine.h)
 * with a sentence: the process is to be added after a later call.
 */
int resolver__prepare(struct resolver *resolver, const struct process *process, char *err, size_t err_size);

/*
 * Makes a process known and holds its files until its removal; owns the process object. Passes its
 * predefined handles, its transparent images and the places of its libc's system calls to the kernel
 * side. 0 or -errno.
 */
int resolver__add(struct resolver *resolver, struct process *process);

/*
 * Holds the files that a known process has newly mapped, and passes to the kernel side what an MPI or
 * a libc among them has. library: the process's MPI, where it has just got one; NULL: nothing has changed. Returns the
 * process with its mappings read again, or NULL.
 */
const struct process *resolver__remapped(struct resolver *resolver, pid_t pid, const struct process_library *library);

/*
 * Distinguishes calls of a call-site (a text of a state) by their callers, or no more, in all processes at once: what
 * their threads compute meanwhile is no fragment. 0, -EAGAIN or -EPERM with a refusal: see image_cache__hop().
 */
int resolver__hop(struct resolver *resolver, const char *site, bool up, const char **refusal, bool *top);

/*
 * Looks up frames in the background, and carries out hops that have become possible: of call-sites behind a runtime,
 * and of newly mapped images.
 */
void resolver__resume_hops(struct resolver *resolver, uint64_t now_ns);

/* Reports a runtime whose frames cannot be hopped, each once; false where there is none. */
bool resolver__hop_trouble(struct resolver *resolver, char *text, size_t size);

/* CPU time spent so far on reading images to name states of a known process, ns. */
uint64_t resolver__read_ns(struct resolver *resolver, pid_t pid);

/* Build-id of a known process's executable, or "". */
const char *resolver__build_id(struct resolver *resolver, pid_t pid);

/* Reports an image that could not be read, each once; false where there is none. */
bool resolver__trouble(struct resolver *resolver, char *text, size_t size);

/*
 * Carries on with reading the functions and lines of call-sites, or reads those that are left within limit_ns, once no
 * process is probed any more. They go to the sink.
 */
void resolver__read_names(struct resolver *resolver, uint64_t now_ns);
void resolver__finish_names(struct resolver *resolver, uint64_t limit_ns);

/* Reports a program without lines, and what would help, each once; false where there is none. */
bool resolver__nameless(struct resolver *resolver, char *text, size_t size);

/*
 * Forgets a process: call it when all its bundles are drained. To be followed by resolver__purge(), for several at once
 * since that walks through all tables, before another process has its number or slot.
 */
void resolver__remove(struct resolver *resolver, pid_t pid);
void resolver__purge(struct resolver *resolver, const struct numbered_process *processes, size_t count);

/* Has processes that go on give their entries of the kernel's tables of states back. */
void resolver__give_back(struct resolver *resolver, const struct numbered_process *processes, size_t count);

/* Number of a thread in the stream, -ENOENT for a process that is not known, or -ENOMEM. */
int64_t resolver__thread(struct resolver *resolver, uint32_t tid, uint32_t tgid);

/*
 * Number of a state in the stream, -ENOENT where the kernel side no longer knows it, -EAGAIN where it
 * may be too young for this drain (the next may have it), or -ENOMEM.
 * The id is a vertex, or an edge with KERNEL_EDGE. *tgid is its process.
 */
int64_t resolver__state(struct resolver *resolver, uint32_t id, uint32_t *tgid);

/*
 * Writes a place in the code of a process as if a call returned there, of size bytes, and has its function looked up.
 * Returns 0 or -ENOENT for a process that is not known.
 */
int resolver__place(struct resolver *resolver, pid_t pid, uint64_t address, char *text, size_t size);

/* Whether the call-site or the size of a state that was resolved is approximate. */
bool resolver__approx(struct resolver *resolver, uint32_t id);

/* Bytes held for as long as processes live or longer: names of states, and threads. */
size_t resolver__bytes(const struct resolver *resolver);

/* Whether call paths were wanted of a process and no call so far had any: its code has no frame pointers. */
bool resolver__pathless(struct resolver *resolver, pid_t pid);

/*
 * Begins a drain. A drain sweeps the kernel's tables for ids not seen yet, and again only for ids that
 * were given since.
 */
void resolver__begin(struct resolver *resolver);

#endif

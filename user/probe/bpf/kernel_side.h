/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF object, loaded: its maps, the memory it shares with us, and the links that do not belong
 * to an image (scheduler, process life, system calls). Links are never pinned: the end of this
 * process, however it comes, takes every probe out of the targets.
 */
#ifndef VAPRO_KERNEL_SIDE_H
#define VAPRO_KERNEL_SIDE_H

#include <stdbool.h>
#include <sys/types.h>
#include <vapro/config.h>
#include <vapro/bpf/thread_state.h>

#include "probe/bpf/features.h"
#include "probe/bpf/modes.h"
#include "probe/bpf/shared.h"

struct counters;
struct kernel_side;
struct vapro_bpf;

/* Result of trying a rung; rungs below the one in use are not tried. */
struct attach_mode_of {
	bool works;
	char reason[160]; /* why it fails or was not tried */
};

/*
 * Loads the object on the highest rung of the ladder that this kernel takes, or on the requested one,
 * with the code that reads counters where there are any (NULL: none). Where no rung takes the object
 * with that code, it is loaded without, and the counters are given up. Returns NULL with a sentence in
 * err and in *status 3 where kernel or privileges do not allow it, else 1.
 */
struct kernel_side *kernel_side__load(const struct vapro_config *config, struct counters *counters, char *err,
				      size_t err_size, int *status);
void kernel_side__free(struct kernel_side *side);

/* The skeleton, for probe/bpf and probe/pmu; all others use what follows. */
struct vapro_bpf *kernel_side__bpf(struct kernel_side *side);

/* Returns the addresses of the object's variables, valid as long as the object. */
const struct kernel_shared *kernel_side__shared(const struct kernel_side *side);

/* Returns the descriptor of a map. */
int kernel_side__map(struct kernel_side *side, enum kernel_map map);

/* Returns how many entries a map has room for. */
uint32_t kernel_side__map_room(struct kernel_side *side, enum kernel_map map);

/* Brings a look at an account up to the present; it stays as it is where the kernel cannot. */
void kernel_side__look(struct kernel_side *side, struct kernel_account_look *look);

enum attach_mode kernel_side__mode(const struct kernel_side *side);

/* The results of all RUNGS. */
const struct attach_mode_of *kernel_side__modes(const struct kernel_side *side);

const struct facts *kernel_side__facts(const struct kernel_side *side);

/* Whether only common functions should be probed: opening and closing takes long on the last rung. */
bool kernel_side__frugal(const struct kernel_side *side);

/* Descriptor of the program for samples of a clock, or -EOPNOTSUPP where it is not loaded. */
int kernel_side__sampling_program(const struct kernel_side *side);

/* Whether the entry program decides, call by call, if the return is hijacked. */
bool kernel_side__spares_returns(const struct kernel_side *side);

/*
 * Probes the sites, less those that the kernel refuses, by the rung in use; with --no-return their
 * entries only. Returns 0 with *link, -EOPNOTSUPP where every site is refused, or another -errno.
 */
int kernel_side__link(struct kernel_side *side, const struct kernel_sites *sites, struct kernel_link **link);

/* Removes a link's probes, in the background where that takes long; link may be NULL. */
void kernel_side__unlink(struct kernel_side *side, struct kernel_link *link);

/* Returns whether links are still being removed in the background. */
bool kernel_side__detaching(const struct kernel_side *side);

/* Waits until all unlinked probes are gone. */
void kernel_side__finalize(struct kernel_side *side);

/*
 * While held, calls are not recorded: for times in which not all links are open, or some twice.
 * All threads start over when the hold ends.
 */
void kernel_side__hold(struct kernel_side *side, bool held);

/* Watch scheduler and process events; watch system calls or not. 0 or -errno. */
int kernel_side__watch_tasks(struct kernel_side *side, char *err, size_t err_size);
int kernel_side__watch_syscalls(struct kernel_side *side, bool on);
bool kernel_side__watches_syscalls(const struct kernel_side *side);

/* Times interrupts of the whole node or not: each costs a little more then. 0 or -errno. */
int kernel_side__watch_interrupts(struct kernel_side *side, bool on);

/* Begins to track a process in a counter slot; its threads are given state at once. 0 or -errno. */
int kernel_side__track(struct kernel_side *side, pid_t pid, const struct bpf_process_state *process);
/* Changes the flags of a tracked process and of its threads. 0 or -errno. */
int kernel_side__reflag(struct kernel_side *side, pid_t pid, const struct bpf_process_state *process);
int kernel_side__untrack(struct kernel_side *side, pid_t pid);

/* Untracks a process that goes on: its threads, at most 1024, are forgotten, and its slot can be used again. */
void kernel_side__release(struct kernel_side *side, pid_t pid);

/*
 * Copies a thread's state as it is now. Returns 0, -ENOENT where it has none or has ended.
 */
int kernel_side__thread(struct kernel_side *side, pid_t tid, struct bpf_thread_state *out);

#endif

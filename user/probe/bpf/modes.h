/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ways to attach to a function's entry and return, best first: uprobe sessions (kernel 6.13),
 * uprobe_multi links (6.6), perf uprobe links (5.15). Debian 12's libbpf 1.1 and kernel headers know
 * only the last, so links are made through bpf(2) here. Which rungs a kernel has is found by trying
 * each on a function of our own, never by its version.
 */
#ifndef VAPRO_MODES_H
#define VAPRO_MODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum attach_mode { ATTACH_MODE_SESSION, ATTACH_MODE_MULTI, ATTACH_MODE_PERF, ATTACH_MODES };

/* session, multi, perf */
extern const char *const attach_mode_name[ATTACH_MODES];

/* Attach types that Debian 12's headers lack; programs must be loaded with them. */
enum {
	ATTACH_UPROBE_MULTI = 48,
	ATTACH_UPROBE_SESSION = 57,
};

/* Descriptors of loaded programs; -1 where the rung does not need one. */
struct mode_programs {
	int session;	   /* entry and return of sessions */
	int entry, exited; /* other rungs; entry on every rung */
};

/* Sites of one file that are probed together. */
struct kernel_sites {
	const char *path;
	const uint64_t *offsets, *cookies;
	uint32_t count;
	/*
	 * 0: all processes. Else only this process gets probes, but where another link has one at the same
	 * site of another process, its returns are hijacked too: kernels filter programs, not returns.
	 */
	pid_t pid;
	bool entry_only; /* no return is hijacked; the entry program's return value has no effect */
	bool *refused;	 /* NULL, or one per site: set where the kernel will not probe it */
};

/* Links opened for sites: one or two, or with perf one per site and half. */
struct kernel_link {
	enum attach_mode mode;
	pid_t pid;
	uint32_t count;
	int fds[];
};

/*
 * Attaches an empty program to a function of this program by one rung. Returns 0 where that works,
 * or -errno with a reason.
 */
int modes__try(enum attach_mode mode, char *reason, size_t reason_size);

/*
 * Whether uprobe_multi and session links for one process run the program on that thread alone and
 * not on all threads of the process (kernels before 6.10, unless mended): 1 or 0, -errno where it
 * is unknown.
 */
int modes__filters_by_thread(void);

/*
 * Links the sites, without those that the kernel refuses: entry and return, or entry only. Returns 0
 * with *link (caller closes), -EOPNOTSUPP where every site is refused, or another -errno.
 */
int modes__open(enum attach_mode mode, const struct mode_programs *programs, const struct kernel_sites *sites,
		struct kernel_link **link);

/* Closes entries first, so that no call is entered whose return is unseen. Blocks until no probe is left. */
void modes__close(struct kernel_link *link);

#endif

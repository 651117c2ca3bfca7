/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel of this machine permits, as far as files say it. */
#ifndef VAPRO_MACHINE_H
#define VAPRO_MACHINE_H

#include <stdbool.h>

#define MACHINE_UNKNOWN (-1)

struct machine {
	char lockdown[24];	 /* none, integrity or confidentiality; "" where the kernel has none */
	int perf_event_paranoid; /* these: MACHINE_UNKNOWN where the kernel has no such file */
	int ptrace_scope;	 /* of Yama */
	int unprivileged_bpf_disabled;
	int seccomp; /* of this process: 0 none, 1 strict, 2 filter */
	bool btf;    /* types of the running kernel can be read */
	int cgroup;  /* version of the hierarchy of CPUs: 2, 1, or 0 for none */
};

/* Reads the files below root ("" but in tests). */
void machine__read(struct machine *machine, const char *root);

/* Returns whether the kernel forbids BPF programs to read its memory, without which no probe works. */
bool machine__locked(const struct machine *machine);

#endif

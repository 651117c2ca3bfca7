/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of the kernel among the tasks that ran instead: they can be neither stopped nor, most of them, moved. */
#ifndef VAPRO_DIAGNOSE_KERNEL_THREADS_H
#define VAPRO_DIAGNOSE_KERNEL_THREADS_H

#include <vapro/analysis.h>

/*
 * Returns what a thread of the kernel does, and what its work can be reduced by; "" where only that it is one is known,
 * NULL for a task that is none. Records say no more of a task than its name, as kthread_create() makes it.
 */
const char *kernel_threads__work(const struct result_interferer *task);

#endif

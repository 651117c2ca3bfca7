/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a file lies on a file system that a user mounted, or serves. Its server can leave any request unanswered, and
 * can drop pages while a breakpoint is set. This is found without a call to the file system: by the tables of mounts,
 * in which the device of a mapping is looked for. Trusted is what the daemon's own table has, and what the table of a
 * process in the daemon's user namespace has, and that of process 1; the kernel's own files in memory; and, in any
 * table but FUSE with the number of a user other than root. File systems on block devices cannot be mounted by users.
 */
#ifndef VAPRO_FOREIGN_MOUNT_H
#define VAPRO_FOREIGN_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "target/process.h"

/* What is known is remembered for some seconds. */
bool foreign_mount__has(const struct process *process, const struct process_mapping *mapping);

enum foreign_mount { MOUNT_MISSING, MOUNT_TRUSTED, MOUNT_OF_USER };

/* What a table as /proc/PID/mountinfo says of a device; changes the text. */
enum foreign_mount foreign_mount__search(char *table, uint64_t device);

#endif

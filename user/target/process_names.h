/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of a job as the prolog of a site has written them. */
#ifndef VAPRO_PROCESS_NAMES_H
#define VAPRO_PROCESS_NAMES_H

#include <sys/types.h>

#include "base/job_names.h"

/* Directory of the files that a prolog writes, one for each job, by its id. */
#define PROCESS_NAMES_DIRECTORY "/run/vapro/jobs"

/*
 * Reads the names of a job from the file that its prolog has written. Returns false where there is none of root's,
 * or where it is of another user's job.
 */
bool process_names__read(const char *directory, const char *id, uid_t uid, struct job_names *names);

#endif

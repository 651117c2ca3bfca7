/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The copy of the daemon that writes the profile of a run, as its user, and compares it with earlier ones. */
#ifndef VAPRO_RUN_STORE_WRITE_H
#define VAPRO_RUN_STORE_WRITE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "compare/profile.h"

/* A job that is over; texts and profile are the caller's. */
struct run_store_job {
	const char *job, *host;
	uint32_t user;		   /* as in struct vapro_thread */
	uint64_t begin_ns, end_ns; /* UTC */
	struct profile *profile;   /* ended */
};

/*
 * Makes the directory of a user in the store, where it is missing. Returns its descriptor, or -1 with a sentence in
 * err: it cannot be made, or what is there is not the user's alone.
 */
int run_store_write__directory(int store, uid_t uid, char *err, size_t err_size);

/*
 * Starts the copy, which writes its result to *result: a record, or "!" and a sentence. Returns its pid, or a negative
 * errno. directory: of the user.
 */
pid_t run_store_write__start(const struct run_store_job *job, uid_t uid, int directory, int *result);

/*
 * Writes the profile below the working directory, and the result to out as above; what the copy does once it is the
 * user's.
 */
void run_store_write__job(const struct run_store_job *job, FILE *out);

#endif

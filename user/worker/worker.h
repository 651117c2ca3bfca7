/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop of vapro-worker: takes jobs, reads their blocks, judges them, publishes what it finds. */
#ifndef VAPRO_WORKER_WORKER_H
#define VAPRO_WORKER_WORKER_H

#include <signal.h>
#include "worker/job.h"
#include "worker/store.h"

struct worker_options {
	struct store_options store;
	struct worker_job_options job;
	uint64_t renew_ns, expire_ns; /* of leases */
	uint64_t idle_ns;	      /* a job that sends nothing for so long has ended */
	const char *output;	      /* directory for a file of each job and epoch; NULL none */
	bool to_stdout;
	const char *records;  /* which are lines of files and standard output: of RECORD_CHOICE_WORDS; NULL: all */
	bool pack;	      /* files are packed (capture/packed_lines.h) */
	uint64_t output_most; /* bytes of a file; 0: any */
	const char *metrics;  /* file for a collector of metrics; NULL none */
	const volatile sig_atomic_t *stop;
};

/* Runs until *stop. Returns 0, or -1 after a message about what does not work. */
int worker__run(const struct worker_options *options);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A broker as a source for people: the job that is read, chosen among those of a stream. Results and blocks of it have
 * files of their own beside this one.
 */
#ifndef VAPRO_SOURCE_H
#define VAPRO_SOURCE_H

#include <stdbool.h>
#include <stdio.h>

#include "broker/reader.h"

#define SOURCE_ERR 2048 /* bytes of a sentence, which may list jobs */

struct source_options {
	struct broker_options broker; /* servers NULL: nothing is read from a broker */
	const char *cluster;	      /* NULL: any */
	const char *job;	      /* as records name it; NULL: the only one */
};

/*
 * Connects, and finds the one job that the options choose. Returns 0, -EINVAL where there is no such job, or several,
 * which err lists, or an error of broker_reader__open().
 */
int source__open(struct broker_reader **reader, const struct source_options *options, enum wire_role role,
		 struct wire_job *job, char *err, size_t err_size);

/* Whether a job is the one that the options name: by its text, or by its token, which is different for each user. */
bool source__is_wanted(const struct source_options *options, const struct wire_job *job);

/* Unpacks a packed message into a new text. Returns 0, -EBADMSG or -ENOMEM. */
int source__unpack(const struct broker_message *message, char **text, size_t *size);

/* What reading a job's results found. */
struct source_results {
	struct wire_job job;
	FILE *file;   /* the valid records (report/valid_lines.h), rewound; the caller closes it */
	uint64_t bad; /* lines that are no records of a worker */
};

/* Reads the results of the job that the options choose. Returns as source__open(), or -ENODATA where none counts. */
int source__results(const struct source_options *options, struct source_results *results, char *err, size_t err_size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request to the confined reader and its response (confine.h). */
#ifndef VAPRO_CONFINE_QUERY_H
#define VAPRO_CONFINE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox/flat.h"

#define CONFINE_FILES_MAX 2
#define CONFINE_FILE_BYTES_MAX (512ULL << 20)
#define CONFINE_RESPONSE_BYTES_MAX (128U << 20)

struct confine_query {
	const char *service;
	const struct flat *about;     /* NULL: no arguments */
	int files[CONFINE_FILES_MAX]; /* descriptors of regular files */
	unsigned int file_count;
	unsigned int limit_ms; /* 0: ten seconds */
	unsigned int idle_ms;  /* in the background: time on idle processors only; 0: CONFINE_IDLE_MS */
	uid_t owner;	       /* user of the process that maps the files: who pays, unless they are root's */
	bool charged;	       /* the owner pays for root's files, too */
};

struct confine_response {
	uint8_t *data; /* free() it */
	size_t size;
	uint64_t cpu_ns; /* processor time of the reader; 0 for a response from memory */
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two ends of a confined question share; nobody else includes it. */
#ifndef VAPRO_CONFINE_PRIVATE_H
#define VAPRO_CONFINE_PRIVATE_H

#include "target/confine.h"

#define CONFINE_NAME "vapro-reader" /* argv[0] of a reader; then service and number of files */
#define CONFINE_NOBODY 65534
#define CONFINE_CPU_SECONDS 5
#define CONFINE_LIMIT_MS 10000
#define CONFINE_MEMORY_BYTES (384ULL << 20) /* beside the files */
#define CONFINE_SENTENCE_MAX 256

/* Descriptors of a reader. */
enum { CONFINE_PIPE = 3, CONFINE_ABOUT, CONFINE_FIRST_FILE };

/* How a reader ends when it could not even begin. */
enum { CONFINE_EXIT_SETUP = 71, CONFINE_EXIT_MEMORY, CONFINE_EXIT_READ };

struct confine_head {
	uint64_t status; /* 0, or an errno: a sentence follows */
	uint64_t size;	 /* of what follows */
};

extern bool confine__armed;

/* Lets nothing through from here on but memory, the pipe and the end. 0 or -errno. */
int confine__filter(void);

#endif

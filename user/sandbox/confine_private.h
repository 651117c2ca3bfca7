/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two ends of a confined question share; nobody else includes it. */
#ifndef VAPRO_CONFINE_PRIVATE_H
#define VAPRO_CONFINE_PRIVATE_H

#include <sys/types.h>
#include <time.h>

#include "sandbox/confine.h"

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

/* What tells a file and what is in it. */
struct confine_version {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	bool settled; /* its last change is so long ago that another one would be told by its time */
};

/* All 0, which no file is, where it cannot be told. */
struct confine_version confine_version__of(int fd);
bool confine_version__same(const struct confine_version *a, const struct confine_version *b);

/*
 * The answer that the same question about the same files got lately, if it is remembered: a copy, as
 * confine__ask() would give it. Tells the versions of the question's files as they are before it is asked.
 */
bool confine_memory__recall(const struct confine_question *question, struct confine_version *files,
			    struct confine_answer *answer);

/* Remembers an answer, within bounds (32 of them, 4 MiB); the oldest are forgotten. It does without memory. */
void confine_memory__keep(const struct confine_question *question, const struct confine_version *files,
			  const struct confine_answer *answer);

/* Lets nothing through from here on but memory, the pipe and the end. 0 or -errno. */
int confine__filter(void);

#endif

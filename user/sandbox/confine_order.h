/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reader and those who start it agree on. */
#ifndef VAPRO_CONFINE_ORDER_H
#define VAPRO_CONFINE_ORDER_H

#include <stdbool.h>

#include "sandbox/confine_query.h"

#define CONFINE_NAME "vapro-reader" /* argv[0] of the template and of readers */
#define CONFINE_CPU_SECONDS 5
#define CONFINE_SENTENCE_MAX 256

/* Descriptors of a reader: the first that are free in the template, in this order; and the template's socket. */
enum { CONFINE_PIPE = 3, CONFINE_ABOUT, CONFINE_FIRST_FILE, CONFINE_SOCKET = CONFINE_FIRST_FILE + CONFINE_FILES_MAX };

/* An order to the template, with the descriptors; it returns the reader's pid, or -errno, as an int32_t. */
struct confine_order {
	char service[32];
	uint32_t file_count;
};

/* Exit codes of a reader that failed. */
enum { CONFINE_EXIT_SETUP = 71, CONFINE_EXIT_MEMORY, CONFINE_EXIT_READ };

struct confine_head {
	uint64_t status; /* 0, or an errno: a sentence follows */
	uint64_t size;	 /* bytes that follow */
};

/* Readers can be started from this process. */
extern bool confine__armed;

/* Forbids all calls from here on but those for memory, the pipe and the exit. Returns 0 or -errno. */
int sandbox__filter(void);

#endif

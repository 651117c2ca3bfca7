/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The confined reader (ARCHITECTURE section 2.5): what users wrote - ELF, DWARF - is parsed only in a
 * child that can do nothing else. One child per question: this program anew (an exec, so that it
 * shares no memory with the daemon, neither its secrets nor its maps of the kernel side), as nobody,
 * without new privileges, with limits on memory and processor time, and under a seccomp filter that
 * leaves it memory of its own and one pipe to write to; whatever else it calls kills it. The files
 * are read into its memory before the filter closes and before a byte of them is looked at. A child
 * that crashes, hangs, eats memory or answers nonsense costs its one question a named error.
 *
 * A question and an answer are flat bytes (flat.h); the asker checks every field of the answer.
 */
#ifndef VAPRO_CONFINE_H
#define VAPRO_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/flat.h"

#define CONFINE_FILES_MAX 2
#define CONFINE_FILE_BYTES_MAX (512ULL << 20)
#define CONFINE_ANSWER_BYTES_MAX (128U << 20)

/* ---- the asker's side */

struct confine_question {
	const char *service;
	const struct flat *about;     /* NULL: nothing to tell */
	int files[CONFINE_FILES_MAX]; /* descriptors of regular files */
	unsigned int file_count;
	unsigned int limit_ms; /* 0: ten seconds */
};

struct confine_answer {
	uint8_t *data; /* free() it */
	size_t size;
};

/*
 * Asks and waits. What was asked lately of files that have not changed since is answered from memory.
 * Returns 0, or a negative errno with a sentence in err:
 * -EINVAL  the service refused, in its own words: the file is none it can read
 * -EFBIG   a file's size is out of range, or it is no regular file
 * -EPROTO  the child broke: crashed, hung, was over a limit, called what is forbidden, or gave no whole
 *          answer; such a file is not tried again for a minute
 * -EPERM   it could not be confined, and so has read nothing
 * -ENOSYS  the program did not go through confine__main()
 */
int confine__ask(const struct confine_question *question, struct confine_answer *answer, char *err, size_t err_size);

/* ---- the reader's side */

struct confine_file {
	char *data; /* of malloc; a service may take it over and put NULL */
	size_t size;
};

struct confine_service {
	const char *name;
	/* Returns 0 with the answer, or a negative errno with a sentence in err. Runs confined. */
	int (*answer)(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		      struct flat *answer, char *err, size_t err_size);
};

/*
 * The first call of main(): where this process is a reader it answers its question and does not
 * return. Otherwise it notes that readers can be started from here. services ends with a NULL name.
 */
void confine__main(int argc, char **argv, const struct confine_service *services);

#endif

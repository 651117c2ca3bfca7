/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a job that workers published, without those that do not count any more (docs/many-nodes.md, "What a
 * reader does"): of a smaller epoch or pass that come after a greater one, and those that a pass replaces. What is left
 * is in an unnamed file, as the records of a run on one node.
 */
#ifndef VAPRO_REPORT_VALID_LINES_H
#define VAPRO_REPORT_VALID_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct valid_lines;

/* Returns NULL with an errno where there is no room for a file. */
struct valid_lines *valid_lines__new(void);
void valid_lines__free(struct valid_lines *lines);

/*
 * Adds lines in the order of their messages, each with its newline. Returns 0, -ENOMEM, or the errno of the file. A
 * line that is no record of a worker is passed over and counted.
 */
int valid_lines__add(struct valid_lines *lines, const char *text, size_t size);

struct valid_counts {
	uint64_t valid;	   /* lines that count */
	uint64_t replaced; /* lines that do not */
	uint64_t bad;	   /* what is no record of a worker */
};

struct valid_counts valid_lines__counts(const struct valid_lines *lines);

/* Returns the valid lines in a file of their own that is rewound and the caller's, or NULL with an errno. */
FILE *valid_lines__file(const struct valid_lines *lines);

#endif

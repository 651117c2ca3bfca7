/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What `vapro diagnose` and vaprod say to each other over a local socket: one question, one answer, text.
 *
 *   vapro/1 diagnose          note SENTENCE      any number of them
 *   region 8-15@12.5..20      ok BYTES           and so many bytes, NDJSON or for people; or
 *   job slurm:1234.0          error KIND SENTENCE    usage, refused or failed
 *   format json
 *   width 100
 *   (an empty line)
 *
 * Job, format (text) and width (80) may be missing. Neither side believes the other to be well-behaved:
 * whatever is longer, unknown, given twice or no text is refused.
 */
#ifndef VAPRO_ASK_PROTOCOL_H
#define VAPRO_ASK_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>

#include "query/region_option.h"

#define ASK_REQUEST_MAX 8192
#define ASK_JOB_MAX 256
#define ASK_SENTENCE_MAX 1024
#define ASK_ANSWER_MAX (64U << 20)

struct ask_request {
	struct region_option region;
	char region_text[4096], job[ASK_JOB_MAX]; /* job "": all */
	bool json;
	unsigned int width;
};

/*
 * Reads what has come so far. Returns 0; -EAGAIN where the question is not complete yet; or -EINVAL with a
 * sentence in err. Whatever comes after a question is none of it.
 */
int ask_request__parse(const char *text, size_t size, struct ask_request *request, char *err, size_t err_size);

/* The text of a question (region_text, not region). Returns its length, or -EINVAL where it does not fit. */
int ask_request__format(const struct ask_request *request, char *buf, size_t size);

enum ask_line { ASK_NOTE, ASK_OK, ASK_ERROR };
enum ask_error { ASK_USAGE, ASK_REFUSED, ASK_FAILED, ASK_ERRORS };

/* A line of an answer's head. */
struct ask_head {
	enum ask_line line;
	enum ask_error error;
	size_t bytes;	      /* that follow, of ASK_OK */
	const char *sentence; /* of the others; in the text */
};

/* Reads a line without its newline, in place. Returns 0 or -EINVAL. */
int ask_head__parse(char *text, struct ask_head *head);

/* With its newline. Returns buf. */
char *ask_head__format(const struct ask_head *head, char *buf, size_t size);

#endif

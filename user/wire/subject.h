/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subjects of the stream between nodes and workers (docs/publishing.md):
 *
 *	vapro.v1.in.<cluster>.<job>.<host>	blocks of a node
 *	vapro.v1.out.<cluster>.<job>		results
 *	vapro.v1.state.<cluster>.<job>		state of a job's analysis
 *	vapro.v1.req.<cluster>.<host>		requests to a node
 *
 * A token has letters, digits, `-`, `_` and `=` only, so that it also serves as a key of a bucket and as part of a
 * consumer's name. Any other byte is `=` and two upper-case hexadecimal digits, and an empty text is `=-`. A token
 * longer than WIRE_TOKEN_MAX is cut, and ends in `=g` and 16 digits of a hash of all of it. The token of a job
 * is its text, `==`, and its uid + 1 (0: unknown).
 */
#ifndef VAPRO_WIRE_SUBJECT_H
#define VAPRO_WIRE_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_PREFIX "vapro.v1"
#define WIRE_TEXT_MAX 320    /* a text of an identity, with its NUL */
#define WIRE_TOKEN_MAX 200   /* letters of an escaped token */
#define WIRE_SUBJECT_MAX 768 /* a subject with its NUL: three tokens and the words */

/* What a job is: equal on all of its nodes, and different for any two jobs. */
struct wire_job {
	char cluster[WIRE_TEXT_MAX];
	char job[WIRE_TEXT_MAX]; /* text of the identity, as in struct vapro_thread */
	uint32_t user;		 /* uid + 1, 0 unknown */
};

bool wire_job__equal(const struct wire_job *a, const struct wire_job *b);

enum wire_role {
	WIRE_IN,    /* cluster, job, host */
	WIRE_OUT,   /* cluster, job */
	WIRE_STATE, /* cluster, job */
	WIRE_REQ,   /* cluster, host */
	WIRE_ROLES,
};

/* Writes the token of a text. Returns 0, or -ENOSPC where size is too small (WIRE_TOKEN_MAX + 1 always suffices). */
int wire__token(char *token, size_t size, const char *text);

/* Writes the token of a job without its cluster: its key in a bucket, part of its consumer's name. As wire__token(). */
int wire_job__token(char *token, size_t size, const struct wire_job *job);

/*
 * Writes the subject of a role; job is ignored where the role has only its cluster (WIRE_REQ), host where the role has
 * none. Returns 0 or -ENOSPC (WIRE_SUBJECT_MAX always suffices).
 */
int wire__subject(char *subject, size_t size, enum wire_role role, const struct wire_job *job, const char *host);

/* A filter: the subject of a role with `*` in place of what is NULL. */
int wire__filter(char *filter, size_t size, enum wire_role role, const char *cluster, const struct wire_job *job,
		 const char *host);

/* A subject in parts; what its role does not have is empty. */
struct wire_subject {
	enum wire_role role;
	struct wire_job job; /* texts as they were before they were escaped */
	char host[WIRE_TEXT_MAX];
	bool cut; /* a token was too long: its text is the beginning only */
};

/* Returns 0, or -EINVAL for what is no subject of this version. */
int wire_subject__parse(struct wire_subject *parsed, const char *subject);

/* The id by which a broker recognises a block sent again: run, job and sequence. Returns 0 or -ENOSPC. */
#define WIRE_ID_MAX (WIRE_TOKEN_MAX + 40)
int wire__message_id(char *id, size_t size, uint64_t run, const struct wire_job *job, uint64_t sequence);

#endif

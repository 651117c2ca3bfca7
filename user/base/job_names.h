/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What people call a job: its name, account, partition, nodes and user, beside its identity ("slurm:123.0"), which
 * programs use. They come from users, who choose them: what is stored is short and harmless, and says where it is from.
 */
#ifndef VAPRO_JOB_NAMES_H
#define VAPRO_JOB_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_NAME_SIZE 72	 /* of a text, with its NUL */
#define JOB_NAMES_FILE_MAX 4096	 /* bytes of a file of names */
#define JOB_NODES_MOST 10000000U /* a number of nodes beyond is nonsense */
#define JOB_IDENTITY_SHORT_SIZE 96

/* Source of a job's names. */
enum job_names_source {
	JOB_NAMES_NONE,
	JOB_NAMES_ENVIRONMENT, /* of a process, which its user may have forged */
	JOB_NAMES_PROLOG,      /* a file of root's, written when the job began */
	JOB_NAMES_SOURCES
};

/* The words of records: "environment", "prolog"; that of JOB_NAMES_NONE is "". */
extern const char *const job_names_source_name[JOB_NAMES_SOURCES];

/* Texts that are unknown are empty, and nodes 0. */
struct job_names {
	char name[JOB_NAME_SIZE], account[JOB_NAME_SIZE], partition[JOB_NAME_SIZE], user[JOB_NAME_SIZE];
	uint32_t nodes;
	enum job_names_source source;
};

/*
 * Copies a text of a user to a member: valid UTF-8, cut between characters, in which control characters and those that
 * reorder the text around them are question marks. from NULL: empty.
 */
void job_names__copy(char to[JOB_NAME_SIZE], const char *from);

/* Reads a number of nodes; 0: it is none. text may be NULL. */
uint32_t job_names__nodes(const char *text);

/*
 * Reads the text of a file of names, which is changed: lines of key=value with the keys uid, name, account, partition,
 * nodes and user; others are passed over. Returns whether it has the uid of the job's user, which keeps a process from
 * taking the names of another user's job, and a name.
 */
bool job_names__parse(char *text, uint32_t uid, struct job_names *names);

/*
 * Returns whether a job that is wanted is this one. wanted: its identity; what a user types of it: "123" or "slurm:123"
 * for all steps of a resource manager's job, "pmix:77" without the launcher's host; NULL: any job.
 */
bool job_names__match(const char *wanted, const char *identity);

/*
 * Writes an identity as people read it: "slurm 123.0", "slurm 123" of a launcher inside of an allocation, "pmix 77",
 * "process 4711". Returns buf, of JOB_IDENTITY_SHORT_SIZE bytes.
 */
char *job_names__short(const char *identity, char *buf);

#endif

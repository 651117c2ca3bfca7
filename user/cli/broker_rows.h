/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of commands that speak with a broker, one table for all: how the connection is secured, and for those that
 * read a job from it, what they read.
 */
#ifndef VAPRO_BROKER_ROWS_H
#define VAPRO_BROKER_ROWS_H

#include "cli/options.h"
#include "source/source.h"

enum {
	ROW_BROKER_CREDENTIALS = 1000, /* beyond the ids of any command */
	ROW_BROKER_CA,
	ROW_BROKER_CERT,
	ROW_BROKER_KEY,
	ROW_FROM,
	ROW_FROM_CLUSTER,
};

/* clang-format off */
#define BROKER_ROWS                                                                                                    \
	{"credentials", "FILE", "the file of credentials that the brokers' administrator issued", ROW_BROKER_CREDENTIALS, 0}, \
	{"ca", "FILE", "certificates that sign those of the brokers (those of the system)", ROW_BROKER_CA, 0},         \
	{"cert", "FILE", "the own certificate", ROW_BROKER_CERT, 0},                                                   \
	{"key", "FILE", "the key of this certificate", ROW_BROKER_KEY, 0}

#define FROM_ROWS                                                                                                      \
	OPTIONS_GROUP("Job of many nodes"),                                                                            \
	{"from", "URL[,URL]", "read a job from these brokers: nats://HOST[:PORT] or tls://HOST[:PORT], several of one " \
	 "cluster", ROW_FROM, 0},                                                                                      \
	{"cluster", "NAME", "the cluster of the job (any)", ROW_FROM_CLUSTER, 0},                                      \
	BROKER_ROWS
/* clang-format on */

/* Takes an option of BROKER_ROWS. Returns whether it is one. */
bool broker_rows__set(struct broker_options *broker, int id, const char *value);

/* Takes an option of FROM_ROWS. Returns whether it is one. */
bool from_rows__set(struct source_options *source, int id, const char *value);

/* Checks what the options need of each other. Returns 0, or -EINVAL with a sentence in err. */
int from_rows__check(const struct source_options *source, char *err, size_t err_size);

/* The exit code of an error of source__open(). */
int from_rows__code(int error);

#endif

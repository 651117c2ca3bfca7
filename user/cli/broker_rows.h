/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of commands that speak with a broker, one table for all: where it is, how the connection is secured, and
 * for those that read a job from it, which. Older names remain: --publish URL and --publish-ca (vaprod), --from
 * (readers),
 * --to (vapro publish), --nats (vapro-worker), and --ca without broker-.
 */
#ifndef VAPRO_BROKER_ROWS_H
#define VAPRO_BROKER_ROWS_H

#include "cli/command.h"
#include "source/source.h"
#include "wire/subject.h"

#define BROKER_FORM "nats://HOST[:PORT] or tls://HOST[:PORT]; several are brokers of one cluster"

/* The rows of a struct broker_options, a member of a command's struct; details: the level of all but the address. */
/* clang-format off */
#define BROKER_ROWS(structure, member, broker_help, details)                                                           \
	{.type = OPTION_STRING, OPTION_AT(structure, member.servers), .name = "broker", .value = "URL[,URL]",          \
	 .help = broker_help, .write = broker_rows__write},                                                            \
	{.type = OPTION_STRING, OPTION_AT(structure, member.credentials), .name = "broker-credentials",                \
	 .value = "FILE", .level = details,                                                                            \
	 .help = "with --broker: the file of credentials that the brokers' administrator issued"},                     \
	{.type = OPTION_STRING, OPTION_AT(structure, member.ca), .name = "broker-ca", .value = "FILE",                 \
	 .level = details, .help = "with --broker: certificates that sign those of the brokers (those of the system)"}, \
	{.type = OPTION_STRING, OPTION_AT(structure, member.cert), .name = "broker-cert", .value = "FILE",             \
	 .level = details, .help = "with --broker: the own certificate"},                                              \
	{.type = OPTION_STRING, OPTION_AT(structure, member.key), .name = "broker-key", .value = "FILE",               \
	 .level = details, .help = "with --broker: the key of this certificate"}

/* The older names, each with what stood before it: "", or "publish-". */
#define BROKER_ALIASES(url, before)                                                                                    \
	OPTION_ALIAS_ROW(url, "broker"), OPTION_ALIAS_ROW(before "credentials", "broker-credentials"),                 \
	OPTION_ALIAS_ROW(before "ca", "broker-ca"), OPTION_ALIAS_ROW(before "cert", "broker-cert"),                    \
	OPTION_ALIAS_ROW(before "key", "broker-key")

#define CLUSTER_ROW(structure, member, cluster_help)                                                                   \
	{.type = OPTION_STRING, OPTION_AT(structure, member), .name = "cluster", .value = "NAME",                      \
	 .max = WIRE_TEXT_MAX - 1, .noun = "name", .help = cluster_help}

/* Of a struct source_options. */
#define FROM_ROWS(structure, member)                                                                                   \
	OPTION_HEADING_ROW("Job of many nodes"),                                                                       \
	BROKER_ROWS(structure, member.broker, "read a job from these brokers: " BROKER_FORM, OPTION_USUAL),            \
	BROKER_ALIASES("from", ""),                                                                                    \
	CLUSTER_ROW(structure, member.cluster, "the cluster of the job (any)")

#define JOB_ROW(structure, member, job_help)                                                                           \
	{.type = OPTION_STRING, OPTION_AT(structure, member), .name = "job", .value = "JOB", .letter = 'j',            \
	 .noun = "job", .help = job_help}
/* clang-format on */

/* Writes the addresses of brokers without passwords. */
bool broker_rows__write(const void *member, size_t n, char *text, size_t size);

/* Returns the name of an option that needs --broker where that is missing; NULL where there is none. */
const char *broker_rows__without_url(const struct broker_options *broker);

/* Checks what the options need of each other. Returns 0, or -EINVAL with a sentence in err. */
int broker_rows__check(const struct source_options *source, char *err, size_t err_size);

/* The exit code of an error of source__open(). */
int broker_rows__code(int error);

#endif

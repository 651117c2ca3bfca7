/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of vaprod that are no tunables, most of which `vapro run` has, too. */
#ifndef VAPRO_DAEMON_ROWS_H
#define VAPRO_DAEMON_ROWS_H

#include "cli/completion.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "daemon/publishing.h"
#include "report/outcome.h"

enum {
	ROW_PID = 1,
	ROW_EXE,
	ROW_USER_FUNCTION,
	ROW_OUTPUT,
	ROW_CAPTURE,
	ROW_PUBLISH,
	ROW_PUBLISH_ONLY,
	ROW_CLUSTER,
	ROW_PUBLISH_CREDENTIALS,
	ROW_PUBLISH_CA,
	ROW_PUBLISH_CERT,
	ROW_PUBLISH_KEY,
	ROW_PUBLISH_MEMORY,
	ROW_JSON,
	ROW_QUIET,
	ROW_VERBOSE,
	ROW_FAIL_ON,
	ROW_DURATION,
	ROW_CPUS,
	ROW_DRY_RUN,
	ROW_CONFIG,
	ROW_PRINT_CONFIG,
	ROW_CHECK_CONFIG,
	ROW_COMPLETION,
	ROW_VERSION,
};

/* The rows; a help that is NULL hides an option. */
/* clang-format off */
#define PID_HELP "watch this process; may be given more than once"
#define EXE_HELP "watch processes whose executable matches, by path or base name; may be given more than once"
#define COMPLETION_HELP "print the completion of vaprod for this shell"
#define DURATION_HELP "end after this time: 30, 500ms, 5m, 1h"
#define DRY_RUN_HELP "print what would be watched with these options, and by which probes, and end"

#define DAEMON_ROWS(pid_help, exe_help, duration_help, dry_run_help, completion_help)                                  \
	OPTIONS_SECTION(VAPRO_GROUP_SELECTION),                                                                        \
	{"pid", "PID", pid_help, ROW_PID, 'p'},                                                                        \
	{"exe", "GLOB", exe_help, ROW_EXE, 'e'},                                                                       \
	{"user-function", "IMAGE:FUNCTION",                                                                            \
	 "watch this function of the program too, as --function with class=user; may be given more than once; IMAGE "  \
	 "is a glob of the file's name, or exe", ROW_USER_FUNCTION, 0},                                                \
	{"duration", "TIME", duration_help, ROW_DURATION, 'd'},                                                        \
	OPTIONS_SECTION(VAPRO_GROUP_OUTPUT),                                                                           \
	{"output", "FILE|-", "NDJSON lines, added to a file, to standard output (-), or both: give it twice",          \
	 ROW_OUTPUT, 'o'},                                                                                             \
	{"json", NULL, "NDJSON lines to standard output, also where that is a terminal; as --output -", ROW_JSON, 0},  \
	{"capture", "FILE", "add all bundles as one more run, to be analysed again with `vapro analyze FILE`",         \
	 ROW_CAPTURE, 0},                                                                                              \
	{"quiet", NULL, "print warnings and errors only; on a terminal no progress and no sentences", ROW_QUIET, 'q'},              \
	{"verbose", NULL,                                                                                              \
	 "also print what helps to find out why something does not work, such as libbpf's messages", ROW_VERBOSE,      \
	 'v'},                                                                                                         \
	{"fail-on", OUTCOME_SEVERITIES, OUTCOME_HELP, ROW_FAIL_ON, 0},                                                 \
	OPTIONS_SECTION(VAPRO_GROUP_PUBLISHING),                                                                       \
	{"publish", "URL[,URL]", "send all bundles to a broker (NATS JetStream), to be analysed with those of the job's "   \
	 "other nodes: nats://HOST[:PORT] or tls://HOST[:PORT]; several are brokers of one cluster", ROW_PUBLISH, 0},          \
	{"publish-only", NULL, "with --publish: no analysis on this node", ROW_PUBLISH_ONLY, 0},                           \
	{"cluster", "NAME", "with --publish: the cluster of this node, part of each job's identity (" PUBLISHING_CLUSTER ")", \
	 ROW_CLUSTER, 0},                                                                                               \
	{"publish-credentials", "FILE", "with --publish: the file of credentials that the broker's administrator issued",   \
	 ROW_PUBLISH_CREDENTIALS, 0},                                                                                   \
	{"publish-ca", "FILE", "with --publish: certificates that sign those of the brokers (those of the system)",         \
	 ROW_PUBLISH_CA, 0},                                                                                            \
	{"publish-cert", "FILE", "with --publish: the certificate of this node", ROW_PUBLISH_CERT, 0},                     \
	{"publish-key", "FILE", "with --publish: the key of this certificate", ROW_PUBLISH_KEY, 0},                        \
	{"publish-memory", "SIZE", "with --publish: memory for what no broker took yet; beyond, the oldest is discarded "    \
	 "and counted (16M)", ROW_PUBLISH_MEMORY, 0},                                                                   \
	OPTIONS_SECTION(VAPRO_GROUP_OVERHEAD),                                                                         \
	{"cpus", "LIST", "run on these CPUs, as in 0-3,7 (default: not on isolated ones)", ROW_CPUS, 'C'},              \
	OPTIONS_SECTION(VAPRO_GROUP_ANALYSIS),                                                                         \
	OPTIONS_GROUP("Run"),                                                                                          \
	{"config", "FILE", "read this configuration file, not those of the site (" SETTINGS_FILE " and "               \
	 SETTINGS_DROP_INS "); options on the command line win", ROW_CONFIG, 'c'},                                     \
	{"dry-run", NULL, dry_run_help, ROW_DRY_RUN, 'n'},                                                             \
	{"print-config", NULL, "print the configuration that would hold, as a file", ROW_PRINT_CONFIG, 0},             \
	{"check-config", NULL, "check the configuration and print which files were read", ROW_CHECK_CONFIG, 0},        \
	{"completion", COMPLETION_SHELLS, completion_help, ROW_COMPLETION, 0},                                         \
	{"version", NULL, "print the version", ROW_VERSION, 'V'},                                                      \
	OPTIONS_HELP_ALL_ROW,                                                                                          \
	OPTIONS_SECTION(VAPRO_GROUP_ANALYSIS_EXPERT),                                                                  \
	OPTIONS_SECTION(VAPRO_GROUP_KERNEL_EXPERT)
/* clang-format on */

#endif

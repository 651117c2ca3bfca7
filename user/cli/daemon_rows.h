/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of vaprod beside tunables, which `vapro run` has, too, but for some that it refuses. */
#ifndef VAPRO_DAEMON_ROWS_H
#define VAPRO_DAEMON_ROWS_H

#include "base/log.h"
#include "base/units.h"
#include "cli/broker_rows.h"
#include "cli/command_line.h"
#include "cli/shared_rows.h"
#include "cli/settings.h"
#include "pipeline/record_filter.h"
#include "reports/report_store.h"

#define DURATION_MOST_S 1e9 /* some 30 years */
#define OUTPUT_MAX_LEAST (1 << 20)
#define OUTPUT_MAX_MOST 0x1p50

/* Of a struct pid_list. */
int daemon_rows__read_pid(void *member, const char *value, char *why, size_t why_size);
bool daemon_rows__write_pid(const void *member, size_t n, char *text, size_t size);

/* clang-format off */
#define DAEMON_ROW(MEMBER) OPTION_AT(struct command_line, MEMBER)

/* own: where the options are listed that `vapro run` has not. */
#define DAEMON_ROWS(own)                                                                                               \
	OPTION_GROUP_ROW(VAPRO_GROUP_SELECTION),                                                                       \
	{.type = OPTION_CUSTOM, DAEMON_ROW(pids), .name = "pid", .letter = 'p', .value = "PID", .level = own,          \
	 .noun = "PID", .expected = "a number, as `pgrep -a PROGRAM` lists them", .read = daemon_rows__read_pid,       \
	 .write = daemon_rows__write_pid, .help = "watch this process; may be given more than once"},                  \
	{.type = OPTION_LIST, DAEMON_ROW(globs), .name = "exe", .letter = 'e', .value = "GLOB", .level = own,          \
	 .noun = "pattern", .expected = "a glob, such as lmp* or /opt/site/bin/*",                                     \
	 .help = "watch processes whose executable matches, by path or base name; may be given more than once"},       \
	OPTION_ALIAS_ROW("user-function", "function"),                                                                 \
	{.type = OPTION_SECONDS, DAEMON_ROW(daemon.duration_s), .name = "duration", .letter = 'd', .level = own,       \
	 .min = 1e-3, .max = DURATION_MOST_S, .expected = "a time from 1ms on, " UNITS_TIME,                           \
	 .help = "end after this time: 30, 500ms, 5m, 1h"},                                                            \
	OPTION_GROUP_ROW(VAPRO_GROUP_OUTPUT),                                                                          \
	{.type = OPTION_LIST, DAEMON_ROW(outputs), .name = "output", .letter = 'o', .value = "FILE|-",                 \
	 .help = "NDJSON lines, added to a file, to standard output (-), or both: give it twice"},                     \
	{.type = OPTION_SWITCH, DAEMON_ROW(json), .name = "json",                                                      \
	 .help = "NDJSON lines to standard output, also where that is a terminal; as --output -"},                     \
	{.type = OPTION_CHOICE, DAEMON_ROW(daemon.records), .name = "records", .words = RECORD_CHOICE_WORDS,              \
	 .level = OPTION_FILE, .help = "which records are lines: all, all but heat maps, or those of alarms (all)"}, \
	{.type = OPTION_SIZE, DAEMON_ROW(daemon.output_most), .name = "output-max", .min = OUTPUT_MAX_LEAST,           \
	 .max = OUTPUT_MAX_MOST, .level = OPTION_FILE,                                                               \
	 .help = "bytes of the file of --output; lines beyond are lost and counted until it is rotated (no bound)"},   \
	{.type = OPTION_STRING, DAEMON_ROW(daemon.metrics), .name = "metrics", .value = "FILE",                        \
	 .level = OPTION_FILE, .help = "write metrics for the textfile collector of node_exporter, again at each window"},                  \
	{.type = OPTION_STRING, DAEMON_ROW(daemon.capture), .name = "capture", .value = "FILE",                        \
	 .help = "add all bundles as one more run, to be analysed again with `vapro analyze FILE`"},                   \
	{.type = OPTION_STRING, DAEMON_ROW(daemon.profiles), .name = "profiles", .value = "DIR", .level = OPTION_FILE,    \
	 .help = "store a profile of each job that ends below this directory, by user and program, and compare the job " \
	 "with the earlier ones there (record earlier); for `vapro runs DIR/UID/PROGRAM` (none)"},                         \
	{.type = OPTION_LEVEL, DAEMON_ROW(log_most), .min = LOG_LEVEL_WARNING, .name = "quiet", .letter = 'q',         \
	 .help = "print warnings and errors only; on a terminal no progress and no sentences"},                        \
	{.type = OPTION_LEVEL, DAEMON_ROW(log_most), .min = LOG_LEVEL_DEBUG, .name = "verbose", .letter = 'v',         \
	 .help = "also print what helps to find out why something does not work, such as libbpf's messages"},          \
	{.type = OPTION_STRING, DAEMON_ROW(daemon.job_reports), .name = "job-reports", .value = "DIR",                 \
	 .level = own == OPTION_HIDDEN ? OPTION_HIDDEN : OPTION_FILE, .help = "when a job has ended, leave its owner "  \
	 "records, page and text in DIR/jobs/UID, for `vapro jobs`; the shipped unit has " STORE_DIRECTORY " (none)"},  \
	{.type = OPTION_SECONDS, DAEMON_ROW(daemon.job_reports_age_s), .name = "job-reports-age",                      \
	 .level = own == OPTION_HIDDEN ? OPTION_HIDDEN : OPTION_FILE, .min = 0, .max = DURATION_MOST_S,                \
	 .help = "remove reports of jobs after this time; 0 = never (336h)"},                                           \
	{.type = OPTION_SIZE, DAEMON_ROW(daemon.job_reports_bytes), .name = "job-reports-bytes",                       \
	 .level = own == OPTION_HIDDEN ? OPTION_HIDDEN : OPTION_FILE, .min = 0, .max = 1ULL << 50,                     \
	 .help = "beyond so many bytes remove the oldest reports, of the user who has most; 0 = no bound (5G)"},       \
	FAIL_ON_ROW(struct command_line, daemon.fail_on),                                                              \
	OPTION_GROUP_ROW(VAPRO_GROUP_PUBLISHING),                                                                      \
	BROKER_ROWS(struct command_line, daemon.publish.broker, "send all bundles to a broker (NATS JetStream), to be " \
	 "analysed with those of the job's other nodes; " BROKER_FORM, OPTION_EXPERT),                                 \
	BROKER_ALIASES("publish", "publish-"),                                                                         \
	{.type = OPTION_SWITCH, DAEMON_ROW(daemon.publish.only), .name = "publish-only", .level = OPTION_EXPERT,       \
	 .help = "with --broker: no analysis on this node"},                                                           \
	{.type = OPTION_STRING, DAEMON_ROW(daemon.publish.cluster), .name = "cluster", .value = "NAME",                \
	 .max = WIRE_TEXT_MAX - 1, .noun = "name", .level = OPTION_EXPERT, .help = "with --broker: the cluster of this " \
	 "node, part of each job's identity (" PUBLISHING_CLUSTER ")"},                                                \
	{.type = OPTION_SIZE, DAEMON_ROW(daemon.publish.memory_bytes), .name = "publish-memory", .level = OPTION_FILE, \
	 .min = PUBLISHING_MEMORY_LEAST, .max = PUBLISHING_MEMORY_MOST,                                                \
	 .help = "with --broker: memory for what no broker took yet; beyond, the oldest is discarded and counted (16M)"}, \
	OPTION_GROUP_ROW(VAPRO_GROUP_OVERHEAD),                                                                        \
	{.type = OPTION_STRING, DAEMON_ROW(daemon.cpus), .name = "cpus", .letter = 'C', .value = "LIST",               \
	 .level = OPTION_EXPERT, .help = "run on these CPUs, as in 0-3,7 (default: not on isolated ones)"},            \
	OPTION_GROUP_ROW(VAPRO_GROUP_ANALYSIS),                                                                        \
	OPTION_GROUP_ROW(VAPRO_GROUP_KERNEL),                                                                          \
	OPTION_HEADING_ROW("Run"),                                                                                     \
	{.type = OPTION_STRING, DAEMON_ROW(config_file), .name = "config", .letter = 'c', .value = "FILE",             \
	 .early = true, .help = "read this configuration file, not those of the site; those are " SETTINGS_FILE        \
	 " and " SETTINGS_DROP_INS "; options of the command line win"},                                               \
	{.type = OPTION_SWITCH, DAEMON_ROW(daemon.dry_run), .name = "dry-run", .letter = 'n', .level = own,            \
	 .help = "print what would be watched with these options, and by which probes, and end"},                      \
	{.type = OPTION_SWITCH, DAEMON_ROW(print_config), .name = "print-config", .early = true, .level = OPTION_EXPERT, \
	 .help = "print the configuration that would hold, as a file"},                                                \
	{.type = OPTION_SWITCH, DAEMON_ROW(check_config), .name = "check-config", .early = true,                       \
	 .help = "check the configuration and print which files were read"},                                           \
	{.type = OPTION_COMPLETION, .name = "completion", .value = OPTIONS_COMPLETION_SHELLS,                                  \
	 .level = own == OPTION_HIDDEN ? OPTION_HIDDEN : OPTION_EXPERT, .help = "print the completion for this shell"}, \
	{.type = OPTION_VERSION, .name = "version", .letter = 'V', .level = own, .help = "print the version"},         \
	OPTIONS_HELP_ALL_ROW
/* clang-format on */

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line of vapro-worker. */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/broker_rows.h"
#include "cli/command.h"
#include "daemon/daemon.h"
#include "pipeline/record_filter.h"
#include "target/quota.h"
#include "worker/worker.h"

#define S 1000000000ULL
#define MEMORY_LEAST (16UL << 20)
#define MEMORY_STEP (1UL << 30)
#define MEMORY_SHARE 2 /* the other half is for further jobs, and for a checkpoint that is written or read */

/* The options, of which those of the worker itself are a part. */
struct choice {
	struct worker_options worker;
	uint64_t memory_bytes;
	int log_most; /* enum log_level */
};

static int read_replicas(void *member, const char *value, char *why, size_t why_size)
{
	int *replicas = member;

	(void)why;
	(void)why_size;
	if (strlen(value) != 1 || !strchr("135", *value))
		return -EINVAL;
	*replicas = *value - '0';
	return 0;
}

#define TIME_MOST_S 1e6

/* clang-format off */
static const struct option_row rows[] = {
    OPTION_HEADING_ROW("Broker"),
    BROKER_ROWS(struct choice, worker.store.broker, "NATS servers with JetStream; " BROKER_FORM "; needed", OPTION_USUAL),
    BROKER_ALIASES("nats", ""),
    CLUSTER_ROW(struct choice, worker.store.cluster, "jobs of this cluster only (all)"),
    {.type = OPTION_CUSTOM, OPTION_AT(struct choice, worker.store.replicas), .name = "replicas", .value = "N",
     .noun = "number", .expected = "1, 3 or 5", .read = read_replicas,
     .help = "copies of streams that this worker creates, 1 to 5 (1)"},
    OPTION_HEADING_ROW("Output"),
    {.type = OPTION_STRING, OPTION_AT(struct choice, worker.output), .name = "output", .letter = 'o', .value = "DIR",
     .help = "also write NDJSON, a file for each job and epoch"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, worker.to_stdout), .name = "stdout",
     .help = "also write NDJSON to standard output (without --output)"},
    {.type = OPTION_CHOICE, OPTION_AT(struct choice, worker.records), .name = "records", .words = RECORD_CHOICE_WORDS,
     .help = "which records are lines of files and standard output: all, all but heat maps, or those of alarms (all)"},
    {.type = OPTION_SIZE, OPTION_AT(struct choice, worker.output_most), .name = "output-max", .min = 1 << 20,
     .max = 1ULL << 50, .help = "bytes of a job's file; lines beyond are lost and counted (no bound)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, worker.pack), .name = "zst",
     .help = "files are packed: their names end in .ndjson.zst"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, worker.metrics), .name = "metrics", .value = "FILE",
     .help = "write metrics for the textfile collector of node_exporter, every five seconds"},
    {.type = OPTION_LEVEL, OPTION_AT(struct choice, log_most), .min = LOG_LEVEL_WARNING, .name = "quiet",
     .letter = 'q', .help = "warnings and errors only"},
    {.type = OPTION_LEVEL, OPTION_AT(struct choice, log_most), .min = LOG_LEVEL_DEBUG, .name = "verbose",
     .letter = 'v', .help = "more messages"},
    OPTION_HEADING_ROW("Analysis"),
    {.type = OPTION_NS, OPTION_AT(struct choice, worker.job.late_after_ns), .name = "late-after", .min = 0.1,
     .max = TIME_MOST_S, .help = "a window goes without nodes that are silent for so long (10s)"},
    {.type = OPTION_NS, OPTION_AT(struct choice, worker.job.again_ns), .name = "judge-again", .max = TIME_MOST_S,
     .help = "blocks that come within this time after their window are judged again (60s)"},
    {.type = OPTION_NS, OPTION_AT(struct choice, worker.idle_ns), .name = "idle", .min = 1, .max = TIME_MOST_S,
     .help = "a job that sends nothing for so long has ended (10m)"},
    {.type = OPTION_NS, OPTION_AT(struct choice, worker.expire_ns), .name = "lease", .min = 1, .max = TIME_MOST_S,
     .help = "a worker that does not renew its lease for so long has lost it; renewed five times in it (5s)"},
    {.type = OPTION_SIZE, OPTION_AT(struct choice, memory_bytes), .name = "memory", .min = MEMORY_LEAST,
     .max = 1ULL << 50, .expected = "at least 16M, " UNITS_SIZE,
     .help = "of a job's analysis and of its blocks in memory, at most (half of the machine's memory, or of the "
	     "cgroup's limit)"},
    OPTION_HEADING_ROW("Other"),
    {.type = OPTION_COMPLETION, .name = "completion", .value = OPTIONS_COMPLETION_SHELLS,
     .help = "print the completion of options for this shell"},
    {.type = OPTION_VERSION, .name = "version", .letter = 'V', .help = "print the version"},
    OPTIONS_HELP_ROW,
};
/* clang-format on */

const struct command worker_command = {
    .name = "vapro-worker",
    .program = "vapro-worker",
    .summary = "analyse jobs of many nodes from the blocks that their vaprods publish",
    .synopsis = "--broker URL[,URL] [option]...",
    .about = "Analyses jobs of many nodes: reads the blocks that vaprod --broker sends to a NATS JetStream broker, "
	     "merges those of a job, and publishes what it finds. Any number of workers share the jobs; where one "
	     "vanishes, others go on with its jobs.",
    .examples = "vapro-worker --broker nats://broker:4222 --output /var/lib/vapro\tall jobs, a file for each\n"
		"vapro-worker --broker nats://a:4222,nats://b:4222,nats://c:4222 --replicas 3\ta cluster of brokers",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
};

#define DIRECTORY_MODE 0750

/* Makes the directory of results where it is absent. Returns 0 or an exit code. */
static int make_directory(const char *path)
{
	struct stat status;

	if (mkdir(path, DIRECTORY_MODE) && errno != EEXIST) {
		fprintf(stderr, "vapro-worker: --output: the directory '%s' cannot be made: %s\n", path,
			strerror(errno));
		return EXIT_USAGE;
	}
	if (stat(path, &status) || !S_ISDIR(status.st_mode) || access(path, W_OK)) {
		fprintf(stderr, "vapro-worker: --output: '%s' is not a directory that can be written\n", path);
		return EXIT_USAGE;
	}
	return 0;
}

/* Checks what options need of each other and of the machine. Returns 0 or an exit code. */
static int check(const struct worker_options *worker)
{
	char err[512];

	if (!worker->store.broker.servers) {
		fputs("vapro-worker: --broker URL is needed: the broker that vaprod --broker sends to; see --help\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (broker_options__check(&worker->store.broker, err, sizeof(err))) {
		fprintf(stderr, "vapro-worker: %s\n", err);
		return EXIT_USAGE;
	}
	return worker->output ? make_directory(worker->output) : 0;
}

/*
 * What a job may hold unless --memory says it. Whole GiB where there is one: a checkpoint is refused by a worker that
 * has less memory than the worker that made it, and machines of one kind differ by some MiB.
 */
static size_t share_of_memory(void)
{
	struct quota_roots roots;
	struct sysinfo info;
	uint64_t bytes;

	quota__read_roots("/proc/self/mounts", &roots);
	bytes = quota__memory(&roots, "/proc/self/cgroup");
	/* a system call, since /proc may be hidden (ProcSubset=pid) */
	if (!sysinfo(&info) && (uint64_t)info.totalram * info.mem_unit < bytes)
		bytes = (uint64_t)info.totalram * info.mem_unit;
	bytes /= MEMORY_SHARE;
	if (bytes >= MEMORY_STEP)
		bytes -= bytes % MEMORY_STEP;
	return bytes > MEMORY_LEAST ? (size_t)bytes : MEMORY_LEAST;
}

int commands__run_worker(int argc, char **argv, const volatile sig_atomic_t *stop)
{
	struct choice choice = {
	    .worker = {.store = {.broker = {.name = "vapro-worker"}, .replicas = 1},
		       .job = {.late_after_ns = 10 * S, .again_ns = 60 * S},
		       .expire_ns = 5 * S,
		       .idle_ns = 600 * S,
		       .stop = stop},
	    .memory_bytes = share_of_memory(),
	    .log_most = LOG_LEVEL_INFO,
	};
	struct worker_options *worker = &choice.worker;
	int code = command__parse(&worker_command, &choice, argc, argv);
	char memory[32];

	log__init("vapro-worker", (enum log_level)choice.log_most);
	worker->job.memory_bytes = (size_t)choice.memory_bytes;
	worker->renew_ns = worker->expire_ns / 5;
	if (!code)
		code = check(worker);
	if (code)
		return code == COMMAND_DONE ? EXIT_OK : code;
	units__format_bytes(worker->job.memory_bytes, memory, sizeof(memory));
	log__info("a job holds at most %s (--memory)", memory);
	worker->to_stdout |= !worker->output;
	return worker__run(worker) ? EXIT_FAILED : EXIT_OK;
}

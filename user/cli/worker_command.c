// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line of vapro-worker. */
#include "cli/commands.h"

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
#include "cli/completion.h"
#include "cli/options.h"
#include "daemon/daemon.h"
#include "target/quota.h"
#include "worker/worker.h"

#define S 1000000000ULL
#define MEMORY_LEAST (16UL << 20)
#define MEMORY_STEP (1UL << 30)
#define MEMORY_SHARE 2 /* the other half is for further jobs, and for a checkpoint that is written or read */

enum {
	ROW_NATS = 1,
	ROW_CLUSTER,
	ROW_REPLICAS,
	ROW_OUTPUT,
	ROW_STDOUT,
	ROW_LATE_AFTER,
	ROW_JUDGE_AGAIN,
	ROW_IDLE,
	ROW_LEASE,
	ROW_MEMORY,
	ROW_QUIET,
	ROW_VERBOSE,
	ROW_COMPLETION,
	ROW_VERSION,
};

static const struct option_row rows[] = {
    OPTIONS_GROUP("Broker"),
    {"nats", "URL[,URL]", "NATS servers with JetStream, nats:// or tls:// (needed)", ROW_NATS, 0},
    {"cluster", "NAME", "jobs of this cluster only (all)", ROW_CLUSTER, 0},
    BROKER_ROWS,
    {"replicas", "N", "copies of streams that this worker creates, 1 to 5 (1)", ROW_REPLICAS, 0},
    OPTIONS_GROUP("Output"),
    {"output", "DIR", "also write NDJSON, a file for each job and epoch", ROW_OUTPUT, 'o'},
    {"stdout", NULL, "also write NDJSON to standard output (without --output)", ROW_STDOUT, 0},
    {"quiet", NULL, "warnings and errors only", ROW_QUIET, 'q'},
    {"verbose", NULL, "more messages", ROW_VERBOSE, 'v'},
    OPTIONS_GROUP("Analysis"),
    {"late-after", "TIME", "a window goes without nodes that are silent for so long (10s)", ROW_LATE_AFTER, 0},
    {"judge-again", "TIME", "blocks that come within this time after their window are judged again (60s)",
     ROW_JUDGE_AGAIN, 0},
    {"idle", "TIME", "a job that sends nothing for so long has ended (10m)", ROW_IDLE, 0},
    {"lease", "TIME", "a worker that does not renew its lease for so long has lost it; renewed five times in it (5s)",
     ROW_LEASE, 0},
    {"memory", "SIZE",
     "of a job's analysis and of its blocks in memory, at most (half of the machine's memory, or of the cgroup's "
     "limit)",
     ROW_MEMORY, 0},
    OPTIONS_GROUP("Other"),
    {"completion", COMPLETION_SHELLS, "print the completion of options for this shell", ROW_COMPLETION, 0},
    {"version", NULL, "print the version", ROW_VERSION, 0},
    OPTIONS_HELP_ROW,
};

const struct command worker_command = {
    .name = "vapro-worker",
    .program = "vapro-worker",
    .summary = "analyse jobs of many nodes from the blocks that their vaprods publish",
    .synopsis = "--nats URL[,URL] [option]...",
    .about = "Analyses jobs of many nodes: reads the blocks that vaprod --publish sends to a NATS JetStream broker, "
	     "merges those of a job, and publishes what it finds. Any number of workers share the jobs; where one "
	     "vanishes, others go on with its jobs.",
    .examples = "vapro-worker --nats nats://broker:4222 --output /var/lib/vapro\tall jobs, a file for each\n"
		"vapro-worker --nats nats://a:4222,nats://b:4222,nats://c:4222 --replicas 3\ta cluster of brokers",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
};

static int set_time(const char *value, const char *name, double least_s, uint64_t *ns, char *err, size_t size)
{
	double seconds;

	if (units__seconds(value, &seconds) || seconds < least_s || seconds > 1e6) {
		snprintf(err, size, "--%s: '%s' is no time of at least %g s; expected " UNITS_TIME, name, value,
			 least_s);
		return -1;
	}
	*ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int set(struct worker_options *worker, int id, const struct options *options, char *err, size_t size)
{
	const char *value = options->value;
	double number;

	switch (id) {
	case ROW_NATS:
		worker->store.broker.servers = value;
		return 0;
	case ROW_CLUSTER:
		worker->store.cluster = value;
		return 0;
	case ROW_REPLICAS:
		if (units__number(value, &number) || (number != 1 && number != 3 && number != 5)) {
			snprintf(err, size, "--replicas: '%s' is not 1, 3 or 5", value);
			return -1;
		}
		worker->store.replicas = (int)number;
		return 0;
	case ROW_OUTPUT:
		worker->output = value;
		return 0;
	case ROW_STDOUT:
		worker->to_stdout = true;
		return 0;
	case ROW_LATE_AFTER:
		return set_time(value, options->name, 0.1, &worker->job.late_after_ns, err, size);
	case ROW_JUDGE_AGAIN:
		return set_time(value, options->name, 0, &worker->job.again_ns, err, size);
	case ROW_IDLE:
		return set_time(value, options->name, 1, &worker->idle_ns, err, size);
	case ROW_LEASE:
		if (set_time(value, options->name, 1, &worker->expire_ns, err, size))
			return -1;
		worker->renew_ns = worker->expire_ns / 5;
		return 0;
	case ROW_MEMORY:
		if (units__bytes(value, &number) || number < MEMORY_LEAST) {
			snprintf(err, size, "--memory: '%s' is no size of at least 16M", value);
			return -1;
		}
		worker->job.memory_bytes = (size_t)number;
		return 0;
	case ROW_QUIET:
		log__init("vapro-worker", LOG_LEVEL_WARNING);
		return 0;
	case ROW_VERBOSE:
		log__init("vapro-worker", LOG_LEVEL_DEBUG);
		return 0;
	default:
		if (broker_rows__set(&worker->store.broker, id, value))
			return 0;
		snprintf(err, size, "unknown argument '%s'; --help lists the options", value);
		return -1;
	}
}

/* Returns 0, an exit code, or -1 where nothing is left to do. */
static int parse(struct worker_options *worker, int argc, char **argv)
{
	struct options options = command__options(&worker_command, argc, argv);
	const struct command *const commands[] = {&worker_command};
	char err[512];
	int id;

	while ((id = options__next(&options)) != OPTIONS_END) {
		switch (id) {
		case OPTIONS_HELP:
			command__help(&worker_command, options.value, stdout);
			return -1;
		case OPTIONS_ERROR:
			return EXIT_USAGE;
		case ROW_VERSION:
			puts("vapro-worker " VAPRO_VERSION);
			return -1;
		case ROW_COMPLETION:
			if (completion__print(options.value, "vapro-worker", commands, 1, stdout)) {
				fputs("vapro-worker: --completion needs a shell: " COMPLETION_SHELLS "\n", stderr);
				return EXIT_USAGE;
			}
			return -1;
		default:
			if (!set(worker, id, &options, err, sizeof(err)))
				break;
			fprintf(stderr, "vapro-worker: %s\n", err);
			return EXIT_USAGE;
		}
	}
	return 0;
}

/* Checks what options need of each other and of the machine. Returns 0 or an exit code. */
static int check(const struct worker_options *worker)
{
	struct stat status;
	char err[512];

	if (!worker->store.broker.servers) {
		fputs("vapro-worker: --nats URL is needed: the broker that vaprod --publish sends to; see --help\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (broker_options__check(&worker->store.broker, err, sizeof(err))) {
		fprintf(stderr, "vapro-worker: %s\n", err);
		return EXIT_USAGE;
	}
	if (worker->output &&
	    (stat(worker->output, &status) || !S_ISDIR(status.st_mode) || access(worker->output, W_OK))) {
		fprintf(stderr, "vapro-worker: --output: '%s' is no directory that can be written\n", worker->output);
		return EXIT_USAGE;
	}
	return 0;
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

int worker__main(int argc, char **argv, const volatile sig_atomic_t *stop)
{
	struct worker_options worker = {
	    .store = {.broker = {.name = "vapro-worker"}, .replicas = 1},
	    .job = {.late_after_ns = 10 * S, .again_ns = 60 * S, .memory_bytes = share_of_memory()},
	    .renew_ns = S,
	    .expire_ns = 5 * S,
	    .idle_ns = 600 * S,
	    .stop = stop,
	};
	char memory[32];
	int status;

	log__init("vapro-worker", LOG_LEVEL_INFO);
	status = parse(&worker, argc, argv);
	if (status < 0)
		return EXIT_OK;
	if (!status)
		status = check(&worker);
	if (status)
		return status;
	units__format_bytes(worker.job.memory_bytes, memory, sizeof(memory));
	log__info("a job holds at most %s (--memory)", memory);
	worker.to_stdout |= !worker.output;
	return worker__run(&worker) ? EXIT_FAILED : EXIT_OK;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro publish`: sends captures as the nodes that wrote them would have done while the job ran. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/log.h"
#include "base/units.h"
#include "broker/blocks.h"
#include "capture/capture.h"
#include "capture/capture_file.h"
#include "capture/file_kind.h"
#include "cli/broker_rows.h"
#include "cli/commands.h"
#include "cli/shared_rows.h"
#include "daemon/publishing.h"
#include "wire/split.h"

#define RING_BYTES (32ULL << 20) /* it is never full: a replay waits instead */
#define RING_MOST (16ULL << 20)
#define PATIENCE_S 30
#define SLEEP_NS 1000000L
#define S 1000000000ULL

/* A capture on its way. */
struct source {
	struct capture_file *file; /* NULL: it ended */
	struct wire_split *split;
	struct stream_clock clock;
	uint64_t time_ns; /* UTC of the latest event */
};

struct publish {
	struct wire_receiver receiver; /* first */
	struct publisher_options options;
	struct publisher *publisher;
	const char *cluster;
	char inbox[WIRE_TOKEN_MAX + 16];
	struct option_list files;
	int run;
	double speed, wait_s;
	struct source *sources;
	uint64_t begun_ns, first_ns; /* CLOCK_MONOTONIC, and UTC of the first event */
	bool cut;
};

/* clang-format off */
static const struct option_row rows[] = {
    BROKER_ROWS(struct publish, options.broker, "send to these brokers: " BROKER_FORM, OPTION_USUAL),
    BROKER_ALIASES("to", ""),
    {.type = OPTION_ALIAS, .name = "t", .letter = 't', .words = "broker", .level = OPTION_HIDDEN},
    CLUSTER_ROW(struct publish, cluster, "the cluster of the jobs (" PUBLISHING_CLUSTER ")"),
    RUN_ROW(struct publish, run, "of captures that hold"),
    {.type = OPTION_NUMBER, OPTION_AT(struct publish, speed), .name = "speed", .value = "N", .min = 1e-9, .max = 1e9,
     .expected = "a number above 0",
     .help = "N times as fast as it was recorded, 1 = as it was (as fast as the brokers take it)"},
    {.type = OPTION_SECONDS, OPTION_AT(struct publish, wait_s), .name = "wait", .min = 1e-3, .max = 1e9,
     .expected = "a time from 1ms on, " UNITS_TIME,
     .help = "give up where the brokers take nothing for so long (30s)"},
    OPTIONS_HELP_ROW,
};
/* clang-format on */

static int publish__main(int argc, char **argv);

const struct command publish_command = {
    .name = "publish",
    .program = "vapro publish",
    .summary = "send captures to a broker, as the nodes that wrote them would have done",
    .synopsis = "--broker URL [option]... CAPTURE...",
    .about = "Sends what captures hold (vaprod --capture FILE) to a broker, NATS JetStream, in the blocks that `vaprod "
	     "--broker` sends while a job runs; captures of several hosts together, in the order of their times. For "
	     "jobs that ran while no broker was there, and for tests. Each time is a run of its own for those who "
	     "read it.\n"
	     "Exit codes: 0 all is stored, 1 failure, or a capture was cut short and what it holds is stored, 2 usage.",
    .examples = "vapro publish --broker nats://broker node1.capture node2.capture\tone job on two hosts\n"
		"vapro publish --broker nats://broker --speed 10 run.capture\tten times as fast as it was recorded",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct publish, files),
    .main = publish__main,
};

static void take(struct wire_receiver *receiver, const struct wire_job *job, const char *host,
		 const struct block *block)
{
	blocks__put(((struct publish *)receiver)->publisher, job, host, block);
}

static void rest(long ns)
{
	nanosleep(&(struct timespec){.tv_sec = ns / (long)S, .tv_nsec = ns % (long)S}, NULL);
}

/*
 * Waits until the ring holds at most so much, or all is acknowledged (most_bytes 0). Returns false where the brokers
 * take nothing.
 */
static bool wait_for_room(struct publish *publish, uint64_t most_bytes)
{
	uint64_t before = 0, since_ns = mono_now();
	char text[512];

	for (;;) {
		struct publisher_totals totals = publisher__totals(publish->publisher);

		while (publisher__news(publish->publisher, text, sizeof(text)) == PUBLISHER_TROUBLE)
			log__warning("%s", text);
		if (totals.ring_bytes <= most_bytes)
			return true;
		if (totals.acknowledged != before)
			since_ns = mono_now();
		before = totals.acknowledged;
		if ((double)(mono_now() - since_ns) > publish->wait_s * 1e9)
			return false;
		rest(SLEEP_NS);
	}
}

/* Advances the time of a source, and packs what is due by it. */
static void advance(struct source *source, const struct stream_event *event)
{
	uint64_t utc_ns = source->time_ns;

	if (event->type == STREAM_CLOCK) {
		source->clock = event->clock;
		utc_ns = event->clock.utc_ns;
	} else if (event->type == STREAM_BUNDLE) {
		utc_ns = event->bundle.end_ns + source->clock.utc_ns - source->clock.mono_ns;
	} else if (event->type == STREAM_WINDOW) {
		utc_ns = event->window.end_ns;
	}
	if (utc_ns <= source->time_ns)
		return;
	source->time_ns = utc_ns;
	wire_split__tick(source->split, utc_ns);
}

static void end_source(struct source *source)
{
	stream__close(wire_split__sink(source->split));
	capture_file__close(source->file);
	source->file = NULL;
}

/* Sends a source's events up to a time, UTC. Returns 0 or a negative errno with a sentence in err. */
static int send_until(struct publish *publish, struct source *source, uint64_t utc_ns, char *err, size_t err_size)
{
	struct stream_event event;
	int ret = 1;

	while (ret > 0 && source->time_ns < utc_ns) {
		ret = capture_file__next(source->file, &event, err, err_size);
		if (ret <= 0)
			break;
		ret = stream__put(wire_split__sink(source->split), &event);
		if (ret) {
			snprintf(err, err_size, "%s", strerror(-ret));
			return ret;
		}
		advance(source, &event);
		ret = 1;
	}
	if (ret > 0)
		return 0;
	if (ret == -ENODATA) {
		log__warning("%s", err);
		publish->cut = true;
		ret = 0;
	}
	end_source(source);
	return ret;
}

/* Returns the source that is behind all others, NULL where all ended. */
static struct source *last_of(const struct publish *publish)
{
	struct source *last = NULL;

	for (size_t i = 0; i < publish->files.count; i++) {
		struct source *source = &publish->sources[i];

		if (source->file && (!last || source->time_ns < last->time_ns))
			last = source;
	}
	return last;
}

/* Waits until it is the time of an event. */
static void keep_pace(struct publish *publish, uint64_t utc_ns)
{
	double due;

	if (!publish->speed || !utc_ns)
		return;
	if (!publish->first_ns) {
		publish->first_ns = utc_ns;
		publish->begun_ns = mono_now();
	}
	due = (double)publish->begun_ns + (double)(utc_ns - publish->first_ns) / publish->speed;
	while ((double)mono_now() < due)
		rest(SLEEP_NS);
}

static int send_all(struct publish *publish, char *err, size_t err_size)
{
	struct source *source;
	int ret = 0;

	while (!ret && (source = last_of(publish))) {
		struct publisher_totals totals = publisher__totals(publish->publisher);

		keep_pace(publish, source->time_ns);
		log__progress("%llu blocks stored, %llu waiting", (unsigned long long)totals.acknowledged,
			      (unsigned long long)totals.waiting);
		ret = wait_for_room(publish, RING_MOST)
			  ? send_until(publish, source, source->time_ns + S, err, err_size)
			  : -ETIMEDOUT;
	}
	if (!ret && !wait_for_room(publish, 0))
		ret = -ETIMEDOUT;
	if (ret == -ETIMEDOUT)
		snprintf(err, err_size, "the brokers took nothing for %.0f s", publish->wait_s);
	log__progress(NULL);
	return ret;
}

/* Replies come where a node may read them: the brokers may permit that of its own host only. */
static int choose_inbox(struct publish *publish, char *err, size_t err_size)
{
	char token[WIRE_TOKEN_MAX + 1];
	struct capture_info info;
	int ret = capture__run_info(publish->files.items[0], publish->run, &info, err, err_size);

	wire__token(token, sizeof(token), info.host);
	snprintf(publish->inbox, sizeof(publish->inbox), PUBLISHING_INBOX "%s", token);
	publish->options.broker.inbox = publish->inbox;
	return ret;
}

/* Opens the captures. Returns 0 or a negative errno with a sentence in err. */
static int open_sources(struct publish *publish, char *err, size_t err_size)
{
	publish->sources = calloc(publish->files.count, sizeof(*publish->sources));
	if (!publish->sources) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < publish->files.count; i++) {
		struct source *source = &publish->sources[i];

		if (file_kind__expect(publish->files.items[i], FILE_KIND_CAPTURE, err, err_size))
			return -EINVAL;
		source->file = capture_file__open(publish->files.items[i], publish->run, err, err_size);
		if (!source->file)
			return -errno;
		source->split =
		    wire_split__new(publish->cluster, "", capture_file__tunables(source->file), &publish->receiver);
		if (!source->split) {
			snprintf(err, err_size, "out of memory");
			return -ENOMEM;
		}
	}
	return choose_inbox(publish, err, err_size);
}

static int run(struct publish *publish)
{
	struct publisher_totals totals;
	char err[512] = "";
	int ret = open_sources(publish, err, sizeof(err));

	if (!ret) {
		publish->publisher = publisher__new(&publish->options, err, sizeof(err));
		ret = publish->publisher ? send_all(publish, err, sizeof(err)) : -EINVAL;
	}
	if (publish->publisher) {
		totals = publisher__totals(publish->publisher);
		log__info("%llu blocks with %llu bytes are stored", (unsigned long long)totals.acknowledged,
			  (unsigned long long)totals.bytes);
		if (!ret && totals.dropped) {
			snprintf(err, sizeof(err), "%llu blocks were refused by the brokers",
				 (unsigned long long)totals.dropped);
			ret = -EIO;
		}
	}
	if (ret)
		log__error("%s", err);
	for (size_t i = 0; publish->sources && i < publish->files.count; i++) {
		capture_file__close(publish->sources[i].file);
		wire_split__free(publish->sources[i].split);
	}
	free(publish->sources);
	publisher__free(publish->publisher);
	return ret || publish->cut ? EXIT_FAILED : EXIT_OK;
}

/* Whether the options are complete. Returns 0 or an exit code. */
static int check(const struct publish *publish)
{
	char err[400];

	if (!publish->options.broker.servers)
		return command__fail(&publish_command, EXIT_USAGE,
				     "--broker is needed: the broker's address, as nats://HOST");
	if (!publish->files.count)
		return command__fail(&publish_command, EXIT_USAGE, "a capture is needed; see --help");
	if (broker_options__check(&publish->options.broker, err, sizeof(err)))
		return command__fail(&publish_command, EXIT_USAGE, "--broker: %s", err);
	return 0;
}

static int publish__main(int argc, char **argv)
{
	struct publish publish = {.receiver.take = take,
				  .options = {.memory_bytes = RING_BYTES, .create = true},
				  .cluster = PUBLISHING_CLUSTER,
				  .run = RUN_OPTION_LAST,
				  .wait_s = PATIENCE_S};
	int code;

	publish.options.broker.name = "vapro publish";
	code = command__parse(&publish_command, &publish, argc, argv);
	if (!code)
		code = check(&publish);
	if (!code) {
		log__init("vapro publish", LOG_LEVEL_INFO);
		code = run(&publish);
	}
	option_list__clear(&publish.files);
	return code == COMMAND_DONE ? EXIT_OK : code;
}

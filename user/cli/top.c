// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/terminal.h"
#include "base/units.h"
#include "cli/broker_rows.h"
#include "daemon/daemon.h"
#include "query/status.h"
#include "top/broker_feed.h"
#include "top/feeds.h"
#include "top/layout.h"
#include "top/screen.h"

#define PATIENCE_NS 10000000000ULL /* for the first snapshot of plain text */
#define STEP_MS 250		   /* longest wait while there is no connection */

struct top_options {
	const char *socket;	      /* NULL: the default one */
	struct source_options source; /* a broker in place of a vaprod */
	double interval_s;
	uint32_t user; /* as in struct vapro_thread; 0: all */
	bool once, batch;
	int count; /* 0: no end */
};

/* Reads a user's name or number, as struct vapro_thread has it. */
static int read_user(void *member, const char *value, char *why, size_t why_size)
{
	const struct passwd *entry = getpwnam(value);
	uint32_t *user = member;
	unsigned long number;
	char *end;

	(void)why;
	(void)why_size;
	if (entry) {
		*user = entry->pw_uid + 1;
		return 0;
	}
	errno = 0;
	number = strtoul(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || number >= UINT32_MAX)
		return -EINVAL;
	*user = (uint32_t)number + 1;
	return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_STRING, OPTION_AT(struct top_options, socket), .name = "socket", .value = "PATH",
     .max = QUERY_PATH_MAX - 1, .noun = "path", .expected = "the path of a socket, or a directory",
     .help = "where vaprod is reached, as its --socket; all that run where it is a directory (" VAPRO_SOCKET ")"},
    {.type = OPTION_SECONDS, OPTION_AT(struct top_options, interval_s), .name = "interval", .letter = 'd',
     .min = STATUS_LEAST_MS * 1e-3, .max = STATUS_MOST_MS * 1e-3,
     .help = "time between two snapshots, 0.5 s or more (1)"},
    {.type = OPTION_CUSTOM, OPTION_AT(struct top_options, user), .name = "user", .letter = 'u', .value = "USER",
     .noun = "user", .expected = "the name or number of a user", .read = read_user,
     .help = "only the jobs of this user, by name or number"},
    {.type = OPTION_SWITCH, OPTION_AT(struct top_options, once), .name = "once", .letter = '1',
     .help = "print one snapshot as plain text and end"},
    {.type = OPTION_SWITCH, OPTION_AT(struct top_options, batch), .name = "batch", .letter = 'b',
     .help = "print snapshots as plain text, one after the other"},
    {.type = OPTION_INT, OPTION_AT(struct top_options, count), .name = "count", .letter = 'n', .value = "NUMBER",
     .min = 1, .max = INT32_MAX, .expected = "a number from 1 on",
     .help = "with --batch: end after so many snapshots"},
    OPTIONS_HELP_ROW,
    FROM_ROWS(struct top_options, source),
    JOB_ROW(struct top_options, source.job, "with --broker: only this job, as records name it (all)"),
};
/* clang-format on */

static int top__main(int argc, char **argv);

const struct command top_command = {
    .name = "top",
    .program = "vapro top",
    .summary = "watch jobs, ranks and slow regions live, in the terminal",
    .synopsis = "[option]...\n--broker URL [option]...",
    .about =
	"Shows what a running vaprod (or vapro run) knows at present: jobs and their ranks, how fast they are now, "
	"slow "
	"regions with cause and culprit, overhead, losses. Enter opens what is selected, h shows all keys. Users see "
	"their own jobs, root sees all. With --broker it shows jobs of many nodes: what workers publish about them, "
	"from "
	"the "
	"last ten minutes on.",
    .examples = "vapro top\tyour jobs on this node; root sees all jobs\n"
		"vapro top --once\tthe same as plain text\n"
		"vapro top --once --broker nats://broker\tjobs of many nodes",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = top__main,
};

/* Prints an error. Returns code. */
__attribute__((format(printf, 2, 3))) static int fail(int code, const char *format, ...)
{
	va_list arguments;

	fputs("vapro top: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return code;
}

/* Names a user; the name service is queried once for each, since it may be slow. */
static void user_name(uint32_t uid, char *name)
{
	static struct {
		uint32_t uid;
		char name[64];
		bool known;
	} users[64];
	size_t at = uid % 64;

	if (!users[at].known || users[at].uid != uid) {
		const struct passwd *entry = getpwuid(uid);

		users[at].uid = uid;
		users[at].known = true;
		snprintf(users[at].name, sizeof(users[at].name), "%s", entry ? entry->pw_name : "");
	}
	strcpy(name, users[at].name);
}

/* Where snapshots come from: the vaprods of this node, or a broker. */
struct input {
	struct feeds *feeds;
	struct broker_feed *broker; /* NULL: feeds */
};

static enum feed_state input__step(struct input *input)
{
	return input->broker ? broker_feed__step(input->broker, mono_now()) : feeds__step(input->feeds, mono_now());
}

static const char *input__why(const struct input *input)
{
	return input->broker ? broker_feed__why(input->broker) : feeds__why(input->feeds);
}

/* Says why there is no snapshot. Returns an exit code. */
static int report(const struct input *input, enum feed_state state)
{
	fail(0, "%s", *input__why(input) ? input__why(input) : "vaprod does not respond");
	return state == FEED_REFUSED ? EXIT_REFUSED : EXIT_FAILED;
}

/*
 * Waits until the input, or with `keys` the terminal, has something, for a while at most. A signal ends the wait.
 * Returns false where the terminal is gone.
 */
static bool wait_for(const struct input *input, bool keys)
{
	struct pollfd fds[1 + JOINED_PARTS] = {{.fd = keys ? STDIN_FILENO : -1, .events = POLLIN}};
	size_t count = input->broker ? 0 : feeds__fds(input->feeds, fds + 1);

	/* with several connections what one of them lacks may be given up soon */
	poll(fds, 1 + count, count == 1 ? 1000 : STEP_MS);
	return !(fds[0].revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Takes a snapshot over. Returns whether it could be read. */
static bool update(struct top_model *model, struct input *input)
{
	size_t size;
	const char *text = input->broker ? broker_feed__take(input->broker, &size) : feeds__take(input->feeds, &size);
	struct top_snapshot *snapshot = text ? top_snapshot__read(text, size, user_name) : NULL;

	if (!snapshot)
		return false;
	top_model__update(model, snapshot);
	return true;
}

static int print_batch(struct top_model *model, struct input *input, const struct top_options *options)
{
	uint64_t until_ns = mono_now() + PATIENCE_NS;
	int printed = 0;
	enum feed_state state;

	for (;;) {
		state = input__step(input);
		if (state == FEED_SNAPSHOT) {
			if (!update(model, input))
				return fail(EXIT_FAILED, "the response is not one of this version of vaprod");
			if (printed)
				putchar('\n');
			if (top_layout__text(model, stdout, terminal__width(STDOUT_FILENO)))
				return fail(EXIT_FAILED, "out of memory");
			if (fflush(stdout))
				return fail(EXIT_FAILED, "standard output: %s", strerror(errno));
			if (++printed == options->count)
				return EXIT_OK;
			continue;
		}
		if (state == FEED_REFUSED || (state == FEED_WAITING && (!printed || options->count)) ||
		    (!printed && mono_now() > until_ns))
			return report(input, state);
		wait_for(input, false);
	}
}

/* Takes over what the feed has. Returns whether the picture has changed. */
static bool refresh(struct top_model *model, struct input *input)
{
	bool fresh = input__step(input) == FEED_SNAPSHOT, good = !fresh || update(model, input);
	const char *notice = good ? input__why(input) : "the response is not one of this version of vaprod";

	if (strcmp(model->notice, notice)) {
		snprintf(model->notice, sizeof(model->notice), "%s", notice);
		fresh = true;
	}
	return fresh;
}

/* Draws the page. Returns 0 or -ENOMEM. */
static int draw(struct top_model *model, struct grid *grid)
{
	unsigned width, height;
	int error;

	screen__size(&width, &height);
	error = grid__resize(grid, width, height);
	if (error)
		return error;
	top_layout__draw(model, grid);
	screen__draw(grid);
	return 0;
}

/* Shows pages until the person quits, a signal comes, or the terminal is gone. Returns 0 or -ENOMEM. */
static int show(struct top_model *model, struct input *input)
{
	struct grid grid = {0};
	bool changed = true;
	int error = 0;

	while (!error && !model->quit && !screen__ended()) {
		uint32_t key;

		changed |= refresh(model, input);
		if (changed)
			error = draw(model, &grid);
		changed = false;
		if (!wait_for(input, true))
			break;
		while ((key = screen__key())) {
			changed = true;
			if (key != SCREEN_RESIZED)
				top_model__key(model, key);
		}
	}
	grid__free(&grid);
	return error;
}

static int run(const struct top_options *options)
{
	unsigned interval_ms = options->batch && options->count == 1 ? 0 : (unsigned)lround(options->interval_s * 1000);
	struct input input = {NULL, NULL};
	struct top_model model;
	char err[256];
	int code;

	if (options->source.broker.servers)
		input.broker = broker_feed__new(&options->source, interval_ms, VAPRO_VERSION);
	else
		input.feeds = feeds__new(options->socket ? options->socket : VAPRO_SOCKET, interval_ms);
	top_model__init(&model);
	model.only_user = options->user;
	if (!input.broker && !input.feeds)
		return fail(EXIT_FAILED, "out of memory");
	if (options->batch) {
		code = print_batch(&model, &input, options);
	} else {
		enum feed_state state = input__step(&input);
		int error;

		if (state == FEED_SNAPSHOT)
			update(&model, &input);
		if (screen__open(err, sizeof(err))) {
			code = fail(EXIT_FAILED, "%s", err);
		} else {
			error = show(&model, &input);
			screen__close();
			code = error ? fail(EXIT_FAILED, "%s", strerror(-error)) : EXIT_OK;
		}
	}
	top_model__clear(&model);
	feeds__free(input.feeds);
	broker_feed__free(input.broker);
	return code;
}

/* Checks what the options need of each other. Returns 0 or an exit code. */
static int check(const struct top_options *top)
{
	char err[SOURCE_ERR];

	if (broker_rows__check(&top->source, err, sizeof(err)))
		return fail(EXIT_USAGE, "%s", err);
	if (top->source.broker.servers ? top->socket != NULL : top->source.job != NULL)
		return fail(EXIT_USAGE, top->socket
					    ? "--socket and --broker exclude each other"
					    : "--job needs --broker URL: the brokers from which the job is read");
	if (top->count && !top->batch)
		return fail(EXIT_USAGE, "--count is for --batch");
	return 0;
}

static int top__main(int argc, char **argv)
{
	struct top_options top = {.source.broker.name = "vapro top", .interval_s = 1};
	int code = command__parse(&top_command, &top, argc, argv);

	if (top.once) {
		top.count = 1;
		top.batch = true;
	}
	if (!code)
		code = check(&top);
	if (!code)
		code = run(&top);
	return code == COMMAND_DONE ? EXIT_OK : code;
}

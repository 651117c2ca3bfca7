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
#include "query/status.h"
#include "top/feed.h"
#include "top/layout.h"
#include "top/screen.h"

#define PATIENCE_NS 10000000000ULL /* for the first snapshot of plain text */
#define STEP_MS 250		   /* longest wait while there is no connection */

enum { ROW_SOCKET = 1, ROW_INTERVAL, ROW_USER, ROW_ONCE, ROW_BATCH, ROW_COUNT };

static const struct option_row rows[] = {
    {"socket", "PATH", "where vaprod is reached, as its --socket; needed where several run (" VAPRO_SOCKET ")",
     ROW_SOCKET, 0},
    {"interval", "TIME", "time between two snapshots, 0.5 s or more (1)", ROW_INTERVAL, 'd'},
    {"user", "USER", "only the jobs of this user, by name or number", ROW_USER, 'u'},
    {"once", NULL, "print one snapshot as plain text and end", ROW_ONCE, '1'},
    {"batch", NULL, "print snapshots as plain text, one after the other", ROW_BATCH, 'b'},
    {"count", "NUMBER", "with --batch: end after so many snapshots", ROW_COUNT, 'n'},
    OPTIONS_HELP_ROW,
};

static int top__main(int argc, char **argv);

const struct command top_command = {
    .name = "top",
    .program = "vapro top",
    .summary = "watch jobs, ranks and slow regions live, in the terminal",
    .synopsis = "[option]...",
    .about =
	"Shows what a running vaprod (or vapro run) knows at present: jobs and their ranks, how fast they are now, "
	"slow "
	"regions with cause and culprit, overhead, losses. Enter opens what is selected, h shows all keys. Users see "
	"their own jobs, root sees all.",
    .examples = "vapro top\tyour jobs on this node; root sees all jobs\n"
		"vapro top --once\tthe same as plain text",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = top__main,
};

struct top_options {
	const char *socket;
	double interval_s;
	uint32_t user; /* as in struct vapro_thread; 0: all */
	bool batch;
	unsigned long count; /* 0: no end */
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

static bool parse_user(const char *text, uint32_t *user)
{
	const struct passwd *entry = getpwnam(text);
	unsigned long number;
	char *end;

	if (entry) {
		*user = entry->pw_uid + 1;
		return true;
	}
	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || number >= UINT32_MAX)
		return false;
	*user = (uint32_t)number + 1;
	return true;
}

static bool parse_count(const char *text, unsigned long *count)
{
	char *end;

	errno = 0;
	*count = strtoul(text, &end, 10);
	return !errno && end != text && !*end && *text != '-' && *count;
}

/* Says why there is no snapshot. Returns an exit code. */
static int report(const struct feed *feed, enum feed_state state)
{
	const char(*paths)[QUERY_PATH_MAX];
	int count = feed__several(feed, &paths);

	if (state != FEED_SEVERAL) {
		fail(0, "%s", *feed__why(feed) ? feed__why(feed) : "vaprod does not respond");
		return state == FEED_REFUSED ? EXIT_REFUSED : EXIT_FAILED;
	}
	fail(0, "%d vaprods are running; choose one:", count);
	for (int i = 0; i < count && i < QUERY_NAMED; i++)
		fprintf(stderr, "  --socket %.*s\n", (int)(strlen(paths[i]) - strlen(QUERY_STATUS)), paths[i]);
	return EXIT_USAGE;
}

/*
 * Waits until the feed, or with `keys` the terminal, has something, at most so long. A signal ends the wait. Returns
 * false where the terminal is gone.
 */
static bool wait_for(const struct feed *feed, bool keys, int most_ms)
{
	struct pollfd fds[] = {{.fd = feed__fd(feed), .events = POLLIN},
			       {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN}};

	poll(fds, 2, most_ms);
	return !(fds[1].revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Takes a snapshot over. Returns whether it could be read. */
static bool update(struct top_model *model, struct feed *feed)
{
	size_t size;
	const char *text = feed__take(feed, &size);
	struct top_snapshot *snapshot = top_snapshot__read(text, size, user_name);

	if (!snapshot)
		return false;
	top_model__update(model, snapshot);
	return true;
}

static int print_batch(struct top_model *model, struct feed *feed, const struct top_options *options)
{
	uint64_t until_ns = mono_now() + PATIENCE_NS;
	unsigned long printed = 0;
	enum feed_state state;

	for (;;) {
		state = feed__step(feed, mono_now());
		if (state == FEED_SNAPSHOT) {
			if (!update(model, feed))
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
		if (state == FEED_SEVERAL || state == FEED_REFUSED ||
		    (state == FEED_WAITING && (!printed || options->count)) || (!printed && mono_now() > until_ns))
			return report(feed, state);
		wait_for(feed, false, feed__fd(feed) < 0 ? STEP_MS : 1000);
	}
}

/* Takes over what the feed has. Returns whether the picture has changed. */
static bool refresh(struct top_model *model, struct feed *feed)
{
	bool fresh = feed__step(feed, mono_now()) == FEED_SNAPSHOT, good = !fresh || update(model, feed);
	const char *notice = good ? feed__why(feed) : "the response is not one of this version of vaprod";

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
static int show(struct top_model *model, struct feed *feed)
{
	struct grid grid = {0};
	bool changed = true;
	int error = 0;

	while (!error && !model->quit && !screen__ended()) {
		uint32_t key;

		changed |= refresh(model, feed);
		if (changed)
			error = draw(model, &grid);
		changed = false;
		if (!wait_for(feed, true, feed__fd(feed) < 0 ? STEP_MS : 1000))
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
	struct feed *feed = feed__new(
	    options->socket, options->batch && options->count == 1 ? 0 : (unsigned)lround(options->interval_s * 1000));
	struct top_model model;
	char err[256];
	int code;

	top_model__init(&model);
	model.only_user = options->user;
	if (!feed)
		return fail(EXIT_FAILED, "out of memory");
	if (options->batch) {
		code = print_batch(&model, feed, options);
	} else {
		enum feed_state state = feed__step(feed, mono_now());

		int error;

		if (state == FEED_SEVERAL) {
			code = report(feed, state);
		} else if (screen__open(err, sizeof(err))) {
			code = fail(EXIT_FAILED, "%s", err);
		} else {
			error = show(&model, feed);
			screen__close();
			code = error ? fail(EXIT_FAILED, "%s", strerror(-error)) : EXIT_OK;
		}
	}
	top_model__clear(&model);
	feed__free(feed);
	return code;
}

/* Takes an option's value. Returns what is expected in its place, or NULL. */
static const char *set(struct top_options *top, int id, const char *value)
{
	switch (id) {
	case ROW_SOCKET:
		top->socket = value;
		return *value && strlen(value) < QUERY_PATH_MAX ? NULL : "the path of a socket, or a directory";
	case ROW_INTERVAL:
		return !units__seconds(value, &top->interval_s) && top->interval_s * 1000 >= STATUS_LEAST_MS &&
			       top->interval_s * 1000 <= STATUS_MOST_MS
			   ? NULL
			   : "0.5 to 3600 seconds";
	case ROW_USER:
		return parse_user(value, &top->user) ? NULL : "the name or number of a user";
	case ROW_COUNT:
		return parse_count(value, &top->count) ? NULL : "a number from 1 on";
	case ROW_ONCE:
		top->count = 1;
		top->batch = true;
		return NULL;
	default:
		top->batch = true;
		return NULL;
	}
}

static int top__main(int argc, char **argv)
{
	struct options options = command__options(&top_command, argc, argv);
	struct top_options top = {.socket = VAPRO_SOCKET, .interval_s = 1};
	const char *expected;
	int id;

	while ((id = options__next(&options)) != OPTIONS_END) {
		if (id == OPTIONS_HELP)
			return command__help(&top_command, options.value, stdout);
		if (id == OPTIONS_ERROR)
			return EXIT_USAGE;
		if (id == OPTIONS_OPERAND)
			return fail(EXIT_USAGE, "no operand is expected, such as '%s'", options.value);
		expected = set(&top, id, options.value);
		if (expected)
			return fail(EXIT_USAGE, "--%s: '%s' is invalid; expected %s", options.name, options.value,
				    expected);
	}
	if (top.count && !top.batch)
		return fail(EXIT_USAGE, "--count is for --batch");
	return run(&top);
}

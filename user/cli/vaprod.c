// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon: a command line around daemon__run(). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/terminal.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/reload.h"
#include "daemon/daemon.h"
#include "probe/elf/reader.h"
#include "report/narrator.h"
#include "report/summary.h"

static volatile sig_atomic_t stop, reopen;
static bool had_terminal;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Handles SIGHUP of log rotation, or of a terminal that goes away: then the run ends as with SIGTERM. */
static void on_hangup(int number)
{
	int error = errno;

	(void)number;
	if (had_terminal && !has_terminal())
		stop = 1;
	else
		reopen = 1;
	errno = error;
}

static void handle_hangup(bool has_file)
{
	struct sigaction action = {.sa_handler = has_file ? on_hangup : on_signal}, before;
	bool ignored = !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN; /* nohup */

	had_terminal = !ignored && has_terminal();
	if (has_file || !ignored)
		sigaction(SIGHUP, &action, NULL);
}

/* Puts lines into the directory of logs that a service manager has made; else to standard output. */
static void choose_place(struct daemon_options *options)
{
	static char path[PATH_MAX];
	const char *logs = getenv("LOGS_DIRECTORY");

	if (logs && *logs == '/' && snprintf(path, sizeof(path), "%s/vapro.ndjson", logs) < (int)sizeof(path))
		options->output = path;
	else
		options->to_stdout = true;
}

/*
 * A person at a terminal reads sentences; NDJSON goes there only when it was requested. Progress beside NDJSON on one
 * terminal would tear it.
 */
static void choose_outputs(struct daemon_options *options)
{
	bool terminal = isatty(STDOUT_FILENO);

	if (options->dry_run) {
		options->output = "/dev/null";
		options->capture = NULL;
		options->metrics = NULL;
		options->to_stdout = false;
		options->publish = (struct publishing_options){0};
		return;
	}
	if (!options->output && !options->capture && !options->to_stdout && !terminal)
		choose_place(options);
	options->progress = !(terminal && options->to_stdout);
	if (!terminal || options->to_stdout)
		return;
	options->width = terminal__width(STDOUT_FILENO);
	options->summary = summary__new();
	if (log__prints(LOG_LEVEL_INFO))
		options->sentences = narrator__terminal(STDOUT_FILENO);
}

/*
 * Arrays of this size are mappings of their own, whose pages the kernel gets back when they are freed, and which grow
 * without a copy. In the heap each one that grew left a hole: half of its pages after some minutes of jobs that come
 * and go.
 */
#define OWN_MAPPING_BYTES (256 << 10)

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct command_line line = {.daemon = {.sentences = -1, .stop = &stop, .reopen = &reopen}};
	struct daemon_options *options = &line.daemon;
	struct reload reload = {argc, argv, &line};
	int status;

	reader__main(argc, argv);
	mallopt(M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
	status = command_line__parse(&line, &vaprod_command, argc, argv);
	if (status) {
		command_line__free(&line);
		return status == COMMAND_DONE ? EXIT_OK : status;
	}
	choose_outputs(options);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	handle_hangup(options->output != NULL);
	signal(SIGPIPE, SIG_IGN);
	options->service = true;
	options->reload = reload__read;
	options->reload_ctx = &reload;
	status = daemon__run(options);
	if (options->summary && status != EXIT_REFUSED && status != EXIT_USAGE)
		summary__print(options->summary, stdout, &(struct summary_options){.width = options->width});
	summary__free(options->summary);
	if (options->sentences >= 0)
		close(options->sentences);
	command_line__free(&line);
	return status;
}

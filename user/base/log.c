// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"

#include "base/terminal.h"
#include "base/wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MESSAGE_BYTES 2048
#define INDENT 2 /* of further lines on a terminal */

static struct {
	const char *program;
	enum log_level most;
	bool journal, progress; /* progress: a line of it is on the terminal */
} logger = {.program = "vapro", .most = LOG_LEVEL_INFO};

/* Priorities of sd-daemon(3), which are those of syslog(3). */
static const char *const priority[] = {
    [LOG_LEVEL_ERROR] = "<3>", [LOG_LEVEL_WARNING] = "<4>", [LOG_LEVEL_INFO] = "<6>", [LOG_LEVEL_DEBUG] = "<7>"};

/* JOURNAL_STREAM is inherited by every child of a unit: only its device and inode say whether stderr is the journal. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && !fstat(STDERR_FILENO, &status) &&
	       status.st_dev == device && status.st_ino == inode;
}

void log__init(const char *program, enum log_level most)
{
	logger.program = program;
	logger.most = most;
	logger.journal = is_journal();
}

bool log__prints(enum log_level level)
{
	return level <= logger.most;
}

void log__print(enum log_level level, const char *format, va_list arguments)
{
	char text[MESSAGE_BYTES], head[64];

	if (!log__prints(level))
		return;
	vsnprintf(text, sizeof(text), format, arguments);
	log__progress(NULL);
	snprintf(head, sizeof(head), "%s:", logger.program);
	/* a priority counts for one line of the journal */
	for (char *at = text, *end; at; at = end) {
		end = strchr(at, '\n');
		if (end)
			*end++ = '\0';
		if (*at && logger.journal)
			fprintf(stderr, "%s%s\n", priority[level], at);
		else if (*at && isatty(STDERR_FILENO))
			wrap__print(stderr, head, at, INDENT, terminal__width(STDERR_FILENO));
		else if (*at)
			fprintf(stderr, "%s %s\n", head, at);
	}
}

#define PRINT(level)                                                                                                   \
	va_list arguments;                                                                                             \
                                                                                                                       \
	va_start(arguments, format);                                                                                   \
	log__print(level, format, arguments);                                                                          \
	va_end(arguments)

void log__error(const char *format, ...)
{
	PRINT(LOG_LEVEL_ERROR);
}

void log__warning(const char *format, ...)
{
	PRINT(LOG_LEVEL_WARNING);
}

void log__info(const char *format, ...)
{
	PRINT(LOG_LEVEL_INFO);
}

void log__debug(const char *format, ...)
{
	PRINT(LOG_LEVEL_DEBUG);
}

void log__progress(const char *format, ...)
{
	va_list arguments;

	if (!format) {
		if (logger.progress)
			fputs("\r\033[K", stderr);
		logger.progress = false;
		return;
	}
	if (!log__prints(LOG_LEVEL_INFO) || !isatty(STDERR_FILENO))
		return;
	logger.progress = true;
	fprintf(stderr, "\r%s: ", logger.program);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("\033[K", stderr);
}

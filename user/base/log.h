/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages for people, on standard error, by level. A message is one line, "PROGRAM: text"; where standard error is
 * the journal (JOURNAL_STREAM names its file), the priority of sd-daemon(3) replaces the program's name, as in
 * "<4>text". The functions print from one thread only, and a message that cannot be written is lost.
 */
#ifndef VAPRO_LOG_H
#define VAPRO_LOG_H

#include <stdarg.h>
#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERROR,   /* the run ends, or its result is incomplete */
	LOG_LEVEL_WARNING, /* something is not observed, or not as requested; the most with --quiet */
	LOG_LEVEL_INFO,	   /* the most by default; with it the progress on a terminal */
	LOG_LEVEL_DEBUG,   /* the most with --verbose; includes what libbpf says */
};

/* Sets the program's name, which must outlive all messages, and the highest level that is printed. */
void log__init(const char *program, enum log_level most);

/* Returns whether messages of a level are printed. */
bool log__prints(enum log_level level);

/* Print a message, without a newline at its end. */
__attribute__((format(printf, 1, 2))) void log__error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log__warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log__info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log__debug(const char *format, ...);
__attribute__((format(printf, 2, 0))) void log__print(enum log_level level, const char *format, va_list arguments);

/* Shows a line on a terminal, at LOG_LEVEL_INFO, until the next message or progress replaces it. NULL removes it. */
__attribute__((format(printf, 1, 2))) void log__progress(const char *format, ...);

#endif

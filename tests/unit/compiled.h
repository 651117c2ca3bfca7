/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Libraries and programs that a test compiles itself, in a directory that is removed after it. */
#ifndef COMPILED_H
#define COMPILED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static char directory[] = "/tmp/vapro-compiled-XXXXXX";

/* Group setup of cmocka: makes the directory. */
static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

/* Group teardown of cmocka: removes the directory with what is in it. */
static int remove_directory(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

/* Writes the path of a file of the directory. */
static void path_of(const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", directory, name);
}

/* Compiles C source to a file of the directory; the options may name other files of it as libraries. */
static void compile(const char *text, const char *name, const char *options)
{
	char command[512];
	FILE *compiler;

	snprintf(command, sizeof(command), "cd %s && cc -x c - -x none -o %s %s", directory, name, options);
	compiler = popen(command, "w");
	assert_non_null(compiler);
	assert_true(fputs(text, compiler) >= 0);
	assert_int_equal(pclose(compiler), 0);
}

#endif

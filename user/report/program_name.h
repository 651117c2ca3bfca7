/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What people call a program: its executable, or the script that an interpreter runs. */
#ifndef VAPRO_PROGRAM_NAME_H
#define VAPRO_PROGRAM_NAME_H

#include <stddef.h>

#define PROGRAM_NAME_MAX 128

/*
 * Writes the name of a program to buf, of PROGRAM_NAME_MAX bytes: the path of its executable, shortened in the middle;
 * of an interpreter its base name, and the script or module by the command line, whose words are joined by blanks.
 * command: NULL: unknown. Returns buf.
 */
char *program_name(const char *exe, const char *command, char *buf);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/interferer_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_FILE "memfd:"

/* Reads the base name of a process's first argument; "" where there is none. */
static void read_name(pid_t pid, char name[INTERFERER_NAME_SIZE])
{
	char path[40], argument[256];
	const char *base;
	ssize_t got;
	int file;

	*name = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	got = read(file, argument, sizeof(argument) - 1);
	close(file);
	if (got <= 0)
		return;
	argument[got] = '\0';
	base = strrchr(argument, '/');
	snprintf(name, INTERFERER_NAME_SIZE, "%.*s", INTERFERER_NAME_SIZE - 1, base && base[1] ? base + 1 : argument);
}

void interferer_names__replace(struct interferer_names *names, pid_t pid, char comm[INTERFERER_NAME_SIZE])
{
	size_t at = (size_t)pid & (INTERFERER_NAMES - 1);

	if (strncmp(comm, MEMORY_FILE, strlen(MEMORY_FILE)) || pid <= 0)
		return;
	if (names->known[at].pid != pid || strncmp(names->known[at].comm, comm, INTERFERER_NAME_SIZE)) {
		names->known[at].pid = pid;
		memcpy(names->known[at].comm, comm, INTERFERER_NAME_SIZE);
		read_name(pid, names->known[at].name);
	}
	if (names->known[at].name[0])
		memcpy(comm, names->known[at].name, INTERFERER_NAME_SIZE);
}

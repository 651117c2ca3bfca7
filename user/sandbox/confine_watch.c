// SPDX-License-Identifier: GPL-2.0-or-later
#include "sandbox/confine_watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void confine_watch__note(struct confine_watch *watch, const char *stat)
{
	unsigned long long user = 0, system = 0;
	char state = '?';

	sscanf(stat, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user, &system);
	/* a wait for a file system is either, by how far it can be interrupted */
	watch->silent = (state == 'S' || state == 'D') && user + system == watch->used ? watch->silent + 1 : 0;
	watch->used = user + system;
}

unsigned int confine_watch__look(struct confine_watch *watch, pid_t pid, int64_t now_ms)
{
	char path[64], text[1024] = "", *after;
	ssize_t got;
	int fd;

	if (now_ms < watch->looked_ms + CONFINE_WATCH_LOOK_MS)
		return watch->silent;
	watch->looked_ms = now_ms;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	after = strrchr(text, ')'); /* the name before it may hold anything */
	confine_watch__note(watch, after ? after + 1 : "");
	return watch->silent;
}

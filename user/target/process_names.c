// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/process_names.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns whether root alone can have written a file or directory. */
static bool is_roots(int fd, mode_t kind)
{
	struct stat status;

	return !fstat(fd, &status) && (status.st_mode & S_IFMT) == kind && !status.st_uid &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens the file of a job, which root alone can have written. -1: there is none. */
static int open_file(const char *directory, const char *id)
{
	int at, fd;

	/* an id is a user's text: it names no other directory */
	if (!id[0] || id[0] == '.' || strchr(id, '/'))
		return -1;
	at = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return -1;
	fd = is_roots(at, S_IFDIR) ? openat(at, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	close(at);
	if (fd >= 0 && !is_roots(fd, S_IFREG)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool process_names__read(const char *directory, const char *id, uid_t uid, struct job_names *names)
{
	char text[JOB_NAMES_FILE_MAX + 1];
	int fd = open_file(directory, id);
	ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	return job_names__parse(text, uid, names);
}

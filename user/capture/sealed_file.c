// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written < 0 && errno != EINTR)
			return -errno;
		data += written > 0 ? written : 0;
		size -= written > 0 ? (size_t)written : 0;
	}
	return fsync(fd) ? -errno : 0;
}

/* Whether a file may be replaced: what is no regular file, as a device or a link, is not this command's to remove. */
static bool replaceable(const char *path)
{
	struct stat status;

	return lstat(path, &status) || S_ISREG(status.st_mode);
}

int sealed_file__replace(const char *path, const uint8_t *data, size_t size)
{
	char *beside = NULL;
	int fd, error;

	if (!replaceable(path))
		return -EINVAL;
	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(beside, O_CLOEXEC); /* with mode 0600 */
	error = fd < 0 ? -errno : write_all(fd, data, size);
	if (fd >= 0 && close(fd) && !error)
		error = -errno;
	if (!error && rename(beside, path))
		error = -errno;
	if (error && fd >= 0)
		unlink(beside);
	free(beside);
	return error;
}

/* Opens a regular file that others cannot have written. Returns its descriptor, or -1 with a sentence in why. */
static int open_file(const char *path, size_t most, struct stat *status, char *why, size_t why_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, status))
		snprintf(why, why_size, "%s", strerror(errno));
	else if (!S_ISREG(status->st_mode))
		snprintf(why, why_size, "it is no regular file");
	else if (status->st_mode & (S_IWGRP | S_IWOTH))
		snprintf(why, why_size, "others than its owner can write it");
	else if (status->st_size <= 0 || (uint64_t)status->st_size > most)
		snprintf(why, why_size, "it has %lld bytes: a profile has some, and at most %zu",
			 (long long)status->st_size, most);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Reads up to *size bytes; *size becomes their number. Returns 0 or a negative errno. */
static int read_all(int fd, uint8_t *data, size_t *size)
{
	size_t most = *size;
	ssize_t got = 1;

	for (*size = 0; *size < most && got > 0; *size += got > 0 ? (size_t)got : 0)
		got = read(fd, data + *size, most - *size);
	return got < 0 ? -errno : 0;
}

int sealed_file__read(const char *path, size_t most, uint8_t **data, size_t *size, char *why, size_t why_size)
{
	struct stat status;
	int fd = open_file(path, most, &status, why, why_size), error = 0;

	*data = NULL;
	*size = 0;
	if (fd < 0)
		return -EINVAL;
	*size = (size_t)status.st_size;
	*data = malloc(*size);
	error = *data ? read_all(fd, *data, size) : -ENOMEM;
	if (error) {
		snprintf(why, why_size, "%s", strerror(-error));
		free(*data);
		*data = NULL;
	}
	close(fd);
	return error;
}

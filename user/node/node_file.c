// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/node_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIND "node" /* of checkpoint: see archive__seal() */

static const size_t file_most = 32UL << 20, memory_most = 64UL << 20; /* bytes */

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

/* Writes the bytes to a new file and moves it to its place; the new file is removed where that fails. */
static int replace(const char *path, const uint8_t *data, size_t size)
{
	char *beside = NULL;
	int fd, error;

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

/* Whether a file may be replaced: what is no regular file, as a device or a link, is not this command's to remove. */
static bool replaceable(const char *path)
{
	struct stat status;

	return lstat(path, &status) || S_ISREG(status.st_mode);
}

int node_file__write(const char *path, struct node_run *run, char *err, size_t err_size)
{
	struct archive *archive;
	uint8_t *data = NULL;
	size_t size = 0;
	int error;

	if (!replaceable(path)) {
		snprintf(err, err_size, "%s cannot be written: it is no regular file", path);
		return -EINVAL;
	}
	archive = archive__new();
	error = archive ? 0 : -ENOMEM;
	if (!error) {
		node_run__archive(archive, run);
		data = archive__seal(archive, KIND, &size);
		error = data ? replace(path, data, size) : archive__error(archive);
	}
	if (error)
		snprintf(err, err_size, "%s cannot be written: %s", path, strerror(-error));
	free(data);
	archive__free(archive);
	return error;
}

int node_file__parse(const uint8_t *data, size_t size, struct node_run **run, char *err, size_t err_size)
{
	struct archive *archive = archive__unseal(data, size, KIND, memory_most);
	int error = -ENOMEM;

	*run = node_run__empty();
	if (archive && *run) {
		node_run__archive(archive, *run);
		archive__end(archive);
		error = archive__error(archive);
	}
	if (error) {
		snprintf(err, err_size, "%s", archive && *run ? archive__why(archive) : "out of memory");
		node_run__free(*run);
		*run = NULL;
	}
	archive__free(archive);
	return error;
}

/* Opens a regular file that others cannot have written. Returns its descriptor, or -1 with a sentence in err. */
static int open_file(const char *path, struct stat *status, char *err, size_t err_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, status))
		snprintf(err, err_size, "%s", strerror(errno));
	else if (!S_ISREG(status->st_mode))
		snprintf(err, err_size, "it is no regular file");
	else if (status->st_mode & (S_IWGRP | S_IWOTH))
		snprintf(err, err_size, "others than its owner can write it");
	else if (status->st_size <= 0 || (uint64_t)status->st_size > file_most)
		snprintf(err, err_size, "it has %lld bytes: a profile has some, and at most %zu",
			 (long long)status->st_size, file_most);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int node_file__read(const char *path, struct node_run **run, char *err, size_t err_size)
{
	char why[256] = "out of memory";
	struct stat status;
	uint8_t *data = NULL;
	size_t size = 0;
	ssize_t got = 0;
	int error = -EINVAL, fd = open_file(path, &status, why, sizeof(why));

	*run = NULL;
	if (fd < 0)
		goto cleanup;
	error = -ENOMEM;
	data = malloc((size_t)status.st_size);
	if (!data)
		goto cleanup;
	while (size < (size_t)status.st_size && (got = read(fd, data + size, (size_t)status.st_size - size)) > 0)
		size += (size_t)got;
	error = got < 0 ? -errno : 0;
	if (error)
		snprintf(why, sizeof(why), "%s", strerror(-error));
	else
		error = node_file__parse(data, size, run, why, sizeof(why));
cleanup:
	if (error)
		snprintf(err, err_size, "%s is no profile of a node: %s", path, why);
	if (fd >= 0)
		close(fd);
	free(data);
	return error;
}

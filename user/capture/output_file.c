/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/output_file.h"

#define MEMORY_DEVICES 1 /* the major number of /dev/null and /dev/full */
#define NULL_DEVICE 3
#define FULL_DEVICE 7

static bool names_descriptor(const char *path)
{
	return !strcmp(path, "/dev/stdout") || !strcmp(path, "/dev/stderr") || !strncmp(path, "/dev/fd/", 8);
}

/* Returns 0 or the errno that refuses this kind of file. */
static int check_kind(int fd, const struct stat *status)
{
	if (S_ISREG(status->st_mode) || S_ISFIFO(status->st_mode))
		return 0;
	if (S_ISDIR(status->st_mode))
		return EISDIR;
	if (S_ISCHR(status->st_mode)) {
		unsigned int device = minor(status->st_rdev);

		if (isatty(fd))
			return 0;
		if (major(status->st_rdev) == MEMORY_DEVICES && (device == NULL_DEVICE || device == FULL_DEVICE))
			return 0;
	}
	return ENODEV;
}

int output_file__open(const char *path, enum output_file_mode mode, mode_t permissions, struct stat *status)
{
	int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, error, fd;

	if (!names_descriptor(path))
		flags |= O_NOFOLLOW;
	if (mode == OUTPUT_FILE_APPEND)
		flags |= O_APPEND;
	fd = open(path, flags, permissions);
	if (fd < 0)
		return -1;
	error = fstat(fd, status) ? errno : check_kind(fd, status);
	/* only now is it certain that this is a regular file */
	if (!error && mode == OUTPUT_FILE_REPLACE && S_ISREG(status->st_mode) && ftruncate(fd, 0))
		error = errno;
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

const char *output_file__reason(int error)
{
	switch (error) {
	case ELOOP:
		return "it is a symbolic link, which is not followed";
	case ENXIO:
		return "it is a FIFO that no process reads, or a socket";
	case ENODEV:
		return "it is a device";
	case EISDIR:
		return "it is a directory";
	case EEXIST:
		return "the file that is there is no capture, and is left as it is";
	case ESPIPE:
		return "it is a FIFO: a capture needs a file";
	case EBADMSG:
		return "the file that is there has something else than zstd frames, and is left as it is";
	case ENOTSUP:
		return "lines are packed (.zst) into files only";
	default:
		return strerror(error);
	}
}

bool output_file__read(int fd, off_t offset, void *bytes, size_t size)
{
	char path[64];
	ssize_t got;
	int reader;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (reader < 0)
		return false;
	got = pread(reader, bytes, size, offset);
	close(reader);
	return got == (ssize_t)size;
}

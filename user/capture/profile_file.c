// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/profile_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/sealed_file.h"

#define KIND "run" /* of checkpoint: see archive__seal() */
#define BEGIN "vapro-checkpoint/"

static const size_t memory_most = 256UL << 20; /* bytes of a profile that is read */

int profile_file__write(const char *path, struct profile *profile, char *err, size_t err_size)
{
	struct archive *archive = archive__new();
	uint8_t *data = NULL;
	size_t size = 0;
	int error = archive ? 0 : -ENOMEM;

	if (!error) {
		profile__archive(archive, profile);
		data = archive__seal(archive, KIND, &size);
		error = data ? 0 : archive__error(archive);
	}
	if (!error)
		error = size > PROFILE_FILE_BYTES_MOST ? -EFBIG : sealed_file__replace(path, data, size);
	if (error)
		snprintf(err, err_size, "%s cannot be written: %s", path, strerror(-error));
	free(data);
	archive__free(archive);
	return error;
}

/* Makes a profile of the bytes of a file. Returns 0, or a negative errno with a sentence in why. */
static int parse(const uint8_t *data, size_t size, struct profile **profile, char *why, size_t why_size)
{
	struct archive *archive = archive__unseal(data, size, KIND, memory_most);
	int error = -ENOMEM;

	*profile = profile__new(false);
	if (archive && *profile) {
		profile__archive(archive, *profile);
		archive__end(archive);
		error = archive__error(archive);
	}
	if (error) {
		snprintf(why, why_size, "%s", archive && *profile ? archive__why(archive) : "out of memory");
		profile__free(*profile);
		*profile = NULL;
	}
	archive__free(archive);
	return error;
}

int profile_file__read(const char *path, struct profile **profile, char *err, size_t err_size)
{
	char why[256] = "";
	uint8_t *data;
	size_t size;
	int error = sealed_file__read(path, PROFILE_FILE_BYTES_MOST, &data, &size, why, sizeof(why));

	*profile = NULL;
	if (!error)
		error = parse(data, size, profile, why, sizeof(why));
	if (error)
		snprintf(err, err_size, "%s is no profile of a run: %s", path, why);
	free(data);
	return error;
}

bool profile_file__is(const char *path)
{
	char begin[sizeof(BEGIN)] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool is = fd >= 0 && read(fd, begin, sizeof(BEGIN) - 1) == (ssize_t)sizeof(BEGIN) - 1 && !strcmp(begin, BEGIN);

	if (fd >= 0)
		close(fd);
	return is;
}

static int is_profile(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), end = strlen(PROFILE_FILE_END);

	return entry->d_name[0] != '.' && length > end && !strcmp(entry->d_name + length - end, PROFILE_FILE_END);
}

/* Frees the first `count` texts of a list, and the list. */
static void free_names(char **names, int count)
{
	for (int i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}

int profile_file__list(const char *directory, char ***names)
{
	struct dirent **entries = NULL;
	int count = scandir(directory, &entries, is_profile, alphasort);
	bool ok = true;

	*names = NULL;
	if (count < 0)
		return -errno;
	*names = calloc((size_t)count + 1, sizeof(**names));
	for (int i = 0; i < count; i++) {
		if (*names)
			(*names)[i] = strdup(entries[i]->d_name);
		ok = ok && *names && (*names)[i];
		free(entries[i]);
	}
	free(entries);
	if (ok && *names)
		return count;
	free_names(*names, count);
	*names = NULL;
	return -ENOMEM;
}

/* What of a directory stays. */
struct bound {
	size_t files, files_most;
	uint64_t bytes, bytes_most;
};

/* Counts a file, and removes it where it is beyond the bound. Returns 0 or a negative errno. */
static int bound_file(struct bound *bound, const char *directory, const char *name)
{
	struct stat status;
	char *path;
	int error = 0;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	if (!lstat(path, &status) && S_ISREG(status.st_mode)) {
		bound->bytes += (uint64_t)status.st_size;
		if ((++bound->files > bound->files_most || bound->bytes > bound->bytes_most) && unlink(path))
			error = -errno;
	}
	free(path);
	return error;
}

int profile_file__bound(const char *directory, size_t files_most, uint64_t bytes_most)
{
	struct bound bound = {.files_most = files_most, .bytes_most = bytes_most};
	char **names;
	int count = profile_file__list(directory, &names), error = count < 0 ? count : 0;

	/* the newest first: what they leave room for stays */
	for (int i = count - 1; !error && i >= 0; i--)
		error = bound_file(&bound, directory, names[i]);
	free_names(names, count);
	return error;
}

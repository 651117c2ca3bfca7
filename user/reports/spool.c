// SPDX-License-Identifier: GPL-2.0-or-later
#include "reports/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "records/record_table.h"

#define NAME_SIZE 48
#define RECORDS ".ndjson"
#define OWNER ".job"

static const char *name_of(uint64_t key, const char *ending, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "%016llx%s", (unsigned long long)key, ending);
	return name;
}

int spool__open(int spool, const struct spool_job *job)
{
	char name[NAME_SIZE], text[SPOOL_IDENTITY_SIZE + 16];
	int fd =
	    openat(spool, name_of(job->key, OWNER, name), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int length = snprintf(text, sizeof(text), "%u %s\n", job->uid, job->identity), error;

	if (fd < 0)
		return -errno;
	errno = 0;
	error = write(fd, text, (size_t)length) == length ? 0 : errno ? -errno : -ENOSPC;
	close(fd);
	return error;
}

/* Returns whether there is room for a record: maps, which are most of all bytes, give way first. */
static bool has_room(const struct spool_job *job, uint64_t all, const char *line, size_t size)
{
	uint64_t most =
	    record_table__type_of(line) == RECORD_OBJECT_heatmap ? SPOOL_JOB_BYTES : SPOOL_JOB_BYTES * 4 / 3;

	return job->bytes + size < most && all + size < SPOOL_BYTES;
}

bool spool__add(int spool, struct spool_job *job, uint64_t *all, const char *line, size_t size)
{
	char name[NAME_SIZE];
	int fd = -1;
	ssize_t wrote = -1;
	struct stat status;

	if (has_room(job, *all, line, size))
		fd = openat(spool, name_of(job->key, RECORDS, name),
			    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && !fstat(fd, &status)) {
		wrote = write(fd, line, size);
		/* a part of a line is none */
		if (wrote >= 0 && (size_t)wrote < size && ftruncate(fd, status.st_size))
			wrote = -1;
	}
	if (fd >= 0)
		close(fd);
	if (wrote < 0 || (size_t)wrote < size) {
		job->dropped++;
		return false;
	}
	job->bytes += size;
	*all += size;
	return true;
}

FILE *spool__read(int spool, const struct spool_job *job)
{
	char name[NAME_SIZE];
	int fd = openat(spool, name_of(job->key, RECORDS, name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

void spool__remove(int spool, const struct spool_job *job)
{
	char name[NAME_SIZE];

	unlinkat(spool, name_of(job->key, RECORDS, name), 0);
	unlinkat(spool, name_of(job->key, OWNER, name), 0);
}

/* Reads whose job a key is. Returns whether that is known. */
static bool read_owner(int spool, struct spool_job *job)
{
	char name[NAME_SIZE], text[SPOOL_IDENTITY_SIZE + 16], *blank, *end;
	int fd = openat(spool, name_of(job->key, OWNER, name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	unsigned long uid;
	struct stat status;

	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	uid = strtoul(text, &blank, 10);
	if (blank == text || *blank != ' ' || uid >= UINT32_MAX || !blank[1])
		return false;
	end = blank + 1;
	job->uid = (uid_t)uid;
	snprintf(job->identity, sizeof(job->identity), "%s", end);
	if (!fstatat(spool, name_of(job->key, RECORDS, name), &status, AT_SYMLINK_NOFOLLOW))
		job->bytes = (uint64_t)status.st_size;
	return true;
}

void spool__each(int spool, bool (*found)(void *ctx, const struct spool_job *job), void *ctx)
{
	int fd = openat(spool, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	bool more = list;
	struct dirent *entry;

	if (!list && fd >= 0)
		close(fd);
	while (more && (entry = readdir(list))) {
		struct spool_job job = {.left = true};
		char *end;

		if (entry->d_name[0] == '.')
			continue;
		job.key = strtoull(entry->d_name, &end, 16);
		if (!strcmp(end, OWNER) && read_owner(spool, &job)) {
			more = found(ctx, &job);
		} else if (!strcmp(end, RECORDS)) {
			char name[NAME_SIZE];
			struct stat status;

			if (fstatat(spool, name_of(job.key, OWNER, name), &status, AT_SYMLINK_NOFOLLOW))
				unlinkat(spool, entry->d_name, 0); /* of no one */
		} else {
			unlinkat(spool, entry->d_name, 0);
		}
	}
	if (list)
		closedir(list);
}

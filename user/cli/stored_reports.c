// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/stored_reports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/job_names.h"

#define PATH_SIZE (STORE_NAME_SIZE + 4096)

struct stored_reports {
	struct store_report *items;
	size_t count, capacity;
	const char *directory;
};

/* Adds the reports of a user. Returns 0 or -errno. */
static int add_user(struct stored_reports *reports, int jobs, uid_t uid)
{
	int directory = report_store__look(jobs, uid), error;

	if (directory < 0)
		return directory == -ENOENT ? 0 : directory;
	error = report_store__list(directory, uid, &reports->items, &reports->count, &reports->capacity);
	close(directory);
	return error;
}

/* Adds those of all users. */
static void add_all(struct stored_reports *reports, int jobs)
{
	int fd = openat(jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!list && fd >= 0)
		close(fd);
	while (list && (entry = readdir(list))) {
		char *end;
		unsigned long uid = strtoul(entry->d_name, &end, 10);

		if (end != entry->d_name && !*end && uid < UINT32_MAX)
			add_user(reports, jobs, (uid_t)uid);
	}
	if (list)
		closedir(list);
}

struct stored_reports *stored_reports__list(const char *directory, char *err, size_t err_size)
{
	struct stored_reports *reports = calloc(1, sizeof(*reports));
	char path[4096];
	int jobs, error = 0;

	if (!reports) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	reports->directory = directory;
	snprintf(path, sizeof(path), "%s/jobs", directory);
	jobs = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (jobs < 0)
		error = errno == ENOENT ? 0 : -errno;
	else if (geteuid())
		error = add_user(reports, jobs, geteuid());
	else
		add_all(reports, jobs);
	if (jobs >= 0)
		close(jobs);
	report_store__sort(reports->items, reports->count);
	if (!error)
		return reports;
	snprintf(err, err_size, "%.3900s: %s", path, strerror(-error));
	stored_reports__free(reports);
	return NULL;
}

void stored_reports__free(struct stored_reports *reports)
{
	if (!reports)
		return;
	free(reports->items);
	free(reports);
}

const struct store_report *stored_reports__items(const struct stored_reports *reports, size_t *count)
{
	*count = reports->count;
	return reports->items;
}

void stored_reports__path(const struct stored_reports *reports, const struct store_report *report, enum store_file file,
			  char *path, size_t size)
{
	snprintf(path, size, "%s/jobs/%u/%s%s", reports->directory, report->uid, report->name, store_ending[file]);
}

const struct store_report *stored_reports__find(const struct stored_reports *reports, const char *job)
{
	for (size_t i = 0; i < reports->count; i++) {
		char identity[STORE_NAME_SIZE];

		if (!strcmp(job, reports->items[i].name) ||
		    job_names__match(job, report_store__identity(reports->items[i].name, identity)))
			return &reports->items[i];
	}
	return NULL;
}

FILE *stored_reports__open(const struct stored_reports *reports, const struct store_report *report,
			   enum store_file file)
{
	char path[PATH_SIZE];
	struct stat status;
	FILE *opened = NULL;
	int fd;

	stored_reports__path(reports, report, file, path, sizeof(path));
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode))
		opened = fdopen(fd, "r");
	else if (fd >= 0)
		errno = EINVAL;
	if (fd >= 0 && !opened)
		close(fd);
	return opened;
}

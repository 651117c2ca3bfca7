// SPDX-License-Identifier: GPL-2.0-or-later
#include "reports/report_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"

#define NOGROUP 65534
#define TEMPORARY ".vapro-" /* begin of the name of a file that is not whole yet */
#define FILE_NAME_SIZE (STORE_NAME_SIZE + 32)

const char *const store_ending[STORE_FILES] = {
    [STORE_RECORDS] = ".ndjson", [STORE_PAGE] = ".html", [STORE_TEXT] = ".txt"};

/* Whether two directories, the inner one open by its path alone, are of one mount; no file system is called for that.
 */
static bool same_mount(int outer, int inner)
{
	struct statx one, two;
	unsigned mask = STATX_MNT_ID;

	if (statx(outer, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &one) ||
	    statx(inner, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &two))
		return false;
	if (one.stx_dev_major != two.stx_dev_major || one.stx_dev_minor != two.stx_dev_minor)
		return false;
	return !(one.stx_mask & two.stx_mask & STATX_MNT_ID) || one.stx_mnt_id == two.stx_mnt_id;
}

/*
 * Opens a directory in another one, by a name without slashes: no link is followed, and no other file system is
 * entered. -errno. RestrictSUIDSGID= of a unit allows no openat2(), which would do all of it.
 */
static int open_below(int at, const char *name)
{
	int path = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd;

	if (path < 0)
		return -errno;
	if (same_mount(at, path)) {
		fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	} else {
		fd = -EXDEV;
	}
	close(path);
	return fd;
}

/* Makes and opens a directory of root's. -errno. */
static int open_own(int at, const char *name, mode_t mode)
{
	struct stat status;
	int fd;

	if (mkdirat(at, name, 0700) && errno != EEXIST)
		return -errno;
	fd = open_below(at, name);
	if (fd < 0)
		return fd;
	if (!fstat(fd, &status) && status.st_uid == geteuid() && !fchmod(fd, mode))
		return fd;
	close(fd);
	return -EPERM;
}

int report_store__open(const char *directory, int *jobs, int *spool)
{
	int at, error = 0;

	*jobs = *spool = -1;
	if (mkdir(directory, 0755) && errno != EEXIST)
		return -errno;
	at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	*jobs = open_own(at, "jobs", 0771);
	*spool = open_own(at, "spool", 0700);
	close(at);
	if (*jobs < 0 || *spool < 0) {
		error = *jobs < 0 ? *jobs : *spool;
		if (*jobs >= 0)
			close(*jobs);
		if (*spool >= 0)
			close(*spool);
		*jobs = *spool = -1;
	}
	return error;
}

/*
 * Takes the rights of a user, with some groups. The real user stays root: the user can neither signal nor stop this
 * process. Returns 0 or -errno.
 */
static int become(uid_t uid, size_t count, const gid_t *groups)
{
	if (setresuid((uid_t)-1, 0, (uid_t)-1) || setgroups(count, groups) ||
	    setresgid((gid_t)-1, uid ? NOGROUP : 0, (gid_t)-1) || setresuid((uid_t)-1, uid, (uid_t)-1))
		return -errno;
	/* the change of the user has taken both back */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return 0;
}

int report_store__look(int jobs, uid_t uid)
{
	struct stat status;
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%u", uid);
	fd = open_below(jobs, name);
	if (fd >= 0 && (fstat(fd, &status) || status.st_uid != uid)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Makes a user's directory, as the user, by the right of root's group. */
static int make_directory(int jobs, uid_t uid)
{
	const gid_t root = 0;
	char name[16];
	int error = become(uid, 1, &root);

	snprintf(name, sizeof(name), "%u", uid);
	if (!error && mkdirat(jobs, name, 0700) && errno != EEXIST)
		error = -errno;
	return error;
}

int report_store__enter(int jobs, uid_t uid)
{
	int error = become(uid, 0, NULL), fd = error ? error : report_store__look(jobs, uid);

	if (fd != -ENOENT)
		return fd;
	error = make_directory(jobs, uid);
	fd = become(uid, 0, NULL);
	error = error ? error : fd;
	return error ? error : report_store__look(jobs, uid);
}

void report_store__name(const char *identity, unsigned number, char name[STORE_NAME_SIZE])
{
	size_t used = 0;
	char *colon;

	/* an identity has harmless characters only, but a slash or a point in front would be none in a file's name */
	for (; *identity && used + 16 < STORE_NAME_SIZE; identity++)
		name[used++] = (*identity >= 'a' && *identity <= 'z') || (*identity >= 'A' && *identity <= 'Z') ||
				       (*identity >= '0' && *identity <= '9') || strchr("._-@:", *identity)
				   ? *identity
				   : '_';
	name[used] = '\0';
	if (!used || name[0] == '.')
		name[0] = '_';
	colon = strchr(name, ':');
	if (colon)
		*colon = '-';
	if (number > 1)
		snprintf(name + used, STORE_NAME_SIZE - used, "~%u", number);
}

char *report_store__identity(const char *name, char *buf)
{
	char *dash;

	snprintf(buf, STORE_NAME_SIZE, "%s", name);
	buf[strcspn(buf, "~")] = '\0';
	dash = strchr(buf, '-');
	if (dash)
		*dash = ':';
	return buf;
}

static void file_name(const char *name, enum store_file file, char text[FILE_NAME_SIZE])
{
	snprintf(text, FILE_NAME_SIZE, "%.*s%s", STORE_NAME_SIZE - 1, name, store_ending[file]);
}

static void temporary_name(enum store_file file, char text[FILE_NAME_SIZE])
{
	snprintf(text, FILE_NAME_SIZE, TEMPORARY "%d%s", getpid(), store_ending[file]);
}

bool report_store__has(int directory, const char *name)
{
	char text[FILE_NAME_SIZE];
	struct stat status;

	for (int file = 0; file < STORE_FILES; file++) {
		file_name(name, (enum store_file)file, text);
		if (!fstatat(directory, text, &status, AT_SYMLINK_NOFOLLOW))
			return true;
	}
	return false;
}

FILE *report_store__begin(int directory, const char *name, enum store_file file)
{
	char text[FILE_NAME_SIZE];
	FILE *out;
	int fd;

	(void)name;
	temporary_name(file, text);
	unlinkat(directory, text, 0);
	fd = openat(directory, text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (fd >= 0 && !out)
		close(fd);
	return out;
}

int report_store__end(int directory, const char *name, enum store_file file, FILE *out, int error)
{
	char temporary[FILE_NAME_SIZE], text[FILE_NAME_SIZE];

	temporary_name(file, temporary);
	file_name(name, file, text);
	errno = 0;
	if (fclose(out) && !error)
		error = errno ? -errno : -EIO;
	if (!error && renameat(directory, temporary, directory, text))
		error = -errno;
	if (error)
		unlinkat(directory, temporary, 0);
	return error;
}

/* Finds the ending of a file's name; STORE_FILES: it is none of a report. */
static int ending_of(const char *text, size_t *length)
{
	for (int file = 0; file < STORE_FILES; file++) {
		size_t all = strlen(text), ending = strlen(store_ending[file]);

		if (all <= ending || all - ending >= STORE_NAME_SIZE || strcmp(text + all - ending, store_ending[file]))
			continue;
		*length = all - ending;
		return file;
	}
	return STORE_FILES;
}

/* Notes a file of a report. Returns 0 or -ENOMEM. */
static int note(int directory, uid_t uid, const char *text, size_t first, struct store_report **reports, size_t *count,
		size_t *capacity)
{
	struct store_report *report = NULL;
	struct stat status;
	size_t length;
	int file = ending_of(text, &length);

	if (text[0] == '.' || file == STORE_FILES || fstatat(directory, text, &status, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(status.st_mode))
		return 0;
	/* the files of a report mostly follow each other */
	for (size_t i = *count; !report && i > first; i--) {
		if (!strncmp((*reports)[i - 1].name, text, length) && !(*reports)[i - 1].name[length])
			report = &(*reports)[i - 1];
	}
	if (!report) {
		if (grow(reports, capacity, *count + 1, sizeof(**reports)))
			return -ENOMEM;
		report = &(*reports)[(*count)++];
		*report = (struct store_report){.uid = uid};
		memcpy(report->name, text, length);
	}
	report->files |= 1U << file;
	report->bytes += (uint64_t)status.st_blocks * 512;
	if ((uint64_t)status.st_mtime > report->time_s)
		report->time_s = (uint64_t)status.st_mtime;
	return 0;
}

int report_store__list(int directory, uid_t uid, struct store_report **reports, size_t *count, size_t *capacity)
{
	size_t first = *count, seen = 0;
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!list) {
		error = -errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	while (!error && seen++ < STORE_REPORTS_MOST && (entry = readdir(list)))
		error = note(directory, uid, entry->d_name, first, reports, count, capacity);
	closedir(list);
	return error;
}

static int compare(const void *a, const void *b)
{
	const struct store_report *one = a, *other = b;

	if (one->time_s != other->time_s)
		return one->time_s > other->time_s ? -1 : 1;
	return strcmp(one->name, other->name);
}

void report_store__sort(struct store_report *reports, size_t count)
{
	if (count)
		qsort(reports, count, sizeof(*reports), compare);
}

/* What a user has. */
struct total {
	uid_t uid;
	uint64_t bytes;
	size_t next; /* behind the oldest report that may be this user's and is not removed */
};

/* Sums up by user what is not removed. Returns the totals, to be freed, or NULL. */
static struct total *sum_up(const struct store_report *reports, size_t count, const bool *removed, size_t *users,
			    uint64_t *all)
{
	struct total *totals = calloc(count + 1, sizeof(*totals));

	*users = 0;
	*all = 0;
	for (size_t i = 0; totals && i < count; i++) {
		size_t at = 0;

		if (removed[i])
			continue;
		while (at < *users && totals[at].uid != reports[i].uid)
			at++;
		if (at == *users)
			totals[(*users)++] = (struct total){.uid = reports[i].uid, .next = count};
		totals[at].bytes += reports[i].bytes;
		*all += reports[i].bytes;
	}
	return totals;
}

size_t report_store__choose(const struct store_report *reports, size_t count, uint64_t old_s, uint64_t bytes,
			    bool *removed)
{
	size_t chosen = 0, users;
	struct total *totals;
	uint64_t all;

	for (size_t i = 0; i < count; i++) {
		removed[i] = reports[i].time_s < old_s;
		chosen += removed[i];
	}
	totals = bytes ? sum_up(reports, count, removed, &users, &all) : NULL;
	while (totals && all > bytes) {
		struct total *most = totals;

		for (size_t i = 1; i < users; i++) {
			if (totals[i].bytes > most->bytes)
				most = &totals[i];
		}
		while (most->next > 0 && (removed[most->next - 1] || reports[most->next - 1].uid != most->uid))
			most->next--;
		if (!most->next)
			break;
		removed[--most->next] = true;
		most->bytes -= reports[most->next].bytes;
		all -= reports[most->next].bytes;
		chosen++;
	}
	free(totals);
	return chosen;
}

unsigned report_store__remove(int directory, const char *name)
{
	unsigned removed = 0;
	char text[FILE_NAME_SIZE];

	for (int file = 0; file < STORE_FILES; file++) {
		file_name(name, (enum store_file)file, text);
		removed += !unlinkat(directory, text, 0);
	}
	return removed;
}

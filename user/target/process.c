// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/process_private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shortened.h"
#include "target/translator.h"

#define MAPS_MAX (8 << 20)

char *process__read_file(const char *path, size_t limit, size_t *length)
{
	size_t size = 16384, used = 0;
	char *text = malloc(size + 1), *more;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd < 0 || !text)
		goto fail;
	while ((n = read(fd, text + used, size - used)) > 0) {
		used += (size_t)n;
		if (used < size)
			continue;
		if (size >= limit)
			break;
		size *= 2;
		more = realloc(text, size + 1);
		if (!more)
			goto fail;
		text = more;
	}
	if (n < 0)
		goto fail;
	close(fd);
	text[used] = '\0';
	*length = used;
	return text;
fail:
	n = errno;
	if (fd >= 0)
		close(fd);
	free(text);
	errno = (int)n;
	return NULL;
}

const char *process__read_after_name(pid_t pid, char **text)
{
	char path[64], *after;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	*text = process__read_file(path, 4096, &length);
	after = *text ? strrchr(*text, ')') : NULL;
	return after ? after + 1 : *text ? "" : NULL;
}

int process__read_stat(struct process *process)
{
	unsigned long long start = 0;
	const char *after;
	int parent = 0;
	char *text;

	after = process__read_after_name(process->pid, &text);
	if (!after)
		return errno == ENOENT ? -ESRCH : -errno;
	sscanf(after, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &parent,
	       &start);
	free(text);
	process->parent = parent;
	process->start_time = start;
	return 0;
}

static int read_status(struct process *process)
{
	char path[64], *text, *line;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/status", process->pid);
	text = process__read_file(path, 65536, &length);
	if (!text)
		return errno == ENOENT ? -ESRCH : -errno;
	line = strstr(text, "\nTracerPid:");
	process->traced = line && atoi(line + 11) != 0;
	line = strstr(text, "\nSeccomp:");
	process->filtered = line && atoi(line + 9) == 2;
	line = strstr(text, "\nUid:");
	process->uid = line ? (uid_t)strtoul(line + 5, NULL, 10) : (uid_t)-1;
	process->owner = process__owner(process->pid, process->uid);
	free(text);
	return 0;
}

/* Reads a number and the character after it, which must be the given one; moves *at behind both. */
static bool take_number(char **at, int base, char after, uint64_t *value)
{
	char *end;

	*value = strtoull(*at, &end, base);
	if (!isxdigit((unsigned char)**at) || end == *at || *end != after)
		return false;
	*at = end + 1;
	return true;
}

/* Returns the blank before the protection of a line of /proc/PID/maps; NULL for a line of another form. */
static char *protection_of(char *line)
{
	char *at = strchr(line, ' '); /* START-END rwxp OFFSET MAJOR:MINOR INODE  PATH */

	return at && strnlen(at, 6) == 6 && at[5] == ' ' ? at : NULL;
}

/* Reads a line of /proc/PID/maps, of whatever protection. False for a line of another form. */
static bool parse_line(char *line, struct process_mapping *mapping)
{
	uint64_t major, minor;
	char *at = protection_of(line);

	if (!at)
		return false;
	if (!take_number(&line, 16, '-', &mapping->start) || !take_number(&line, 16, ' ', &mapping->end) ||
	    line != at + 1)
		return false;
	at += 6;
	if (!take_number(&at, 16, ' ', &mapping->offset) || !take_number(&at, 16, ':', &major) ||
	    !take_number(&at, 16, ' ', &minor) || !take_number(&at, 10, ' ', &mapping->inode))
		return false;
	mapping->device = makedev(major, minor);
	mapping->path = at + strspn(at, " ");
	return true;
}

bool process__parse_mapping(char *line, struct process_mapping *mapping)
{
	const char *at = protection_of(line);

	return at && at[3] == 'x' && parse_line(line, mapping);
}

static bool is_same_file(const struct process_mapping *a, const struct process_mapping *b)
{
	return a->device == b->device && a->inode == b->inode;
}

/* Whether an executable mapping may stand for a file's code: anonymous memory, or huge pages by its name. */
static bool may_be_moved(const struct process_mapping *code)
{
	return !code->path[0] || !strncmp(code->path, "[anon", 5) || !strncmp(code->path, "/memfd:", 7) ||
	       strstr(code->path, "huge");
}

/*
 * Notes whether the code in a mapping replaces that of the file whose other parts surround it, as tools that put code
 * into huge pages do. below, above: the mappings next to it, of whatever protection; NULL: there is none.
 */
static void note_moved(struct process *process, const struct process_mapping *code, const struct process_mapping *below,
		       const struct process_mapping *above)
{
	bool is_first;

	if (process->moved_count == PROCESS_MOVED_MOST || !above || above->start != code->end || !above->inode ||
	    is_same_file(code, above))
		return;
	/* code that is the first part of its file has another part of it above only */
	is_first = above->offset == code->end - code->start;
	if (!is_first && (!below || below->end != code->start || !is_same_file(below, above)))
		return;
	if (!process__is_moved(process, above->device, above->inode))
		process->moved[process->moved_count++] = *above;
}

/* Looks at the lines next to an executable mapping, which may stand for a file's code. before: NULL: there is none. */
static void look_beside(struct process *process, const struct process_mapping *code, char *before, char *after)
{
	struct process_mapping below, above;
	bool has_below, has_above;
	char *end;

	if (!may_be_moved(code))
		return;
	end = strchr(after, '\n');
	if (end)
		*end = '\0';
	has_above = parse_line(after, &above);
	has_below = before && parse_line(before, &below);
	note_moved(process, code, has_below ? &below : NULL, has_above ? &above : NULL);
	if (end)
		*end = '\n';
}

int process__reread_mappings(struct process *process)
{
	char path[64], *text, *line, *next, *before = NULL;
	struct process_mapping *mappings = NULL, *more;
	size_t length, count = 0, room = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", process->pid);
	text = process__read_file(path, MAPS_MAX, &length);
	if (!text)
		return errno == ENOENT || errno == ESRCH ? -ESRCH : -errno;
	process->moved_count = 0;
	for (line = text; (next = strchr(line, '\n')); before = line, line = next + 1) {
		*next = '\0';
		if (count == room) {
			room = room ? room * 2 : 64;
			more = realloc(mappings, room * sizeof(*mappings));
			if (!more) {
				process->moved_count = 0; /* their paths are of this text */
				free(mappings);
				free(text);
				return -ENOMEM;
			}
			mappings = more;
		}
		if (!process__parse_mapping(line, &mappings[count]))
			continue;
		look_beside(process, &mappings[count], before, next + 1);
		count++;
	}
	free(process->mappings);
	free(process->text);
	process->mappings = mappings;
	process->mapping_count = count;
	process->text = text;
	return 0;
}

void process__read_exe(pid_t pid, char *buf, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
}

const char *process__translator(pid_t pid)
{
	char exe[512];

	process__read_exe(pid, exe, sizeof(exe));
	return translator__of_path(exe);
}

void process__read_command(pid_t pid, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	while (n > 0 && !buf[n - 1])
		n--;
	buf[n > 0 ? n : 0] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if (!buf[i])
			buf[i] = ' ';
}

void process__user_name(uid_t uid, char *buf, size_t size)
{
	FILE *list = fopen("/etc/passwd", "re");
	struct passwd *user;

	buf[0] = '\0';
	while (list && !*buf && (user = fgetpwent(list)))
		if (user->pw_uid == uid)
			snprintf(buf, size, "%s", user->pw_name);
	if (list)
		fclose(list);
}

static int failed(pid_t pid, int status, char *err, size_t err_size)
{
	if (status == -ESRCH)
		snprintf(err, err_size, "process %d does not exist (any more)", pid);
	else
		snprintf(err, err_size, "process %d cannot be read: %s", pid, strerror(-status));
	return status;
}

int process__glance(pid_t pid, struct process **out, char *err, size_t err_size)
{
	struct process *process = calloc(1, sizeof(*process));
	int status;

	*out = NULL;
	if (!process) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	process->pid = pid;
	process->rank = -1;
	process->read_ns = mono_now();
	status = process__reread_mappings(process);
	if (status) {
		process__free(process);
		return failed(pid, status, err, err_size);
	}
	*out = process;
	return 0;
}

static const char *find_translator(const struct process *process)
{
	const char *name = translator__of_path(process->exe);

	for (size_t i = 0; i < process->mapping_count && !name; i++)
		if (process->mappings[i].inode)
			name = translator__of_path(process->mappings[i].path);
	return name;
}

int process__complete(struct process *process, char *err, size_t err_size)
{
	int status;

	process__read_exe(process->pid, process->exe, sizeof(process->exe));
	shortened(process->exe, process->name, sizeof(process->name));
	process->translator = find_translator(process);
	status = process__read_stat(process);
	if (!status)
		status = read_status(process);
	if (status)
		return failed(process->pid, status, err, err_size);
	process__read_environment(process);
	return 0;
}

int process__read(pid_t pid, struct process **out, char *err, size_t err_size)
{
	int status = process__glance(pid, out, err, err_size);

	if (status)
		return status;
	status = process__complete(*out, err, err_size);
	if (status) {
		process__free(*out);
		*out = NULL;
	}
	return status;
}

void process__free(struct process *process)
{
	if (!process)
		return;
	free(process->mappings);
	free(process->text);
	free(process);
}

const struct process_mapping *process__mapping_at(const struct process *process, uint64_t address)
{
	size_t low = 0, high = process->mapping_count;

	while (low < high) { /* the kernel lists mappings in ascending order */
		size_t middle = low + (high - low) / 2;
		const struct process_mapping *mapping = &process->mappings[middle];

		if (address < mapping->start)
			high = middle;
		else if (address >= mapping->end)
			low = middle + 1;
		else
			return mapping;
	}
	return NULL;
}

const struct process_mapping *process__mapping_named(const struct process *process, const char *glob)
{
	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct process_mapping *mapping = &process->mappings[i];
		const char *base = strrchr(mapping->path, '/');

		if (mapping->inode && base && !fnmatch(glob, base + 1, 0))
			return mapping;
	}
	return NULL;
}

const struct process_mapping *process__executable(const struct process *process)
{
	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct process_mapping *mapping = &process->mappings[i];

		if (mapping->inode && !strcmp(mapping->path, process->exe))
			return mapping;
	}
	return NULL;
}

enum process_mpi process__mpi(const struct process *process, const struct process_mapping **library)
{
	const struct process_library *of = &process->library;
	const struct process_mapping *found = NULL;

	for (size_t i = 0; of->mpi != PROCESS_NO_MPI && i < process->mapping_count && !found; i++)
		if (process->mappings[i].inode == of->inode && process->mappings[i].device == of->device)
			found = &process->mappings[i];
	if (library)
		*library = found;
	/* where a part of its code was replaced, the calls that lie in the rest would be half of the truth */
	return found && !process__is_moved(process, of->device, of->inode) ? of->mpi : PROCESS_NO_MPI;
}

bool process__is_moved(const struct process *process, uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < process->moved_count; i++)
		if (process->moved[i].inode == inode && process->moved[i].device == device)
			return true;
	return false;
}

const char *process__moved_mpi(const struct process *process)
{
	const struct process_library *library = &process->library;

	for (size_t i = 0; library->mpi != PROCESS_NO_MPI && i < process->moved_count; i++)
		if (process->moved[i].inode == library->inode && process->moved[i].device == library->device)
			return process->moved[i].path;
	return NULL;
}

bool process__same_rank(const struct process *a, const struct process *b)
{
	return a->rank >= 0 && a->rank == b->rank && a->uid == b->uid && !strcmp(a->job, b->job);
}

bool process__child_of_rank(const struct process *process, bool (*has_mpi)(void *ctx, struct process *above), void *ctx)
{
	pid_t pid = process->parent;
	bool child = false;

	for (int depth = 0; pid > 1 && depth < 16 && process->rank >= 0 && !child; depth++) {
		struct process above = {.pid = pid};
		char err[128];

		if (process__complete(&above, err, sizeof(err)) || !process__same_rank(process, &above) ||
		    process__reread_mappings(&above))
			break;
		pid = above.parent;
		child = pid && has_mpi(ctx, &above);
		free(above.mappings);
		free(above.text);
	}
	return child;
}

void process__map_file(const struct process *process, const struct process_mapping *mapping, char *buf, size_t size)
{
	snprintf(buf, size, "/proc/%d/map_files/%llx-%llx", process->pid, (unsigned long long)mapping->start,
		 (unsigned long long)mapping->end);
}

size_t process__threads(pid_t pid, pid_t *tids, size_t max)
{
	char path[64];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		int tid = process__number(entry->d_name);

		if (tid <= 0)
			continue;
		if (count < max)
			tids[count] = tid;
		count++;
	}
	closedir(dir);
	return count;
}

bool process__descends(pid_t pid, pid_t ancestor)
{
	for (int depth = 0; pid > 1 && depth < 64; depth++) {
		struct process process = {.pid = pid};

		if (pid == ancestor)
			return true;
		if (process__read_stat(&process))
			return false;
		pid = process.parent;
	}
	return false;
}

bool process__is_same(const struct process *process)
{
	struct process now = {.pid = process->pid};

	return !process__read_stat(&now) && now.start_time == process->start_time;
}

double process__age(const struct process *process)
{
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (double)boot.tv_sec + (double)boot.tv_nsec * 1e-9 -
	       (double)process->start_time / (double)sysconf(_SC_CLK_TCK);
}

uint64_t process__io_calls(pid_t pid)
{
	char path[64], *text, *line;
	size_t length;
	uint64_t calls = 0;

	snprintf(path, sizeof(path), "/proc/%d/io", pid);
	text = process__read_file(path, 4096, &length);
	if (!text)
		return 0;
	if ((line = strstr(text, "syscr:")))
		calls += strtoull(line + 6, NULL, 10);
	if ((line = strstr(text, "syscw:")))
		calls += strtoull(line + 6, NULL, 10);
	free(text);
	return calls;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ENVIRONMENT_MAX (1 << 20)
#define MAPS_MAX (8 << 20)

/* Reads a file of /proc up to limit bytes; NUL-terminated. NULL with errno set. */
static char *read_file(const char *path, size_t limit, size_t *length)
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

static int read_stat(struct process *process)
{
	char path[64], *text, *after;
	size_t length;
	unsigned long long start = 0;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", process->pid);
	text = read_file(path, 4096, &length);
	if (!text)
		return errno == ENOENT ? -ESRCH : -errno;
	after = strrchr(text, ')'); /* the name may hold anything */
	if (after)
		sscanf(after + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		       &parent, &start);
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
	text = read_file(path, 65536, &length);
	if (!text)
		return errno == ENOENT ? -ESRCH : -errno;
	line = strstr(text, "\nTracerPid:");
	process->traced = line && atoi(line + 11) != 0;
	line = strstr(text, "\nSeccomp:");
	process->filtered = line && atoi(line + 9) == 2;
	line = strstr(text, "\nUid:");
	process->uid = line ? (uid_t)strtoul(line + 5, NULL, 10) : (uid_t)-1;
	free(text);
	return 0;
}

/* Value of NAME=value in an environment block, or NULL. */
static const char *variable(const char *block, size_t length, const char *name)
{
	size_t name_length = strlen(name);

	for (const char *at = block; at < block + length; at += strlen(at) + 1)
		if (!strncmp(at, name, name_length) && at[name_length] == '=')
			return at + name_length + 1;
	return NULL;
}

/* A whole decimal number in [0, INT_MAX], or -1. */
static int number(const char *text)
{
	char *end;
	long value;

	if (!text || !isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	value = strtol(text, &end, 10);
	return errno || *end || value > INT_MAX ? -1 : (int)value;
}

static int first_number(const char *block, size_t length, const char *const *names)
{
	for (; *names; names++) {
		int value = number(variable(block, length, *names));

		if (value >= 0)
			return value;
	}
	return -1;
}

/* Only what is safe in a report: an identity, not text. */
static void copy_identity(char *to, size_t size, const char *from)
{
	size_t i = 0;

	for (; from && *from && i + 1 < size; from++)
		to[i++] = isalnum((unsigned char)*from) || strchr("._-@:", *from) ? *from : '_';
	to[i] = '\0';
}

static const char *const rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",    "PMI_RANK",
					     "MV2_COMM_WORLD_RANK",  "SLURM_PROCID", NULL};

/* The nearest ancestor that is no rank itself: wrappers between launcher and rank inherit the rank's environment. */
static pid_t launcher_of(const struct process *process)
{
	struct process at = {.pid = process->parent};

	for (int depth = 0; at.pid > 1 && depth < 16; depth++) {
		char path[64], *block;
		size_t length;
		int rank;

		snprintf(path, sizeof(path), "/proc/%d/environ", at.pid);
		block = read_file(path, ENVIRONMENT_MAX, &length);
		rank = block ? first_number(block, length, rank_variables) : -1;
		free(block);
		if (rank != process->rank || read_stat(&at))
			break;
		at = (struct process){.pid = at.parent};
	}
	return at.pid;
}

/*
 * A user's text, and yet read here and not in the confined reader: there is no format in it to be
 * parsed, only a search for a few names in at most ENVIRONMENT_MAX bytes that end in a NUL. What is
 * taken of it is a number that must be whole and in range, one comparison, or an identity of which
 * only harmless characters are copied into a field of fixed size. The same holds of /proc/PID/stat,
 * status and maps, which the kernel writes: a process chooses its name and its paths alone.
 */
static void read_environment(struct process *process)
{
	static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS",
					    NULL};
	const char *value;
	char path[64], *block;
	size_t length;
	int world;

	process->rank = -1;
	snprintf(process->job_kind, sizeof(process->job_kind), "none");
	snprintf(path, sizeof(path), "/proc/%d/environ", process->pid);
	block = read_file(path, ENVIRONMENT_MAX, &length);
	if (!block)
		goto out;
	process->rank = first_number(block, length, rank_variables);
	world = first_number(block, length, sizes);
	process->world_size = world > 0 ? (uint32_t)world : 0;
	value = variable(block, length, "VAPRO");
	process->opted_out = value && !strcmp(value, "off");
	if ((value = variable(block, length, "SLURM_JOB_ID"))) {
		snprintf(process->job_kind, sizeof(process->job_kind), "slurm");
		copy_identity(process->job_id, sizeof(process->job_id), value);
		copy_identity(process->job_step, sizeof(process->job_step), variable(block, length, "SLURM_STEP_ID"));
	} else if ((value = variable(block, length, "PMIX_NAMESPACE"))) {
		snprintf(process->job_kind, sizeof(process->job_kind), "pmix");
		copy_identity(process->job_id, sizeof(process->job_id), value);
	} else if ((value = variable(block, length, "PMI_JOBID"))) {
		snprintf(process->job_kind, sizeof(process->job_kind), "mpi");
		copy_identity(process->job_id, sizeof(process->job_id), value);
	}
	free(block);
out:
	if (!process->job_id[0] && process->rank >= 0) { /* MPICH's launcher names no job: its own process does */
		snprintf(process->job_kind, sizeof(process->job_kind), "mpi");
		snprintf(process->job_id, sizeof(process->job_id), "launcher-%d", launcher_of(process));
	}
	if (!process->job_id[0])
		snprintf(process->job_id, sizeof(process->job_id), "pid-%d", process->pid);
	snprintf(process->job, sizeof(process->job), "%s:%s%s%s", process->job_kind, process->job_id,
		 process->job_step[0] ? "." : "", process->job_step);
}

int process__reread_mappings(struct process *process)
{
	char path[64], *text, *line, *next;
	struct process_mapping *mappings = NULL, *more;
	size_t length, count = 0, room = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", process->pid);
	text = read_file(path, MAPS_MAX, &length);
	if (!text)
		return errno == ENOENT || errno == ESRCH ? -ESRCH : -errno;
	for (line = text; line && *line; line = next) {
		unsigned long long start, end, offset, inode;
		unsigned int major, minor;
		char flags[8];
		int at = 0;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, flags, &offset, &major, &minor,
			   &inode, &at) < 7)
			continue;
		if (count == room) {
			room = room ? room * 2 : 64;
			more = realloc(mappings, room * sizeof(*mappings));
			if (!more) {
				free(mappings);
				free(text);
				return -ENOMEM;
			}
			mappings = more;
		}
		mappings[count++] = (struct process_mapping){.start = start,
							     .end = end,
							     .offset = offset,
							     .device = makedev(major, minor),
							     .inode = inode,
							     .executable = flags[2] == 'x',
							     .path = at ? line + at : ""};
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
	status = process__reread_mappings(process);
	if (status) {
		process__free(process);
		return failed(pid, status, err, err_size);
	}
	process__read_exe(pid, process->exe, sizeof(process->exe));
	*out = process;
	return 0;
}

int process__complete(struct process *process, char *err, size_t err_size)
{
	int status = read_stat(process);

	if (!status)
		status = read_status(process);
	if (status)
		return failed(process->pid, status, err, err_size);
	read_environment(process);
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

		if (mapping->executable && mapping->inode && base && !fnmatch(glob, base + 1, 0))
			return mapping;
	}
	return NULL;
}

const struct process_mapping *process__executable(const struct process *process)
{
	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct process_mapping *mapping = &process->mappings[i];

		if (mapping->executable && mapping->inode && !strcmp(mapping->path, process->exe))
			return mapping;
	}
	return NULL;
}

enum process_mpi process__mpi_of_path(const char *path)
{
	/* Intel MPI and MVAPICH share MPICH's ABI, whose soname is 12; Open MPI's is 40 (1.x: 1, 12 and 20 are not
	 * ours) */
	static const struct {
		const char *glob;
		enum process_mpi mpi;
	} libraries[] = {
	    {"libmpich.so*", PROCESS_MPICH},
	    {"libmpi.so.12*", PROCESS_MPICH},
	    {"libmpi.so*", PROCESS_OPEN_MPI},
	};
	const char *base = strrchr(path, '/');

	for (size_t i = 0; base && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (!fnmatch(libraries[i].glob, base + 1, 0))
			return libraries[i].mpi;
	return PROCESS_NO_MPI;
}

enum process_mpi process__mpi(const struct process *process, const struct process_mapping **library)
{
	const struct process_mapping *found = NULL;
	enum process_mpi mpi = PROCESS_NO_MPI;

	/* MPICH first: a wrapper of the other name may lie over it */
	for (size_t i = 0; i < process->mapping_count && mpi != PROCESS_MPICH; i++) {
		const struct process_mapping *mapping = &process->mappings[i];
		enum process_mpi this = PROCESS_NO_MPI;

		if (mapping->executable && mapping->inode)
			this = process__mpi_of_path(mapping->path);
		if (this == PROCESS_NO_MPI || this == mpi)
			continue;
		mpi = this;
		found = mapping;
	}
	if (!found && process->linked) {
		found = process__executable(process);
		mpi = found ? process->linked : PROCESS_NO_MPI;
	}
	if (library)
		*library = found;
	return mpi;
}

bool process__same_rank(const struct process *a, const struct process *b)
{
	return a->rank >= 0 && a->rank == b->rank && !strcmp(a->job, b->job);
}

bool process__child_of_rank(const struct process *process)
{
	pid_t pid = process->parent;
	bool child = false;

	for (int depth = 0; pid > 1 && depth < 16 && process->rank >= 0 && !child; depth++) {
		struct process *above;
		char err[128];

		if (process__read(pid, &above, err, sizeof(err)))
			break;
		pid = process__same_rank(process, above) ? above->parent : 0;
		child = pid && process__mpi(above, NULL);
		process__free(above);
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
		int tid = number(entry->d_name);

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
		if (read_stat(&process))
			return false;
		pid = process.parent;
	}
	return false;
}

uint64_t process__io_calls(pid_t pid)
{
	char path[64], *text, *line;
	size_t length;
	uint64_t calls = 0;

	snprintf(path, sizeof(path), "/proc/%d/io", pid);
	text = read_file(path, 4096, &length);
	if (!text)
		return 0;
	if ((line = strstr(text, "syscr:")))
		calls += strtoull(line + 6, NULL, 10);
	if ((line = strstr(text, "syscw:")))
		calls += strtoull(line + 6, NULL, 10);
	free(text);
	return calls;
}

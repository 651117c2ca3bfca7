// SPDX-License-Identifier: GPL-2.0-or-later
/* The querying side of the search for MPI libraries: what is known of files, and which of several libraries counts. */
#include "probe/elf/mpi_files.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "probe/elf/mpi_files_private.h"
#include "sandbox/user_file.h"
#include "target/foreign_mount.h"

enum {
	SETS = 512,  /* of known files, by device and inode */
	WAYS = 4,    /* files of a set; the oldest makes way */
	FOUND = 8,   /* MPI libraries of a process, of which one counts */
	MOST = 4096, /* mappings that are looked at */
	READ = 16,   /* files that are read at a time: the daemon's loop waits for their readers */
};

#define TRUSTED_NS 2000000000ULL /* until the file's status is read again */
#define UNREAD_NS 60000000000ULL /* until a file is tried again that could not be read */

struct known {
	uint64_t device, inode; /* as mappings have them; 0: a free entry */
	off_t size;
	struct timespec changed;
	uint64_t looked_ns; /* when the status was read last */
	uint64_t until_ns;  /* the file is read again from then on; 0: never */
	enum process_mpi mpi;
};

struct mpi_files {
	struct known sets[SETS][WAYS];
	uint8_t next[SETS];
};

struct mpi_files *mpi_files__new(void)
{
	return calloc(1, sizeof(struct mpi_files));
}

void mpi_files__free(struct mpi_files *files)
{
	free(files);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : NULL;
}

bool mpi_files__suggests(const char *path)
{
	const char *base = base_name(path);

	return base && strcasestr(base, "mpi") && strstr(base, ".so");
}

/* The MPI of a file that was not read. */
static enum process_mpi mpi_of_name(const char *path)
{
	static const struct {
		const char *glob;
		enum process_mpi mpi;
	} libraries[] = {
	    {"libmpich.so*", PROCESS_MPICH},
	    {"libmpi.so.12*", PROCESS_MPICH},
	    {"libmpi.so*", PROCESS_OPEN_MPI},
	};
	const char *base = base_name(path);

	for (size_t i = 0; base && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (!fnmatch(libraries[i].glob, base, 0))
			return libraries[i].mpi;
	return PROCESS_NO_MPI;
}

static size_t set_of(const struct process_mapping *mapping)
{
	return (size_t)(((mapping->device * 0x9e3779b97f4a7c15ULL) ^ mapping->inode) * 0x9e3779b97f4a7c15ULL >> 55) %
	       SETS;
}

static struct known *find(struct mpi_files *files, const struct process_mapping *mapping)
{
	struct known *set = files->sets[set_of(mapping)];

	for (size_t i = 0; i < WAYS; i++)
		if (set[i].inode == mapping->inode && set[i].device == mapping->device)
			return &set[i];
	return NULL;
}

static struct known *entry_for(struct mpi_files *files, const struct process_mapping *mapping)
{
	struct known *known = find(files, mapping);
	size_t set = set_of(mapping);

	return known ? known : &files->sets[set][files->next[set]++ % WAYS];
}

/* What a reader says of a file. */
struct file_response {
	struct confine_response response; /* holds the texts */
	enum process_mpi mpi;
	const char *name; /* for the linker */
	const char *needed[MPI_FILES_NEEDED_MAX];
	size_t needed_count;
};

/* Queries a reader. 0, or as confine__query(). The caller frees about->response.data. */
static int query_file(int fd, uid_t owner, const char *path, struct file_response *about, char *err, size_t err_size)
{
	/* a process may map all libraries of the node: its owner pays for the readers of those, too */
	struct confine_query query = {
	    .service = MPI_FILES_SERVICE, .files = {fd}, .file_count = 1, .owner = owner, .charged = true};
	struct flat_reader reader;
	char reason[256] = "";
	int status = confine__query(&query, &about->response, reason, sizeof(reason));

	if (status) {
		snprintf(err, err_size, "%s: %s", path, reason);
		return status;
	}
	reader = (struct flat_reader){.at = about->response.data, .end = about->response.data + about->response.size};
	about->mpi = (enum process_mpi)flat__get_upto(&reader, PROCESS_STANDARD_ABI);
	about->name = flat__get_text(&reader, MPI_FILES_TEXT_MAX);
	about->needed_count = (size_t)flat__get_upto(&reader, MPI_FILES_NEEDED_MAX);
	for (size_t i = 0; i < about->needed_count; i++)
		about->needed[i] = flat__get_text(&reader, MPI_FILES_TEXT_MAX);
	return flat__done(&reader) ? 0 : -EBADMSG;
}

/* A descriptor that refers to a mapped file; -1 where it cannot be had, or is no user's to read. */
static int refer(const struct process *process, const struct process_mapping *mapping)
{
	char path[128];

	if (foreign_mount__has(process, mapping))
		return -1;
	process__map_file(process, mapping, path, sizeof(path));
	return user_file__refer(path);
}

static bool is_unchanged(const struct known *known, const struct stat *st)
{
	return known->size == st->st_size && known->changed.tv_sec == st->st_ctim.tv_sec &&
	       known->changed.tv_nsec == st->st_ctim.tv_nsec;
}

/*
 * Says which MPI a mapped file is. left: how many files may still be read. 0, or where it takes longer
 * confine__is_later().
 */
static int look_at(struct mpi_files *files, const struct process *process, const struct process_mapping *mapping,
		   unsigned int *left, enum process_mpi *mpi, char *err, size_t err_size)
{
	struct known *before = find(files, mapping);
	uint64_t now_ns = mono_now();
	struct file_response about = {0};
	struct stat st;
	int fd, status = 0;

	*mpi = before ? before->mpi : PROCESS_NO_MPI;
	if (before && now_ns < before->looked_ns + TRUSTED_NS)
		return 0;
	fd = refer(process, mapping);
	if (fd < 0 || user_file__stat(fd, &st)) {
		*mpi = mpi_of_name(mapping->path);
		goto out;
	}
	if (before && is_unchanged(before, &st) && (!before->until_ns || now_ns < before->until_ns)) {
		before->looked_ns = now_ns;
		goto out;
	}
	if (*left)
		status = query_file(fd, process->owner, mapping->path, &about, err, err_size);
	else
		status = -EINPROGRESS;
	if (confine__is_later(status))
		goto out;
	--*left;
	*mpi = status ? mpi_of_name(mapping->path) : about.mpi;
	*entry_for(files, mapping) = (struct known){.device = mapping->device,
						    .inode = mapping->inode,
						    .size = st.st_size,
						    .changed = st.st_ctim,
						    .looked_ns = now_ns,
						    .until_ns = status ? now_ns + UNREAD_NS : 0,
						    .mpi = *mpi};
	status = 0;
out:
	free(about.response.data);
	if (fd >= 0)
		close(fd);
	return status;
}

struct found {
	const struct process_mapping *mapping;
	enum process_mpi mpi;
	bool needed; /* the program is linked to it */
};

static bool is_among(const struct found *found, size_t count, const struct process_mapping *mapping)
{
	for (size_t i = 0; i < count; i++)
		if (found[i].mapping->inode == mapping->inode && found[i].mapping->device == mapping->device)
			return true;
	return false;
}

/* Adds the MPI libraries among the files whose names do or do not suggest it. 0 or as look_at(). */
static int search(struct mpi_files *files, const struct process *process, bool suggested, unsigned int *left,
		  struct found *found, size_t *count, char *err, size_t err_size)
{
	size_t most = process->mapping_count < MOST ? process->mapping_count : MOST;
	int status = 0;

	for (size_t i = 0; i < most && *count < FOUND && !status; i++) {
		const struct process_mapping *mapping = &process->mappings[i];
		enum process_mpi mpi;

		if (!mapping->inode || mpi_files__suggests(mapping->path) != suggested ||
		    (i && mapping->inode == mapping[-1].inode && mapping->device == mapping[-1].device) ||
		    is_among(found, *count, mapping))
			continue;
		status = look_at(files, process, mapping, left, &mpi, err, err_size);
		if (!status && mpi != PROCESS_NO_MPI)
			found[(*count)++] = (struct found){mapping, mpi, false};
	}
	return status;
}

/* Adds the MPI libraries among the files whose code was replaced as a whole: no mapping of it is executable. 0 or as
 * look_at(). */
static int search_moved(struct mpi_files *files, const struct process *process, bool all, unsigned int *left,
			struct found *found, size_t *count, char *err, size_t err_size)
{
	int status = 0;

	for (size_t i = 0; i < process->moved_count && *count < FOUND && !status; i++) {
		const struct process_mapping *mapping = &process->moved[i];
		enum process_mpi mpi;

		if ((!all && !mpi_files__suggests(mapping->path)) || is_among(found, *count, mapping))
			continue;
		status = look_at(files, process, mapping, left, &mpi, err, err_size);
		if (!status && mpi != PROCESS_NO_MPI)
			found[(*count)++] = (struct found){mapping, mpi, false};
	}
	return status;
}

/* Queries a reader about a mapped file. 0, also where it cannot be read, or as look_at(). */
static int query_mapped(const struct process *process, const struct process_mapping *mapping,
			struct file_response *about, char *err, size_t err_size)
{
	int fd = refer(process, mapping);
	int status = fd < 0 ? -ENOENT : query_file(fd, process->owner, mapping->path, about, err, err_size);

	if (fd >= 0)
		close(fd);
	if (status)
		about->needed_count = 0;
	return confine__is_later(status) ? status : 0;
}

/* Whether a file names a library that is loaded with it: by its name for the linker, or that of its file. */
static bool names(const struct file_response *file, const struct process_mapping *library,
		  const struct file_response *of)
{
	const char *base = base_name(library->path);

	for (size_t i = 0; i < file->needed_count; i++)
		if ((base && !strcmp(file->needed[i], base)) || (of->name && !strcmp(file->needed[i], of->name)))
			return true;
	return false;
}

/* Notes which of the libraries a mapped file is linked to. 0 or as look_at(). */
static int note_needed(const struct process *process, const struct process_mapping *mapping, struct found *found,
		       size_t count, bool *any, char *err, size_t err_size)
{
	struct file_response file = {0}, library;
	int status = mapping ? query_mapped(process, mapping, &file, err, err_size) : 0;

	for (size_t i = 0; i < count && file.needed_count && !status; i++) {
		library = (struct file_response){0};
		status = query_mapped(process, found[i].mapping, &library, err, err_size);
		found[i].needed |= !status && names(&file, found[i].mapping, &library);
		*any |= found[i].needed;
		free(library.response.data);
	}
	free(file.response.data);
	return status;
}

/*
 * Finds the libraries that the program calls, of which one may lie in front of another: those that the executable is
 * linked to, else those that modules are whose names suggest MPI, as the one of an interpreter. 0 or as look_at().
 */
static int find_needed(const struct process *process, struct found *found, size_t count, char *err, size_t err_size)
{
	size_t most = process->mapping_count < MOST ? process->mapping_count : MOST, queried = 0;
	bool any = false;
	int status = note_needed(process, process__executable(process), found, count, &any, err, err_size);

	for (size_t i = 0; i < most && queried < FOUND && !any && !status; i++) {
		const struct process_mapping *mapping = &process->mappings[i];

		if (!mapping->inode || !mpi_files__suggests(mapping->path) || is_among(found, count, mapping))
			continue;
		status = note_needed(process, mapping, found, count, &any, err, err_size);
		queried++;
	}
	return status;
}

/* The library that lies in front: of those that are needed, else of all, the standard ABI's before MPICH's. */
static size_t foremost(const struct found *found, size_t count)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++)
		if (found[i].needed > found[best].needed ||
		    (found[i].needed == found[best].needed && found[i].mpi > found[best].mpi))
			best = i;
	return best;
}

_Static_assert(PROCESS_STANDARD_ABI > PROCESS_MPICH && PROCESS_MPICH > PROCESS_OPEN_MPI, "foremost() compares them");

static void set_library(struct process *process, const struct found *found, size_t count)
{
	process->library = (struct process_library){.mpi = found->mpi,
						    .device = found->mapping->device,
						    .inode = found->mapping->inode,
						    .others = (uint32_t)count - 1};
}

int mpi_files__look(struct mpi_files *files, struct process *process, bool all, char *err, size_t err_size)
{
	unsigned int left = READ;
	struct found found[FOUND];
	size_t count = 0;
	int status;

	snprintf(err, err_size, "its confined reader is at work");
	process->library = (struct process_library){0};
	status = search(files, process, true, &left, found, &count, err, err_size);
	if (!status && !count)
		status = search_moved(files, process, all, &left, found, &count, err, err_size);
	if (!status && !count && all)
		status = search(files, process, false, &left, found, &count, err, err_size);
	if (!status && count > 1)
		status = find_needed(process, found, count, err, err_size);
	if (!status && count)
		set_library(process, &found[foremost(found, count)], count);
	return status;
}

void mpi_files__recall(struct mpi_files *files, struct process *process)
{
	struct found found[FOUND];
	size_t count = 0;

	for (size_t i = 0; i < process->mapping_count && i < MOST && count < FOUND; i++) {
		const struct process_mapping *mapping = &process->mappings[i];
		const struct known *known = mapping->inode ? find(files, mapping) : NULL;
		enum process_mpi mpi = known ? known->mpi : mpi_of_name(mapping->path);

		if (mapping->inode && mpi != PROCESS_NO_MPI && !is_among(found, count, mapping))
			found[count++] = (struct found){mapping, mpi, false};
	}
	process->library = (struct process_library){0};
	if (count)
		set_library(process, &found[foremost(found, count)], count);
}

enum process_mpi mpi_files__of(const char *path)
{
	struct file_response about = {0};
	int fd = user_file__refer(path);
	char err[512];

	if (fd < 0 || query_file(fd, 0, path, &about, err, sizeof(err)))
		about.mpi = mpi_of_name(path);
	free(about.response.data);
	if (fd >= 0)
		close(fd);
	return about.mpi;
}

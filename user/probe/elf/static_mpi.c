// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/elf/static_mpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/elf/survey.h"
#include "sandbox/user_file.h"

#define KNOWN 256 /* files; the oldest makes way */

struct known {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	enum process_mpi mpi;
};

struct static_mpi {
	struct known files[KNOWN];
	size_t next;
};

struct static_mpi *static_mpi__new(void)
{
	return calloc(1, sizeof(struct static_mpi));
}

void static_mpi__free(struct static_mpi *known)
{
	free(known);
}

struct signs {
	bool mpi, open_mpi;
};

static int look_at(const struct image_symbol *symbol, void *ctx)
{
	struct signs *signs = ctx;

	signs->mpi |= !strcmp(symbol->name, "MPI_Init") || !strcmp(symbol->name, "PMPI_Init") ||
		      !strcmp(symbol->name, "MPI_Init_thread") || !strcmp(symbol->name, "PMPI_Init_thread");
	signs->open_mpi |= !strcmp(symbol->name, "ompi_mpi_init");
	return signs->mpi && signs->open_mpi;
}

/* 0, also where the file cannot be read, or where that takes longer confine__is_later() with a sentence. */
static int mpi_of(int fd, const struct process *process, const char *label, enum process_mpi *mpi, char *err,
		  size_t err_size)
{
	struct survey *survey = survey__query(fd, process->owner, label, SURVEY_NAMES, NULL, 0, err, err_size);
	struct signs signs = {0};

	if (!survey && confine__is_later(-errno))
		return -errno;
	if (survey)
		image__functions(survey__image(survey), false, look_at, &signs);
	survey__free(survey);
	*mpi = !signs.mpi ? PROCESS_NO_MPI : signs.open_mpi ? PROCESS_OPEN_MPI : PROCESS_MPICH;
	return 0;
}

static int look(struct static_mpi *known, int fd, struct process *process, const char *label, char *err,
		size_t err_size)
{
	struct stat st;
	int status;

	if (fd < 0 || user_file__stat(fd, &st))
		return 0;
	for (size_t i = 0; i < KNOWN; i++) {
		const struct known *file = &known->files[i];

		if (file->inode != st.st_ino || file->device != st.st_dev || file->size != st.st_size ||
		    file->changed.tv_sec != st.st_ctim.tv_sec || file->changed.tv_nsec != st.st_ctim.tv_nsec)
			continue;
		process->linked = file->mpi;
		return 0;
	}
	status = mpi_of(fd, process, label, &process->linked, err, err_size);
	if (!status)
		known->files[known->next++ % KNOWN] = (struct known){.device = st.st_dev,
								     .inode = st.st_ino,
								     .size = st.st_size,
								     .changed = st.st_ctim,
								     .mpi = process->linked};
	return status;
}

int static_mpi__look(struct static_mpi *known, struct process *process, char *err, size_t err_size)
{
	const struct process_mapping *executable = process__executable(process);
	char path[128];
	int fd, status;

	if (!executable || process__mpi(process, NULL))
		return 0;
	process__map_file(process, executable, path, sizeof(path));
	fd = user_file__refer(path);
	status = look(known, fd, process, executable->path, err, err_size);
	if (fd >= 0)
		close(fd);
	return status;
}

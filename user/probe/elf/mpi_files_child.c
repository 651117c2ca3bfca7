// SPDX-License-Identifier: GPL-2.0-or-later
/* The reader's side of the search for MPI libraries. All of it runs confined, on bytes that may be anything. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/elf/mpi_files.h"
#include "probe/elf/mpi_files_private.h"
#include "target/image.h"

struct signs {
	bool init, profiled, init_thread, profiled_thread;
	bool send;     /* messages, which every MPI library has */
	bool looks_up; /* it asks the linker for names */
	bool open_mpi; /* a handle that is an object: part of Open MPI's ABI */
	bool abi;      /* MPI 5 */
	bool mpich;    /* internals of MPICH and its descendants */
	char name[MPI_FILES_TEXT_MAX];
};

static int look_at(const char *name, void *ctx)
{
	struct signs *signs = ctx;

	if (*name != 'M' && *name != 'P' && *name != 'o')
		return 0;
	signs->init |= !strcmp(name, "MPI_Init");
	signs->profiled |= !strcmp(name, "PMPI_Init");
	signs->init_thread |= !strcmp(name, "MPI_Init_thread");
	signs->profiled_thread |= !strcmp(name, "PMPI_Init_thread");
	signs->send |= !strcmp(name, "MPI_Send");
	signs->open_mpi |= !strcmp(name, "ompi_mpi_comm_world");
	signs->abi |= !strcmp(name, "MPI_Abi_get_version");
	signs->mpich |= !strncmp(name, "MPIR_", strlen("MPIR_"));
	return 0;
}

static int look_at_reference(const char *name, void *ctx)
{
	struct signs *signs = ctx;

	signs->looks_up |= !strcmp(name, "dlsym");
	return signs->looks_up;
}

static int note_name(const char *name, void *ctx)
{
	struct signs *signs = ctx;

	snprintf(signs->name, sizeof(signs->name), "%s", name);
	return 1;
}

/*
 * The standard ABI has no objects and no number in its handles by which it could be recognised. Its library has a name
 * for the linker that the standard prescribes, whatever file that is in; one without it has the ABI's functions, which
 * libraries of MPI 5 have in their own ABIs as well. A profiler that defines functions by both names, as Darshan does,
 * has no messages, and looks up what it passes calls on to.
 */
static enum process_mpi mpi_of(const struct signs *signs)
{
	if (!(signs->init && signs->profiled) && !(signs->init_thread && signs->profiled_thread))
		return PROCESS_NO_MPI;
	if (signs->looks_up && !signs->send)
		return PROCESS_NO_MPI;
	if (!strncmp(signs->name, "libmpi_abi", strlen("libmpi_abi")))
		return PROCESS_STANDARD_ABI;
	if (signs->open_mpi)
		return PROCESS_OPEN_MPI;
	return signs->abi && !signs->mpich ? PROCESS_STANDARD_ABI : PROCESS_MPICH;
}

struct needed {
	struct flat names;
	uint64_t count;
};

static int note_needed(const char *name, void *ctx)
{
	struct needed *needed = ctx;

	if (strlen(name) >= MPI_FILES_TEXT_MAX)
		return 0;
	flat__put_text(&needed->names, name);
	return ++needed->count == MPI_FILES_NEEDED_MAX;
}

int mpi_files__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		       struct flat *response, char *err, size_t err_size)
{
	struct needed needed = {0};
	struct signs signs = {0};
	struct image *image;

	if (!flat__done(about) || file_count != 1) {
		snprintf(err, err_size, "the query makes no sense");
		return -EINVAL;
	}
	image = image__from_bytes(files[0].data, files[0].size, false, err, err_size);
	if (!image)
		return -EINVAL;
	image__definitions(image, look_at, &signs);
	image__references(image, look_at_reference, &signs);
	image__linked_names(image, DT_SONAME, note_name, &signs);
	image__linked_names(image, DT_NEEDED, note_needed, &needed);
	flat__put(response, mpi_of(&signs));
	flat__put_text(response, signs.name);
	flat__put(response, needed.count);
	flat__put_flat(response, &needed.names);
	image__free(image);
	free(needed.names.data);
	return needed.names.failed ? -ENOMEM : 0;
}

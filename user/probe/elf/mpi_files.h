/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of the files that a process maps is its MPI library. A file is one by what it defines and not by its name:
 * vendors, compilers and packagers name them differently (libmpi_gnu_123.so.12, libmpi_ibm.so.3,
 * libmpi-1c2e33d1.so.40). It defines MPI_Init and PMPI_Init, or the forms of both for threads: a profiling library
 * defines the first only. An executable that has MPI linked in does so, too.
 *
 * A confined reader looks at each file once; the result is kept until the file changes. To look at every file of every
 * process would cost much, so that the caller says how far the search goes.
 */
#ifndef VAPRO_MPI_FILES_H
#define VAPRO_MPI_FILES_H

#include "sandbox/flat.h"
#include "sandbox/confine.h"
#include "target/process.h"

#define MPI_FILES_SERVICE "mpi"

struct mpi_files;

/* NULL when out of memory. */
struct mpi_files *mpi_files__new(void);
void mpi_files__free(struct mpi_files *files);

/* Whether a file's name suggests that it is an MPI library: mpi, in letters of either case, in that of a library. */
bool mpi_files__suggests(const char *path);

/*
 * Fills process->library. Files whose names suggest MPI are looked at first. Where none of them is one and all is true,
 * the others follow, the executable included, up to some hundred. What cannot be read counts by its name, so that an
 * attachment to it reports the reason; what lies on a file system that a user mounted is not read (foreign_mount.h). 0,
 * or where it takes longer confine__is_later() (sandbox/confine.h) with a sentence.
 */
int mpi_files__look(struct mpi_files *files, struct process *process, bool all, char *err, size_t err_size);

/* Fills process->library by what is known of its files already, and by names where nothing is: no file is read. */
void mpi_files__recall(struct mpi_files *files, struct process *process);

/* Which MPI library a file of the system is, for tools: waits for its reader. Where it cannot be read its name decides.
 */
enum process_mpi mpi_files__of(const char *path);

/* The reader's side; runs confined. */
int mpi_files__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		       struct flat *response, char *err, size_t err_size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Executables that have MPI linked in and map no library of it: their own symbol table (.symtab)
 * defines the functions. Looking means reading the file, so it is done for selected processes only, and
 * once per file.
 */
#ifndef VAPRO_STATIC_MPI_H
#define VAPRO_STATIC_MPI_H

#include "target/process.h"

struct static_mpi;

/* NULL when out of memory. */
struct static_mpi *static_mpi__new(void);
void static_mpi__free(struct static_mpi *known);

/*
 * Fills process->linked of a process that maps no MPI library. An executable that was stripped, or that
 * cannot be read, counts as having no MPI. 0, or where it takes longer to read confine__is_later() (sandbox/confine.h)
 * with a sentence.
 */
int static_mpi__look(struct static_mpi *known, struct process *process, char *err, size_t err_size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What both sides of the search for MPI libraries share; no other file includes it. */
#ifndef VAPRO_MPI_FILES_PRIVATE_H
#define VAPRO_MPI_FILES_PRIVATE_H

#define MPI_FILES_TEXT_MAX 256	/* bytes of a library's name */
#define MPI_FILES_NEEDED_MAX 64 /* names of libraries that a file needs */

#endif

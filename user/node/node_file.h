/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs of the kernels in files: the profile of a node, or of its class. A file is written beside its place and moved
 * there when it is complete, for its owner alone; what is there already remains where that fails. What is read may be
 * anything: it is bounded, and checked before anything is made of it.
 */
#ifndef VAPRO_NODE_FILE_H
#define VAPRO_NODE_FILE_H

#include "node/node_run.h"

/* Returns 0, or a negative errno with a sentence in err that names the file. */
int node_file__write(const char *path, struct node_run *run, char *err, size_t err_size);

/* Reads a file of this user, of root or of anybody whose file others cannot write; the run is to be freed. */
int node_file__read(const char *path, struct node_run **run, char *err, size_t err_size);

/* Reads the bytes of a file. Returns 0, -ENOMEM or -EBADMSG with a sentence in err. */
int node_file__parse(const uint8_t *data, size_t size, struct node_run **run, char *err, size_t err_size);

#endif

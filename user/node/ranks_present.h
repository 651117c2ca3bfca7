/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MPI processes of the node, whose work a check would disturb, and which would disturb it. */
#ifndef VAPRO_NODE_RANKS_PRESENT_H
#define VAPRO_NODE_RANKS_PRESENT_H

#include <stddef.h>

/*
 * Counts the processes of MPI that this user may see, by names of the libraries that they map, and names some of them
 * in text. Those of other users are seen by root only. Returns their number.
 */
int ranks_present__find(char *text, size_t size);

#endif

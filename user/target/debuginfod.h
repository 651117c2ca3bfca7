/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Debug files from the servers that a user has configured, by the program debuginfod-find. For commands that a user
 * runs; the daemon never contacts a server.
 */
#ifndef VAPRO_DEBUGINFOD_H
#define VAPRO_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the path of the debug file with this build-id, downloaded to the user's cache. false where no server is
 * configured (DEBUGINFOD_URLS), debuginfod-find is not installed, or no server has the file.
 */
bool debuginfod__find(const char *build_id, char *path, size_t size);

#endif

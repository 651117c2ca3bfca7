/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VAPRO_BASE_NAME_H
#define VAPRO_BASE_NAME_H

#include <string.h>

/* Returns what follows the last slash of a path. */
static inline const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif

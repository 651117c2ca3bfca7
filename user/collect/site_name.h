/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call-site of a vertex as text, with what distinguishes its callers: behind the call-site's own name
 * follow, each after SITE_CALLED_BY, the callers that it is hopped to, innermost first; or, for states =
 * call-path, `#path:` and a hash of all callers.
 */
#ifndef VAPRO_SITE_NAME_H
#define VAPRO_SITE_NAME_H

#include <vapro/bpf/abi.h>

#include "collect/callsites.h"

#define SITE_TEXT_MAX ((1 + KERNEL_HOPS) * CALLSITE_MAX)

struct site_name {
	char text[SITE_TEXT_MAX];
	char symbol[SITE_TEXT_MAX]; /* or empty */
	const char *path;	    /* the call-site's own, as in struct callsite */
	bool transparent;	    /* as in struct callsite */
};

/*
 * path: the vertex's, or NULL. With hops a system call gets only its first caller outside the C library and the
 * runtimes of languages, whose frames are noted for lookup while they are not known.
 */
void site_name__hopped(struct site_name *name, struct callsites *callsites, const struct kernel_vertex_key *key,
		       const struct kernel_path_key *path, bool hops);

void site_name__by_path(struct site_name *name, struct callsites *callsites, const struct kernel_vertex_key *key,
			const struct kernel_path_key *path);

/* Marks callers that are not distinguished: the process has too many paths. */
void site_name__other_path(struct site_name *name);

#endif

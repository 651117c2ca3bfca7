/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call-site of a vertex as text, with what tells its callers from others: behind the call-site's own name
 * follow, each after SITE_CALLED_BY, those that it is hopped to, innermost first; or, for --states call-path,
 * `#path:` and a hash of all of them.
 */
#ifndef VAPRO_SITE_NAME_H
#define VAPRO_SITE_NAME_H

#include <vapro/kernel.h>

#include "collect/callsite.h"

#define SITE_TEXT_MAX ((1 + KERNEL_HOPS) * CALLSITE_MAX)

struct site_name {
	char text[SITE_TEXT_MAX];
	char symbol[SITE_TEXT_MAX]; /* or empty */
	const char *path;	    /* as in struct callsite, of the call-site itself */
	bool transparent;	    /* likewise */
};

/*
 * path: the vertex's, or NULL. Of a system call only what comes out of the C library and the runtimes of languages
 * counts; while their frames are not known they are noted to be looked up (hops: they may be).
 */
void site_name__hopped(struct site_name *name, struct callsites *callsites, const struct kernel_vertex_key *key,
		       const struct kernel_path_key *path, bool hops);

void site_name__by_path(struct site_name *name, struct callsites *callsites, const struct kernel_vertex_key *key,
			const struct kernel_path_key *path);

/* The callers are one of very many that the process came by: they are not distinguished. */
void site_name__other_path(struct site_name *name);

#endif

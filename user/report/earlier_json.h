/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line about a run beside earlier runs of its program. */
#ifndef VAPRO_REPORT_EARLIER_JSON_H
#define VAPRO_REPORT_EARLIER_JSON_H

#include <stdint.h>

#include "compare/earlier.h"

/* Whose run it was, and where its profile is. */
struct earlier_of {
	const char *host, *job, *profile;
	uint32_t user; /* as in struct vapro_thread */
	uint64_t utc_ns;
};

/* Returns a record, malloc'ed, or NULL when out of memory. */
char *earlier_json__line(const struct earlier *earlier, const struct earlier_of *of);

#endif

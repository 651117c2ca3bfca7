/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line of fragments as NDJSON (ARCHITECTURE section 10), parsed and checked. A bundle's
 * `duration_ns` is the sum over its n fragments.
 */
#ifndef VAPRO_COLLECT_NDJSON_LINE_H
#define VAPRO_COLLECT_NDJSON_LINE_H

#include <stddef.h>
#include <cjson/cJSON.h>
#include <vapro/bundle.h>

#define NDJSON_TIME_MAX (1ULL << 62)
#define NDJSON_NAMED (VAPRO_MAGNITUDES - VAPRO_NAMED)

/* Names that an input's lines share. */
struct ndjson_names {
	char *magnitude[NDJSON_NAMED]; /* names in the slots from VAPRO_NAMED on */
	cJSON *unknown_factors;	       /* name: times seen; an object */
};

struct ndjson_line {
	cJSON *object; /* owns the texts that are const */
	struct vapro_thread thread;
	struct vapro_state state;
	char *labels, *common;	  /* texts of state, owned */
	struct vapro_place place; /* unknown where the line has none */
	struct vapro_bundle bundle;
	bool instructions; /* a computation whose instructions are known */
};

/* Returns 0, -EINVAL with the reason in why, or -ENOMEM. The line must be freed in every case. */
int ndjson_line__parse(struct ndjson_line *line, const char *text, struct ndjson_names *names, char *why,
		       size_t why_size);
void ndjson_line__free(struct ndjson_line *line);
void ndjson_line__free_names(struct ndjson_names *names);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of a worker to the nodes of a job (docs/many-nodes.md): what a node's own analysis requests of it, decided
 * for all nodes of the job. A request is a JSON object of at most WIRE_REQUEST_MAX bytes. A node carries out the kinds
 * that stand here, within the limits that it has for its own requests, and nothing else.
 */
#ifndef VAPRO_WIRE_REQUEST_H
#define VAPRO_WIRE_REQUEST_H

#include <vapro/analysis.h>

#include "functions/functions.h"
#include "wire/subject.h"

#define WIRE_REQUEST_VERSION 1
#define WIRE_REQUEST_MAX 4096

enum wire_request_kind {
	WIRE_REQUEST_STAGE,  /* counters, and whether interrupts are timed: struct vapro_stage_request */
	WIRE_REQUEST_INSIDE, /* threads that are sampled: struct vapro_inside_request */
	WIRE_REQUEST_HOP,    /* calls that are distinguished by their callers: struct vapro_hop_event */
	WIRE_REQUEST_SET,    /* functions that never wait are not probed: those that other nodes leave out */
	WIRE_REQUEST_KINDS,
};

extern const char *const wire_request_name[WIRE_REQUEST_KINDS];

struct wire_request {
	enum wire_request_kind kind;
	char job[WIRE_TEXT_MAX];
	uint32_t user; /* uid + 1, 0 unknown */
	/* stage */
	int stage;
	char expand[64]; /* "": the time as a whole */
	uint64_t variance;
	bool interrupts;
	/* inside */
	struct vapro_inside_request inside;
	/* hop */
	enum vapro_hop hop;	     /* up, back, or stays */
	char site[512], symbol[512]; /* symbol "": unknown */
	/* set */
	char image[256];		    /* file name of the MPI functions, as in struct vapro_process_facts */
	char without[FUNCTIONS_UNITS_TEXT]; /* functions, as in functions__name_units() */
	char host[WIRE_TEXT_MAX];	    /* a node whose own governor leaves some of them out */
	char worker[256];		    /* id */
};

/* Writes a request as text. Returns its length, or -ENOSPC where it does not fit, or -ENOMEM. */
int wire_request__format(char *text, size_t size, const struct wire_request *request);

/*
 * Reads a request; nothing of what is sent is trusted. Returns 0, or -EINVAL for what is none, or one of another
 * version or of an unknown kind, with the reason in why.
 */
int wire_request__parse(struct wire_request *request, const void *bytes, size_t size, char *why, size_t why_size);

#endif

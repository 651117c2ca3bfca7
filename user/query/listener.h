/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The core of vaprod's servers: a listening socket and its clients, from their connection until the response is on its
 * way. It never waits: a client without a request after two seconds is dropped. Who may connect, how many and how often
 * is a policy of the server, which also says how a request is read.
 */
#ifndef VAPRO_QUERY_LISTENER_H
#define VAPRO_QUERY_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "query/protocol.h"
#include "query/socket.h"

struct listener_policy {
	unsigned clients;	/* open at a time; others wait in the kernel's queue */
	unsigned user_clients;	/* of them, those of other users than root; 0: only root may connect */
	unsigned per_user;	/* of them, those of one user, who is not root */
	unsigned accepts_per_s; /* new connections in a second; 0: unbounded */
	size_t request_most;	/* bytes of a request */
	bool ignores_rest;	/* what follows a request is not read */
	/* Reads the request of the client at a place: 0, -EAGAIN or -EINVAL, as query_request__parse(). */
	int (*parse)(void *ctx, size_t at, const char *text, size_t size, char *err, size_t err_size);
	/* Frees what the server has of a client that ends; or NULL. */
	void (*ended)(void *ctx, size_t at);
};

struct listener_client {
	int fd; /* -1: none at this place */
	uid_t uid;
	uint64_t since_ns; /* time of its connection, or of the last progress */
	bool complete;	   /* its request */
	bool sending;	   /* a response is under way: an error line would be taken for a part of it */
	size_t used;
	char *text; /* its request so far */
};

struct listener {
	const struct listener_policy *policy;
	void *ctx;
	int fd;
	char path[QUERY_PATH_MAX];
	dev_t device;
	ino_t inode;
	uint64_t second_ns;		 /* begin of the second in which connections are counted */
	unsigned accepted;		 /* in that second */
	struct listener_client *clients; /* policy->clients places */
};

/*
 * Takes over a socket that listens at listener->path; fd negative: the -errno of one that could not be opened, with a
 * sentence in err unless memory is out. Returns 0, or a negative errno with a sentence in err, and then the socket is
 * closed. The policy stays the caller's.
 */
int listener__init(struct listener *listener, int fd, const struct listener_policy *policy, void *ctx, char *err,
		   size_t err_size);

/* Accepts clients and reads their requests. now_ns: CLOCK_MONOTONIC. */
void listener__step(struct listener *listener, uint64_t now_ns);

/* Ends a client's connection. */
void listener__drop(struct listener *listener, size_t at);

/* Sends an error line, as far as it is accepted at once, and drops the client. */
void listener__refuse(struct listener *listener, size_t at, enum query_error error, const char *sentence);

/* Refuses all clients, since vaprod ends, and removes the socket, but not a file that has replaced it. */
void listener__clear(struct listener *listener);

/*
 * Forked copies of the daemon that compute responses: a copy takes as long as it needs and may overwrite its memory.
 * It closes everything but its client at once, so that it holds no probe, and dies with the daemon. Copies, those of
 * one user, their lifetime and their processor time are bounded; one place is root's.
 */
#define LISTENER_COPIES 3 /* that run at the same time, or fewer */

struct listener_copies {
	size_t most; /* that run at the same time */
	struct {
		pid_t pid; /* 0: none */
		uid_t uid; /* of its client */
	} places[LISTENER_COPIES];
};

/*
 * Runs in the copy: writes the response to out, a sentence on omissions into note (QUERY_SENTENCE_MAX bytes).
 * Returns 0, or -1 with the error's kind and its sentence in note.
 */
typedef int (*listener_answer)(void *ctx, FILE *out, char *note, enum query_error *error);

/*
 * Has a copy respond to the client at a place of a listener, whose request is complete; root may have all places of
 * copies, users one each and not the last one. The client is dropped once the copy runs, and refused with a sentence
 * where none can be made or none became free in time. may_start: whether one may be started now. Returns whether one
 * was.
 */
bool listener_copies__serve(struct listener_copies *copies, struct listener *listener, size_t at, bool may_start,
			    listener_answer answer, void *ctx, uint64_t now_ns);

/* Takes note of copies that have ended. */
void listener_copies__reap(struct listener_copies *copies);

/* Ends all copies. */
void listener_copies__end(struct listener_copies *copies);

#endif

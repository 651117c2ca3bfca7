/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How brokers are reached: addresses, certificates and credentials, for the publisher of a node and for workers alike
 * (docs/publishing.md). Passwords in addresses are never printed.
 */
#ifndef VAPRO_BROKER_CONNECTION_H
#define VAPRO_BROKER_CONNECTION_H

#include <nats/nats.h>
#include <stddef.h>

struct broker_options {
	const char *servers;	 /* nats://[user:password@]host[:port] or tls://..., separated by commas */
	const char *credentials; /* file with a user's JWT and seed; NULL none */
	const char *ca;		 /* file of certificates that brokers' are checked against; NULL the system's */
	const char *cert, *key;	 /* files of the own certificate; both or none */
	const char *name;	 /* of this connection, in the broker's lists */
	const char *inbox;	 /* prefix of reply subjects; NULL the library's `_INBOX` */
};

/* Checks the texts and files without a connection. Returns 0 or -EINVAL with a sentence in err. */
int broker_options__check(const struct broker_options *options, char *err, size_t err_size);

/*
 * Options of the library for a connection that is made again for ever with back-off, and that the caller may add to.
 * Returns NULL with a sentence in err. The caller destroys them.
 */
natsOptions *broker__options(const struct broker_options *options, char *err, size_t err_size);

/* The addresses without users and passwords, for messages. Returns text. */
const char *broker__printable(char *text, size_t size, const char *servers);

/* A sentence's end for a status of the library. */
const char *broker__reason(natsStatus status);

#endif

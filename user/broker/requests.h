/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages to a node, which come by a subscription of its own connection (docs/many-nodes.md). A thread connects, and
 * connects again; the caller never waits. A few messages are held, further ones are counted and dropped.
 */
#ifndef VAPRO_BROKER_REQUESTS_H
#define VAPRO_BROKER_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/connection.h"
#include "wire/request.h"

struct requests;

/* Subscribes to a subject. The texts are copied. Returns NULL with a sentence in err; an absent broker is no error. */
struct requests *requests__new(const struct broker_options *options, const char *subject, char *err, size_t err_size);
void requests__free(struct requests *requests);

/* Takes the oldest message, of at most WIRE_REQUEST_MAX bytes. Returns false where there is none. */
bool requests__next(struct requests *requests, char bytes[WIRE_REQUEST_MAX], size_t *size);

/* Returns how many messages were dropped so far: too large, or too many at once. */
uint64_t requests__dropped(struct requests *requests);

#endif

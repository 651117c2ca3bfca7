/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads what a stream of a broker holds, in its order (docs/many-nodes.md): for people, who change nothing at the
 * broker. Errors are negative errno values with a sentence that says what to do: -ENOTCONN no broker, -EACCES not
 * permitted, -ENOENT no such stream, -ETIMEDOUT, -ENOMEM, -EIO.
 */
#ifndef VAPRO_BROKER_READER_H
#define VAPRO_BROKER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/connection.h"
#include "wire/subject.h"

struct broker_reader;

/* Connects; the options' texts outlive the reader. role: whose stream. Returns 0 and the reader, or a negative errno.
 */
int broker_reader__open(struct broker_reader **opened, const struct broker_options *options, enum wire_role role,
			char *err, size_t err_size);
void broker_reader__close(struct broker_reader *reader);

/* Lists the subjects of the stream that match the filter, in a list that the caller frees. */
int broker_reader__subjects(struct broker_reader *reader, const char *filter, struct wire_subject **list, size_t *count,
			    char *err, size_t err_size);

/*
 * Begins with the first message that matches the filter, or the first one that the broker has stored since a time (UTC
 * of the broker's clock; 0: all).
 */
int broker_reader__start(struct broker_reader *reader, const char *filter, uint64_t since_ns, char *err,
			 size_t err_size);

/* A message; its data lives until the next call for this reader. */
struct broker_message {
	const char *subject;
	const void *bytes;
	size_t size;
	bool packed;	    /* by zstd (header Vapro-Encoding) */
	uint64_t epoch;	    /* of results (header Vapro-Epoch) */
	uint64_t judged_ns; /* of results: windows are whole until then, UTC (header Vapro-Judged) */
};

/*
 * Gets the next message. Returns 1; 0 where the stream holds no further one at present; or a negative errno. After an
 * error the next call goes on behind the latest message, as soon as the broker is there again.
 */
int broker_reader__next(struct broker_reader *reader, struct broker_message *message, char *err, size_t err_size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What workers have in common at the broker (docs/many-nodes.md): the stream of blocks, the stream of results, and the
 * bucket of leases. All of it is created where it is absent. Functions return 0 or a negative errno: -ETIMEDOUT and
 * -ENOTCONN where the broker is away, -ESTALE where another worker has published or taken what this one held. They may
 * be called from several threads.
 */
#ifndef VAPRO_WORKER_STORE_H
#define VAPRO_WORKER_STORE_H

#include "broker/connection.h"
#include "wire/subject.h"

struct store;

struct store_options {
	struct broker_options broker;
	const char *cluster; /* its jobs only; NULL: those of all clusters */
	int replicas;	     /* of streams and bucket that are created */
};

/* Connects, and creates what is absent. Returns NULL with a sentence in err. The texts outlive the store. */
struct store *store__open(const struct store_options *options, char *err, size_t err_size);
void store__close(struct store *store);

/* Closes the connection: requests that wait for the broker end, in any thread, and later ones fail at once. */
void store__abandon(struct store *store);

/* Sends a message that no stream stores: it is neither acknowledged nor sent again. */
int store__send(struct store *store, const char *subject, const void *bytes, size_t size);

/* A subject with blocks. */
struct store_subject {
	char text[WIRE_SUBJECT_MAX];
	uint64_t messages;
};

/* Lists the subjects with blocks; the caller frees the list. */
int store__subjects(struct store *store, struct store_subject **list, size_t *count);

/* Gets the number of the last message of a subject with blocks; -ENOENT: there is none. */
int store__last_block(struct store *store, const char *subject, uint64_t *sequence);

/* Reads the number of the first block in the stream, of any job. */
int store__first_number(struct store *store, uint64_t *sequence);

/* Entries of the bucket. revision 0: the key must not exist yet. Returns -ESTALE where the revision is another. */
int store__get(struct store *store, const char *key, char *value, size_t size, uint64_t *revision); /* -ENOENT */
int store__set(struct store *store, const char *key, const char *value, uint64_t *revision);
int store__put(struct store *store, const char *key, const char *value);
int store__remove(struct store *store, const char *key);

/* Lists the keys that begin with "prefix."; the caller frees the list, an array of texts of WIRE_SUBJECT_MAX bytes. */
int store__keys(struct store *store, const char *prefix, char (**keys)[WIRE_SUBJECT_MAX], size_t *count);

/* Reads the blocks of a job, from number `from` on or the first one that the stream holds then. */
struct store_reader;

struct store_reader *store_reader__new(struct store *store, const char *filter, const char *name, uint64_t from,
				       char *err, size_t err_size);
void store_reader__free(struct store_reader *reader);

/*
 * Calls take() for each block that has come, at most `most`, and does not wait. bytes are the receiver's to free.
 * Returns their number (0 also while the broker is away), or a negative errno.
 */
typedef int (*store_take)(void *arg, const char *subject, uint64_t sequence, void *bytes, size_t size);
int store_reader__next(struct store_reader *reader, int most, store_take take, void *arg);

/* From here on the blocks that are not acknowledged come again, and then those that follow them. */
void store_reader__rewind(struct store_reader *reader);

/* Whether all blocks that the stream held so far have been given. */
bool store_reader__caught_up(const struct store_reader *reader);

/* Acknowledges all blocks up to this number. */
int store_reader__acknowledge(struct store_reader *reader, uint64_t sequence);

/* The latest message of a job's results. */
struct store_result {
	uint64_t sequence; /* 0: there is none */
	uint64_t epoch;
	uint64_t judged_ns; /* UTC: windows that end until then are published whole */
};

int store__last_result(struct store *store, const char *subject, struct store_result *last);

/*
 * Publishes lines after the result before; that must still be the latest one, else -ESTALE. The id makes a repetition
 * harmless. encoding: of the lines, "zstd" or NULL. Updates *result. -EMSGSIZE: more than the broker accepts.
 */
int store__publish(struct store *store, const char *subject, const char *id, const void *lines, size_t size,
		   const char *encoding, struct store_result *result);

/*
 * State of a job's analysis, in chunks: messages on its state subject, each of which names the one before. The number
 * of the last chunk is that of the checkpoint.
 */
#define STORE_CHUNK_BYTES (512U << 10) /* a broker accepts 1 MiB by default */

struct store_chunk {
	uint64_t before; /* number of the chunk before; 0: it is the first one */
	/* of the last chunk */
	uint64_t chunks; /* how many; 0: it is not the last */
	uint64_t first;	 /* number of the first one */
	uint64_t older;	 /* the checkpoint before, 0 none */
	uint64_t end_ns; /* UTC end of the last window in it */
};

/* Whether the broker has a stream for it. */
bool store__has_state(const struct store *store);

/* Publishes a chunk; *number is that of its message. */
int store__put_state(struct store *store, const char *subject, const char *id, const void *bytes, size_t size,
		     const struct store_chunk *chunk, uint64_t *number);

/* Reads a chunk, whose bytes the caller frees. -ENOENT: the subject has no chunk of this number, or no longer. */
int store__get_state(struct store *store, const char *subject, uint64_t number, struct store_chunk *chunk, void **bytes,
		     size_t *size);

/* Removes what the subject has before this number; 0: all that it has. */
int store__drop_state(struct store *store, const char *subject, uint64_t before);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* The results of one job, from the subject on which its workers publish them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "report/valid_lines.h"
#include "source/source.h"

#define UNPACKED_MOST (256ULL << 20) /* of a message: a heat map of a million ranks has 100 MiB */

int source__unpack(const struct broker_message *message, char **text, size_t *size)
{
	unsigned long long unpacked = ZSTD_getFrameContentSize(message->bytes, message->size);
	size_t got;

	if (unpacked == ZSTD_CONTENTSIZE_ERROR || unpacked == ZSTD_CONTENTSIZE_UNKNOWN || unpacked > UNPACKED_MOST)
		return -EBADMSG;
	*text = malloc(unpacked + 1);
	if (!*text)
		return -ENOMEM;
	got = ZSTD_decompress(*text, unpacked, message->bytes, message->size);
	if (!ZSTD_isError(got)) {
		*size = got;
		return 0;
	}
	free(*text);
	*text = NULL;
	return -EBADMSG;
}

/* Adds the lines of a message. Returns 0, -EBADMSG, or an error of valid_lines__add(). */
static int add_message(struct valid_lines *lines, const struct broker_message *message)
{
	char *text;
	size_t size;
	int ret;

	if (!message->packed)
		return valid_lines__add(lines, message->bytes, message->size);
	ret = source__unpack(message, &text, &size);
	if (ret)
		return ret;
	ret = valid_lines__add(lines, text, size);
	free(text);
	return ret;
}

/* Reads all messages that there are. Returns 0 or a negative errno with a sentence in err. */
static int read_all(struct broker_reader *reader, struct valid_lines *lines, uint64_t *bad, char *err, size_t err_size)
{
	struct broker_message message;
	int ret, added;

	while ((ret = broker_reader__next(reader, &message, err, err_size)) > 0) {
		added = add_message(lines, &message);
		if (added == -EBADMSG) {
			(*bad)++;
		} else if (added) {
			snprintf(err, err_size, "no room for the records (TMPDIR or /tmp): %s", strerror(-added));
			return added;
		}
	}
	return ret;
}

int source__results(const struct source_options *options, struct source_results *results, char *err, size_t err_size)
{
	struct broker_reader *reader = NULL;
	struct valid_lines *lines = NULL;
	char filter[WIRE_SUBJECT_MAX];
	int ret;

	memset(results, 0, sizeof(*results));
	ret = source__open(&reader, options, WIRE_OUT, &results->job, err, err_size);
	if (ret)
		return ret;
	wire__subject(filter, sizeof(filter), WIRE_OUT, &results->job, NULL);
	ret = broker_reader__start(reader, filter, 0, err, err_size);
	if (ret)
		goto out;
	errno = ENOMEM;
	lines = valid_lines__new();
	if (lines)
		ret = read_all(reader, lines, &results->bad, err, err_size);
	if (!ret && lines) {
		struct valid_counts counts = valid_lines__counts(lines);

		results->bad += counts.bad;
		if (!counts.valid) {
			snprintf(err, err_size, "job %s has no results yet: its first window has not been judged",
				 results->job.job);
			ret = -ENODATA;
			goto out;
		}
		results->file = valid_lines__file(lines);
	}
	if (!ret && !results->file) {
		ret = -errno;
		snprintf(err, err_size, "no room for the records (TMPDIR or /tmp): %s", strerror(-ret));
	}
out:
	valid_lines__free(lines);
	broker_reader__close(reader);
	return ret;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_file.h"
#include "capture/capture_merge.h"
#include "capture/stream_merge.h"

struct merged;

/* A file as a source. */
struct merged_file {
	struct merge_reader reader; /* first */
	struct capture_file *file;
	struct merged *merged;
};

struct merged {
	struct merged_file *files;
	size_t count;
	int trouble; /* 1 cut short, or the errno of the worst file */
	char *err;   /* first sentence only */
	size_t err_size;
};

/* A file that is damaged or cut ends early. */
static int next(struct merge_reader *reader, struct stream_event *event)
{
	struct merged_file *file = (struct merged_file *)reader;
	struct merged *merged = file->merged;
	char ignored[256], *err = merged->trouble ? ignored : merged->err;
	size_t err_size = merged->trouble ? sizeof(ignored) : merged->err_size;
	int ret = capture_file__next(file->file, event, err, err_size);

	if (ret == -ENODATA && !merged->trouble)
		merged->trouble = 1;
	else if (ret < 0 && ret != -ENODATA && merged->trouble >= 0)
		merged->trouble = ret;
	return ret > 0 ? ret : 0;
}

static int merge_files(struct merged *merged, struct stream_merge *merge, struct merge_watch *watch)
{
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < merged->count; i++)
		ret = stream_merge__add(merge, &merged->files[i].reader);
	if (ret < 0)
		return ret;
	do {
		ret = stream_merge__advance(merge);
		if (watch)
			watch->held(watch, stream_merge__bytes(merge));
	} while (ret > 0);
	return ret ? ret : stream_merge__finish(merge, !merged->trouble);
}

int capture_merge(const char *const *paths, size_t count, int run, struct stream_sink *sink, struct merge_watch *watch,
		  char *err, size_t err_size)
{
	struct merged merged = {.count = count, .err = err, .err_size = err_size};
	struct stream_merge *merge = NULL;
	int ret = -ENOMEM;

	if (!count) {
		snprintf(err, err_size, "no capture given");
		return -EINVAL;
	}
	merged.files = calloc(count, sizeof(*merged.files));
	merge = stream_merge__new(sink, MERGE_LINES_FIRST);
	if (!merged.files || !merge)
		goto cleanup;
	for (size_t i = 0; i < count; i++) {
		merged.files[i] = (struct merged_file){.reader = {.next = next}, .merged = &merged};
		merged.files[i].file = capture_file__open(paths[i], run, err, err_size);
		if (!merged.files[i].file) {
			ret = -errno;
			goto cleanup;
		}
	}
	ret = merge_files(&merged, merge, watch);
	if (ret)
		snprintf(err, err_size, "the replay stopped: %s", strerror(-ret));
	else
		ret = merged.trouble;
cleanup:
	for (size_t i = 0; merged.files && i < count; i++)
		capture_file__close(merged.files[i].file);
	free(merged.files);
	stream_merge__free(merge);
	return ret;
}

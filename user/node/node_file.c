// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/node_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/sealed_file.h"

#define KIND "node" /* of checkpoint: see archive__seal() */

static const size_t file_most = 32UL << 20, memory_most = 64UL << 20; /* bytes */

int node_file__write(const char *path, struct node_run *run, char *err, size_t err_size)
{
	struct archive *archive;
	uint8_t *data = NULL;
	size_t size = 0;
	int error;

	archive = archive__new();
	error = archive ? 0 : -ENOMEM;
	if (!error) {
		node_run__archive(archive, run);
		data = archive__seal(archive, KIND, &size);
		error = data ? sealed_file__replace(path, data, size) : archive__error(archive);
	}
	if (error == -EINVAL)
		snprintf(err, err_size, "%s cannot be written: it is no regular file", path);
	else if (error)
		snprintf(err, err_size, "%s cannot be written: %s", path, strerror(-error));
	free(data);
	archive__free(archive);
	return error;
}

int node_file__parse(const uint8_t *data, size_t size, struct node_run **run, char *err, size_t err_size)
{
	struct archive *archive = archive__unseal(data, size, KIND, memory_most);
	int error = -ENOMEM;

	*run = node_run__empty();
	if (archive && *run) {
		node_run__archive(archive, *run);
		archive__end(archive);
		error = archive__error(archive);
	}
	if (error) {
		snprintf(err, err_size, "%s", archive && *run ? archive__why(archive) : "out of memory");
		node_run__free(*run);
		*run = NULL;
	}
	archive__free(archive);
	return error;
}

int node_file__read(const char *path, struct node_run **run, char *err, size_t err_size)
{
	char why[256] = "out of memory";
	uint8_t *data;
	size_t size;
	int error = sealed_file__read(path, file_most, &data, &size, why, sizeof(why));

	*run = NULL;
	if (!error)
		error = node_file__parse(data, size, run, why, sizeof(why));
	if (error)
		snprintf(err, err_size, "%s is no profile of a node: %s", path, why);
	free(data);
	return error;
}

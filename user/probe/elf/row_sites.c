// SPDX-License-Identifier: GPL-2.0-or-later
/* The requesting side of rows: each field of the response is checked before use. */
#include "probe/elf/row_sites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "probe/elf/exits.h"
#include "probe/elf/row_sites_private.h"
#include "sandbox/user_file.h"

int row_sites__skip(struct row_sites *sites, const char *function, uint64_t entry, const char *reason)
{
	struct row_skip skip = {strdup(function), strdup(reason), entry};

	if (!skip.function || !skip.reason ||
	    grow(&sites->skips, &sites->skip_room, sites->skip_count + 1, sizeof(*sites->skips))) {
		free(skip.function);
		free(skip.reason);
		return -ENOMEM;
	}
	sites->skips[sites->skip_count++] = skip;
	return 0;
}

static uint64_t cookie_of(unsigned int row, enum site_class class, bool exit)
{
	return row | KERNEL_SITE_OWN | (class == SITE_STEPPED ? KERNEL_SITE_STEPPED : 0) |
	       (exit ? KERNEL_SITE_EXIT : 0);
}

/* Reads a file offset that a probe may go to. */
static uint64_t get_offset(struct flat_reader *reader, uint64_t file_bytes)
{
	return flat__get_upto(reader, file_bytes ? file_bytes - 1 : 0);
}

static enum site_class get_class(struct flat_reader *reader)
{
	return (enum site_class)flat__get_upto(reader, SITE_STEPPED);
}

static int get_function(struct row_sites *sites, struct flat_reader *reader, const unsigned int *rows, size_t count,
			uint64_t file_bytes)
{
	size_t index = (size_t)flat__get_upto(reader, count - 1), exits;
	struct row_function function = {.row = rows ? rows[index] : 0};
	const char *name = flat__get_text(reader, ROW_TEXT_MAX);
	enum site_class class;
	uint64_t shift, size;

	function.entry = get_offset(reader, file_bytes);
	size = flat__get_upto(reader, file_bytes - function.entry);
	shift = flat__get_upto(reader, file_bytes - function.entry);
	class = get_class(reader);
	exits = flat__get_count(reader, ROW_EXIT_BYTES);
	if (exits > EXITS_MAX)
		reader->bad = true;
	if (reader->bad)
		return 0;
	function.name = strdup(name);
	function.sites = calloc(exits + 1, sizeof(*function.sites));
	if (!function.name || !function.sites ||
	    grow(&sites->functions, &sites->function_room, sites->function_count + 1, sizeof(*sites->functions))) {
		free(function.name);
		free(function.sites);
		return -ENOMEM;
	}
	function.shifted = shift != 0;
	function.stepped = class == SITE_STEPPED;
	function.sites[function.site_count++] =
	    (struct row_site){function.entry + shift, cookie_of(function.row, class, false)};
	for (size_t i = 0; i < exits; i++) {
		uint64_t offset = get_offset(reader, file_bytes);

		class = get_class(reader);
		function.sites[function.site_count++] = (struct row_site){offset, cookie_of(function.row, class, true)};
		function.exit_sites++;
		function.ends_elsewhere |= offset - function.entry >= size;
		function.exit_stepped += class == SITE_STEPPED;
	}
	sites->functions[sites->function_count++] = function;
	return 0;
}

static int get(struct row_sites *sites, struct flat_reader *reader, const unsigned int *rows, size_t count,
	       uint64_t file_bytes)
{
	int status = 0;
	size_t left;

	snprintf(sites->build_id, sizeof(sites->build_id), "%s", flat__get_text(reader, IMAGE_BUILD_ID_MAX - 1));
	for (left = flat__get_count(reader, ROW_FUNCTION_BYTES); left && !status && !reader->bad; left--)
		status = get_function(sites, reader, rows, count, file_bytes);
	for (left = flat__get_count(reader, ROW_SKIP_BYTES); left && !status && !reader->bad; left--) {
		const char *function = flat__get_text(reader, ROW_TEXT_MAX);
		uint64_t entry = get_offset(reader, file_bytes);

		status = row_sites__skip(sites, function, entry, flat__get_text(reader, ROW_TEXT_MAX));
	}
	return status ? status : flat__done(reader) ? 0 : -EBADMSG;
}

static struct row_sites *query(int fd, uid_t owner, const char *label, const struct flat *about,
			       const unsigned int *rows, size_t count, char *err, size_t err_size)
{
	struct confine_query query = {
	    .service = ROW_SITES_SERVICE, .about = about, .files = {fd}, .file_count = 1, .owner = owner};
	struct row_sites *sites = calloc(1, sizeof(*sites));
	struct confine_response response = {0};
	struct flat_reader reader;
	char sentence[256] = "out of memory";
	int status = -ENOMEM;
	struct stat st;

	if (!sites || about->failed)
		goto out;
	status = confine__query(&query, &response, sentence, sizeof(sentence));
	if (status)
		goto out;
	reader = (struct flat_reader){.at = response.data, .end = response.data + response.size};
	status = user_file__stat(fd, &st) ? -EIO : get(sites, &reader, rows, count, (uint64_t)st.st_size);
	snprintf(sentence, sizeof(sentence), "%s",
		 status == -EBADMSG ? "its confined reader gave a response that makes no sense" : strerror(-status));
out:
	free(response.data);
	if (!status)
		return sites;
	snprintf(err, err_size, "%s: %s", label, sentence);
	row_sites__free(sites);
	errno = -status;
	return NULL;
}

static unsigned int arguments_of(const struct function_row *row)
{
	return functions__arguments(row) | (row->forked ? 1U << (row->forked - 1) : 0);
}

struct row_sites *row_sites__query(int fd, uid_t owner, const char *label, const unsigned int *rows, size_t count,
				   char *err, size_t err_size)
{
	struct row_sites *sites;
	struct flat about = {0};

	flat__put(&about, 0);
	flat__put(&about, false);
	flat__put(&about, count);
	for (size_t i = 0; i < count; i++) {
		const struct function_row *row = functions__row(rows[i]);

		flat__put_text(&about, row->symbol);
		flat__put(&about, row->kind);
		flat__put(&about, arguments_of(row));
	}
	sites = query(fd, owner, label, &about, rows, count, err, err_size);
	free(about.data);
	return sites;
}

struct row_sites *row_sites__query_at(int fd, uid_t owner, const char *label, uint64_t offset, bool all,
				      enum kernel_row_kind kind, char *err, size_t err_size)
{
	struct row_sites *sites;
	struct flat about = {0};

	flat__put(&about, offset + 1);
	flat__put(&about, all);
	flat__put(&about, 1);
	flat__put_text(&about, "");
	flat__put(&about, kind);
	flat__put(&about, 0);
	sites = query(fd, owner, label, &about, NULL, 1, err, err_size);
	free(about.data);
	return sites;
}

void row_sites__number(struct row_function *function, unsigned int row)
{
	function->row = row;
	for (size_t i = 0; i < function->site_count; i++)
		function->sites[i].cookie = (function->sites[i].cookie & ~(uint64_t)KERNEL_SITE_ROW) | row;
}

void row_sites__free(struct row_sites *sites)
{
	if (!sites)
		return;
	for (size_t i = 0; i < sites->function_count; i++) {
		free(sites->functions[i].name);
		free(sites->functions[i].sites);
	}
	for (size_t i = 0; i < sites->skip_count; i++) {
		free(sites->skips[i].function);
		free(sites->skips[i].reason);
	}
	free(sites->functions);
	free(sites->skips);
	free(sites);
}

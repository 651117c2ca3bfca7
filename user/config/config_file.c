// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/config_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECTION_BYTES 64
#define LINE_BYTES 16384

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]); end--)
		;
	*end = 0;
	return text;
}

static void cut_comment(char *text)
{
	for (char *at = text; *at; at++) {
		if (*at == '#' && (at == text || isspace((unsigned char)at[-1]))) {
			*at = 0;
			return;
		}
	}
}

/* Reads one trimmed line; section holds the last section's name. */
static int read_line(char *text, char *section, const char *prefix, config_file_line call, void *ctx, char *err,
		     size_t err_size)
{
	struct config_line line = {.section = section, .name = text, .prefix = prefix};
	size_t length = strlen(text);
	char *value;

	if (*text == '[') {
		if (text[length - 1] != ']' || length - 2 >= SECTION_BYTES) {
			snprintf(err, err_size, "%sexpected '[section]', found '%s'", prefix, text);
			return -EINVAL;
		}
		text[length - 1] = 0;
		snprintf(section, SECTION_BYTES, "%s", trim(text + 1));
		line.name = section;
		return call(ctx, &line, err, err_size);
	}
	value = strchr(text, '=');
	if (!value) {
		snprintf(err, err_size, "%sexpected 'name = value', found '%s'", prefix, text);
		return -EINVAL;
	}
	*value++ = 0;
	line.name = trim(text);
	line.value = trim(value);
	return call(ctx, &line, err, err_size);
}

int config_file__read(const char *path, config_file_line call, void *ctx, char *err, size_t err_size)
{
	char line[LINE_BYTES], prefix[512], section[SECTION_BYTES] = "";
	unsigned number = 0;
	int ret = 0;
	FILE *file = fopen(path, "re");

	if (!file) {
		ret = -errno;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
		return ret;
	}
	errno = 0;
	while (!ret && fgets(line, sizeof(line), file)) {
		char *text;

		number++;
		if (!strchr(line, '\n') && !feof(file)) { /* NUL bytes hide the end of a line, too */
			snprintf(err, err_size, "%s:%u: not a line of text of at most %d bytes", path, number,
				 LINE_BYTES - 2);
			ret = -EINVAL;
			break;
		}
		cut_comment(line);
		text = trim(line);
		if (!*text || *text == ';')
			continue;
		snprintf(prefix, sizeof(prefix), "%s:%u: ", path, number);
		ret = read_line(text, section, prefix, call, ctx, err, err_size);
	}
	if (!ret && ferror(file)) {
		ret = errno ? -errno : -EIO;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
	}
	fclose(file);
	return ret;
}

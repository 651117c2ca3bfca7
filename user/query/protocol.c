// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GREETING "vapro/1 diagnose"
#define WIDTH_MAX 10000

static const char *const error_name[QUERY_ERRORS] = {
    [QUERY_USAGE] = "usage", [QUERY_REFUSED] = "refused", [QUERY_FAILED] = "failed"};

/* Returns whether a text has no control characters; a command line holds none that mean anything. */
static bool is_text(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	}
	return true;
}

static bool parse_count(const char *text, unsigned long most, unsigned long *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return !errno && !*end && *number <= most;
}

static int set(struct query_request *request, const char *key, const char *value, char *err, size_t err_size)
{
	unsigned long number;

	if (!strcmp(key, "region") && !request->region.given) {
		if ((size_t)snprintf(request->region_text, sizeof(request->region_text), "%s", value) >=
		    sizeof(request->region_text)) {
			snprintf(err, err_size, "the region is too long");
			return -EINVAL;
		}
		return region_option__parse(&request->region, value, err, err_size);
	}
	if (!strcmp(key, "job") && !*request->job && *value && strlen(value) < sizeof(request->job)) {
		strcpy(request->job, value);
		return 0;
	}
	if (!strcmp(key, "jobs") && !strcmp(value, "all")) {
		request->jobs = true;
		return 0;
	}
	if (!strcmp(key, "format") && (!strcmp(value, "json") || !strcmp(value, "text"))) {
		request->json = *value == 'j';
		return 0;
	}
	if (!strcmp(key, "width") && parse_count(value, WIDTH_MAX, &number)) {
		request->width = (unsigned int)number;
		return 0;
	}
	snprintf(err, err_size, "unknown request line '%.40s %.80s'", key, value);
	return -EINVAL;
}

static int parse_line(struct query_request *request, const char *line, size_t length, char *err, size_t err_size)
{
	char text[QUERY_REQUEST_MAX], *value;

	if (!is_text(line, length) || length >= sizeof(text)) {
		snprintf(err, err_size, "the request is not text");
		return -EINVAL;
	}
	memcpy(text, line, length);
	text[length] = 0;
	value = strchr(text, ' ');
	if (value)
		*value++ = 0;
	return set(request, text, value ? value : "", err, err_size);
}

int query_request__parse(const char *text, size_t size, struct query_request *request, char *err, size_t err_size)
{
	const char *at = text, *end = text + size, *stop;
	size_t greeting = strlen(GREETING);
	int error;

	*request = (struct query_request){.width = 80};
	/* a foreign greeting is refused at once, before the rest arrives */
	if (memcmp(text, GREETING "\n", size < greeting + 1 ? size : greeting + 1)) {
		snprintf(err, err_size, "this is not a request that this vaprod understands");
		return -EINVAL;
	}
	for (; (stop = memchr(at, '\n', (size_t)(end - at))); at = stop + 1) {
		if (at == text)
			continue;
		if (stop == at) {
			if (request->region.given != request->jobs)
				return 0;
			snprintf(err, err_size, "the request has no region, or more than a region");
			return -EINVAL;
		}
		error = parse_line(request, at, (size_t)(stop - at), err, err_size);
		if (error)
			return error;
	}
	if (size < QUERY_REQUEST_MAX)
		return -EAGAIN;
	snprintf(err, err_size, "the request is longer than %d bytes", QUERY_REQUEST_MAX);
	return -EINVAL;
}

int query_request__format(const struct query_request *request, char *buf, size_t size)
{
	bool job = *request->job;
	int length;

	if (request->jobs)
		return snprintf(buf, size, GREETING "\njobs all\n\n") < (int)size ? (int)strlen(buf) : -EINVAL;
	length =
	    snprintf(buf, size, GREETING "\nregion %s\n%s%s%sformat %s\nwidth %u\n\n", request->region_text,
		     job ? "job " : "", request->job, job ? "\n" : "", request->json ? "json" : "text", request->width);

	return length < 0 || (size_t)length >= size || length > QUERY_REQUEST_MAX ? -EINVAL : length;
}

int query_head__parse(char *text, struct query_head *head)
{
	char *rest = strchr(text, ' '), *sentence;
	unsigned long bytes;

	*head = (struct query_head){.sentence = ""};
	if (!rest || !is_text(text, strlen(text)))
		return -EINVAL;
	*rest++ = 0;
	if (!strcmp(text, "note")) {
		*head = (struct query_head){.line = QUERY_NOTE, .sentence = rest};
		return 0;
	}
	if (!strcmp(text, "ok") && parse_count(rest, QUERY_RESPONSE_MAX, &bytes)) {
		*head = (struct query_head){.line = QUERY_OK, .bytes = bytes, .sentence = ""};
		return 0;
	}
	sentence = strchr(rest, ' ');
	if (strcmp(text, "error") || !sentence)
		return -EINVAL;
	*sentence++ = 0;
	for (int error = 0; error < QUERY_ERRORS; error++) {
		if (!strcmp(rest, error_name[error])) {
			*head = (struct query_head){
			    .line = QUERY_ERROR, .error = (enum query_error)error, .sentence = sentence};
			return 0;
		}
	}
	return -EINVAL;
}

char *query_head__format(const struct query_head *head, char *buf, size_t size)
{
	if (head->line == QUERY_OK)
		snprintf(buf, size, "ok %zu\n", head->bytes);
	else if (head->line == QUERY_NOTE)
		snprintf(buf, size, "note %.*s\n", QUERY_SENTENCE_MAX - 1, head->sentence);
	else
		snprintf(buf, size, "error %s %.*s\n", error_name[head->error], QUERY_SENTENCE_MAX - 1, head->sentence);
	return buf;
}

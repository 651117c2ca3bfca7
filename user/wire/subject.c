// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#include "wire/subject.h"

#define HASH_DIGITS 16
#define CUT_MARK "=g"
#define EMPTY "=-"
#define JOIN "=="
#define JOB_ROOM 12 /* letters for the joint and a uid */

static const char *const role_words[WIRE_ROLES] = {
    [WIRE_IN] = "in", [WIRE_OUT] = "out", [WIRE_STATE] = "state", [WIRE_REQ] = "req"};

static bool has_job(enum wire_role role)
{
	return role != WIRE_REQ;
}

static bool has_host(enum wire_role role)
{
	return role == WIRE_IN || role == WIRE_REQ;
}

bool wire_job__equal(const struct wire_job *a, const struct wire_job *b)
{
	return a->user == b->user && !strcmp(a->job, b->job) && !strcmp(a->cluster, b->cluster);
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Escapes at most most bytes of the result; an escape is never split. Returns the length of all of it. */
static size_t escape(char *token, size_t most, const char *text)
{
	size_t length = 0, written = 0;

	for (; *text; text++) {
		size_t bytes = is_plain(*text) ? 1 : 3;

		if (length + bytes <= most) {
			written = length + bytes;
			if (bytes == 1)
				token[length] = *text;
			else
				snprintf(token + length, 4, "=%02X", (unsigned)(uint8_t)*text);
		}
		length += bytes;
	}
	token[written] = 0;
	return length;
}

/* A text of n bytes has at most 3 n letters: a part of a token that is cut needs room for the mark and the hash. */
static int escape_within(char *token, size_t size, size_t most, const char *text)
{
	char whole[WIRE_TOKEN_MAX + 1];
	size_t length;

	if (!*text) {
		length = (size_t)snprintf(whole, sizeof(whole), EMPTY);
	} else if (escape(whole, most, text) > most) {
		escape(whole, most - (sizeof(CUT_MARK) - 1) - HASH_DIGITS, text);
		length = strlen(whole);
		length += (size_t)snprintf(whole + length, sizeof(whole) - length, CUT_MARK "%0*" PRIx64, HASH_DIGITS,
					   text__hash(text, strlen(text)));
	} else {
		length = strlen(whole);
	}
	if (length >= size)
		return -ENOSPC;
	memcpy(token, whole, length + 1);
	return 0;
}

int wire__token(char *token, size_t size, const char *text)
{
	return escape_within(token, size, WIRE_TOKEN_MAX, text);
}

int wire_job__token(char *token, size_t size, const struct wire_job *job)
{
	char text[WIRE_TOKEN_MAX + 1];
	int length;

	escape_within(text, sizeof(text), WIRE_TOKEN_MAX - JOB_ROOM, job->job);
	length = snprintf(token, size, "%s" JOIN "%u", text, job->user);
	return (size_t)length < size ? 0 : -ENOSPC;
}

int wire__filter(char *filter, size_t size, enum wire_role role, const char *cluster, const struct wire_job *job,
		 const char *host)
{
	char tokens[3][WIRE_TOKEN_MAX + 1] = {"*", "*", "*"};
	int length;

	if (cluster)
		wire__token(tokens[0], sizeof(tokens[0]), cluster);
	if (job)
		wire_job__token(tokens[1], sizeof(tokens[1]), job);
	if (host)
		wire__token(tokens[2], sizeof(tokens[2]), host);
	length =
	    snprintf(filter, size, WIRE_PREFIX ".%s.%s%s%s%s%s", role_words[role], tokens[0], has_job(role) ? "." : "",
		     has_job(role) ? tokens[1] : "", has_host(role) ? "." : "", has_host(role) ? tokens[2] : "");
	return (size_t)length < size ? 0 : -ENOSPC;
}

int wire__subject(char *subject, size_t size, enum wire_role role, const struct wire_job *job, const char *host)
{
	return wire__filter(subject, size, role, job->cluster, job, host);
}

int wire__message_id(char *id, size_t size, uint64_t run, const struct wire_job *job, uint64_t sequence)
{
	char token[WIRE_TOKEN_MAX + 1];
	int length;

	wire_job__token(token, sizeof(token), job);
	length = snprintf(id, size, "%016" PRIx64 "-%s-%" PRIu64, run, token, sequence);
	return (size_t)length < size ? 0 : -ENOSPC;
}

static int hex(char digit)
{
	return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Reads a token of so many letters back. Returns 0, 1 where it was cut, or -EINVAL. */
static int unescape(char *text, size_t size, const char *token, size_t length)
{
	size_t used = 0;

	if (length == sizeof(EMPTY) - 1 && !memcmp(token, EMPTY, length)) {
		*text = 0;
		return 0;
	}
	for (size_t i = 0; i < length; i++) {
		char byte = token[i];

		if (byte == '=') {
			int high, low;

			if (length - i == sizeof(CUT_MARK) - 1 + HASH_DIGITS && token[i + 1] == CUT_MARK[1]) {
				text[used] = 0;
				return 1;
			}
			high = length - i > 2 ? hex(token[i + 1]) : -1;
			low = high >= 0 ? hex(token[i + 2]) : -1;
			byte = low < 0 ? 0 : (char)(high << 4 | low);
			if (!byte || is_plain(byte))
				return -EINVAL; /* one text has one token */
			i += 2;
		} else if (!is_plain(byte)) {
			return -EINVAL;
		}
		if (used + 1 >= size)
			return -EINVAL;
		text[used++] = byte;
	}
	text[used] = 0;
	return used ? 0 : -EINVAL;
}

/* Finds the joint of a job's token, which no escape contains: `=` is followed by a digit, `-` or `g` there. */
static const char *joint(const char *token, size_t length)
{
	for (size_t i = 0; i + 1 < length; i++) {
		if (token[i] == '=' && token[i + 1] == '=')
			return token + i;
	}
	return NULL;
}

static int parse_job(struct wire_job *job, const char *token, size_t length)
{
	const char *user = joint(token, length);
	unsigned long long number;
	char *after;

	if (!user || !isdigit((unsigned char)user[2]))
		return -EINVAL;
	number = strtoull(user + 2, &after, 10);
	if (after != token + length || number > UINT32_MAX || (user[2] == '0' && after != user + 3))
		return -EINVAL;
	job->user = (uint32_t)number;
	return unescape(job->job, sizeof(job->job), token, (size_t)(user - token));
}

int wire_subject__parse(struct wire_subject *parsed, const char *subject)
{
	const char *token = subject + sizeof(WIRE_PREFIX);
	size_t lengths[4], count = 0;
	const char *tokens[4];
	int cut = 0, ret;

	memset(parsed, 0, sizeof(*parsed));
	if (strncmp(subject, WIRE_PREFIX ".", sizeof(WIRE_PREFIX)))
		return -EINVAL;
	for (bool more = true; more; token += lengths[count++] + 1) {
		if (count == 4)
			return -EINVAL;
		tokens[count] = token;
		lengths[count] = strcspn(token, ".");
		more = token[lengths[count]];
	}
	while (parsed->role < WIRE_ROLES && (strlen(role_words[parsed->role]) != lengths[0] ||
					     memcmp(role_words[parsed->role], tokens[0], lengths[0])))
		parsed->role++;
	if (parsed->role == WIRE_ROLES || count != 2U + has_job(parsed->role) + has_host(parsed->role))
		return -EINVAL;
	cut = unescape(parsed->job.cluster, sizeof(parsed->job.cluster), tokens[1], lengths[1]);
	if (cut >= 0 && has_job(parsed->role)) {
		ret = parse_job(&parsed->job, tokens[2], lengths[2]);
		cut = ret < 0 ? ret : cut | ret;
	}
	if (cut >= 0 && has_host(parsed->role)) {
		ret = unescape(parsed->host, sizeof(parsed->host), tokens[count - 1], lengths[count - 1]);
		cut = ret < 0 ? ret : cut | ret;
	}
	parsed->cut = cut > 0;
	return cut < 0 ? -EINVAL : 0;
}

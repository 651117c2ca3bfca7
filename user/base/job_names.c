// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/job_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"

#define LONE_PID "none:pid-" /* begin of the identity of a process without a launcher */

const char *const job_names_source_name[JOB_NAMES_SOURCES] = {
    [JOB_NAMES_NONE] = "", [JOB_NAMES_ENVIRONMENT] = "environment", [JOB_NAMES_PROLOG] = "prolog"};

void job_names__copy(char to[JOB_NAME_SIZE], const char *from)
{
	size_t used = 0;

	while (from && *from) {
		size_t bytes = utf8__length(from);
		bool valid = bytes > 0;

		bytes = valid ? bytes : 1;
		if (used + bytes >= JOB_NAME_SIZE)
			break;
		if (valid)
			memcpy(to + used, from, bytes);
		else
			to[used] = '?';
		used += bytes;
		from += bytes;
	}
	to[used] = '\0';
	printable(to);
}

uint32_t job_names__nodes(const char *text)
{
	unsigned long value;
	char *end;

	if (!text || !isdigit((unsigned char)*text))
		return 0;
	errno = 0;
	value = strtoul(text, &end, 10);
	return errno || *end || value > JOB_NODES_MOST ? 0 : (uint32_t)value;
}

/* Reads one line of a file of names. Returns whether it is the uid's, and that of the job's user. */
static bool parse_line(const char *key, const char *value, uint32_t uid, struct job_names *names)
{
	char own[16];

	if (!strcmp(key, "name"))
		job_names__copy(names->name, value);
	else if (!strcmp(key, "account"))
		job_names__copy(names->account, value);
	else if (!strcmp(key, "partition"))
		job_names__copy(names->partition, value);
	else if (!strcmp(key, "user"))
		job_names__copy(names->user, value);
	else if (!strcmp(key, "nodes"))
		names->nodes = job_names__nodes(value);
	snprintf(own, sizeof(own), "%u", uid);
	return !strcmp(key, "uid") && !strcmp(value, own);
}

bool job_names__parse(char *text, uint32_t uid, struct job_names *names)
{
	bool owned = false;

	*names = (struct job_names){.source = JOB_NAMES_PROLOG};
	while (*text) {
		size_t length = strcspn(text, "\n");
		char *next = text + length + (text[length] == '\n'), *equals;

		text[length] = '\0';
		equals = strchr(text, '=');
		if (equals) {
			*equals = '\0';
			owned |= parse_line(text, equals + 1, uid, names);
		}
		text = next;
	}
	return owned && names->name[0];
}

/* Returns whether an identity goes on with its step or its host, or ends, where the part of its id has ended. */
static bool ends_id(const char *rest)
{
	return !*rest || *rest == '.' || *rest == '@';
}

bool job_names__match(const char *wanted, const char *identity)
{
	size_t length = wanted ? strlen(wanted) : 0;
	const char *id = identity ? strchr(identity, ':') : NULL;

	if (!wanted || !identity || !strcmp(wanted, identity))
		return !wanted || identity;
	if (!length)
		return false;
	if (!strncmp(identity, wanted, length) && strchr(wanted, ':') && ends_id(identity + length))
		return true;
	/* numbers alone are those of a resource manager: those that launchers draw are no names of jobs */
	return id && isalnum((unsigned char)*wanted) && !strncmp(id + 1, wanted, length) && ends_id(id + 1 + length) &&
	       strncmp(identity, "none:", 5) != 0 && strncmp(identity, "mpi:", 4) != 0 &&
	       strncmp(identity, "pmix:", 5) != 0 && strncmp(identity, "distributed:", 12) != 0;
}

char *job_names__short(const char *identity, char *buf)
{
	const char *colon = strchr(identity, ':'), *host = strrchr(identity, '@');
	const char *id = colon ? colon + 1 : identity;
	size_t kind = colon ? (size_t)(colon - identity) : 0,
	       length = host && host > id ? (size_t)(host - id) : strlen(id);
	bool lone = !strncmp(identity, LONE_PID, strlen(LONE_PID));
	const char *step = memrchr(id, '.', length);

	if (lone) {
		snprintf(buf, JOB_IDENTITY_SHORT_SIZE, "process %.*s", (int)(length - strlen("pid-")),
			 id + strlen("pid-"));
		return buf;
	}
	/* the step of an identity with a host is a number that the launcher drew */
	if (host && step && strncmp(identity, "mpi:", 4) != 0)
		length = (size_t)(step - id);
	snprintf(buf, JOB_IDENTITY_SHORT_SIZE, "%.*s%s%.*s", (int)(kind > 16 ? 16 : kind), identity, kind ? " " : "",
		 (int)(length > 64 ? 64 : length), id);
	return buf;
}

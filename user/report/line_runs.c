/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/line_runs.h"

struct run {
	off_t offset; /* offset of the run's first line */
	uint64_t line;
};

struct host {
	char *name;
	struct run *runs;
	size_t run_count, run_capacity;
	size_t chosen; /* number of the chosen run, from 1; 0: none */
	size_t at;     /* number of the present line's run, from 1 */
};

struct line_runs {
	struct host *hosts;
	size_t host_count, host_capacity;
	bool has; /* the previous line was in a chosen run */
};

static const char *text_of(const cJSON *line, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, key));
}

static bool is_hello(const cJSON *line)
{
	const char *type = text_of(line, "type");

	return type && !strcmp(type, "hello");
}

/* Finds the host of a line, or returns NULL. */
static struct host *find_host(struct line_runs *runs, const cJSON *line)
{
	const char *name = text_of(line, "host");

	for (size_t i = 0; i < runs->host_count; i++) {
		if (!strcmp(runs->hosts[i].name, name ? name : ""))
			return &runs->hosts[i];
	}
	return NULL;
}

/* Returns 0 or -ENOMEM. */
static int add_run(struct line_runs *runs, const cJSON *line, struct run run)
{
	struct host *host = find_host(runs, line);
	const char *name = text_of(line, "host");

	if (!host) {
		if (grow(&runs->hosts, &runs->host_capacity, runs->host_count + 1, sizeof(*runs->hosts)))
			return -ENOMEM;
		host = &runs->hosts[runs->host_count];
		memset(host, 0, sizeof(*host));
		host->name = strdup(name ? name : "");
		if (!host->name)
			return -ENOMEM;
		runs->host_count++;
	}
	if (grow(&host->runs, &host->run_capacity, host->run_count + 1, sizeof(run)))
		return -ENOMEM;
	host->runs[host->run_count++] = run;
	return 0;
}

/* Compares the first "host" key, which every record has at its begin, without parsing all of a long line. */
static bool same_host(const char *text, const struct host *host)
{
	size_t length = strlen(host->name);
	const char *at = strstr(text, "\"host\":\"");

	return at && !strncmp(at + 8, host->name, length) && at[8 + length] == '"';
}

/* Returns 0 or -ENOMEM. */
static int add_line(struct line_runs *runs, const char *text, struct run run, size_t *last)
{
	bool hello = strstr(text, "\"type\":\"hello\"");
	cJSON *line;
	int ret = 0;

	/* most lines have the host of the previous line */
	if (!hello && *last < runs->host_count && same_host(text, &runs->hosts[*last]))
		return 0;
	line = cJSON_Parse(text);
	if (line && (is_hello(line) || !find_host(runs, line)))
		ret = add_run(runs, line, run);
	if (line && !ret)
		*last = (size_t)(find_host(runs, line) - runs->hosts);
	cJSON_Delete(line);
	return ret;
}

struct line_runs *line_runs__read(FILE *file)
{
	struct line_runs *runs = calloc(1, sizeof(*runs));
	size_t capacity = 0, last = 0;
	struct run run = {0};
	char *text = NULL;
	ssize_t length;
	int ret = runs ? 0 : -ENOMEM;

	errno = 0;
	while (!ret && (length = getline(&text, &capacity, file)) >= 0) {
		ret = add_line(runs, text, run, &last);
		run.offset += length;
		run.line++;
	}
	if (!ret && ferror(file))
		ret = errno ? -errno : -EIO;
	free(text);
	if (!ret)
		return runs;
	line_runs__free(runs);
	errno = -ret;
	return NULL;
}

void line_runs__free(struct line_runs *runs)
{
	for (size_t i = 0; runs && i < runs->host_count; i++) {
		free(runs->hosts[i].name);
		free(runs->hosts[i].runs);
	}
	if (runs)
		free(runs->hosts);
	free(runs);
}

size_t line_runs__count(const struct line_runs *runs)
{
	size_t most = 0;

	for (size_t i = 0; i < runs->host_count; i++)
		most = runs->hosts[i].run_count > most ? runs->hosts[i].run_count : most;
	return most;
}

size_t line_runs__choose(struct line_runs *runs, int run)
{
	size_t most = line_runs__count(runs), wanted = run < 0 ? (size_t)-run : (size_t)run;

	if (!wanted || wanted > most)
		return 0;
	for (size_t i = 0; i < runs->host_count; i++) {
		struct host *host = &runs->hosts[i];

		if (wanted > host->run_count)
			host->chosen = 0;
		else
			host->chosen = run < 0 ? host->run_count + 1 - wanted : wanted;
	}
	return run < 0 ? most + 1 - wanted : wanted;
}

off_t line_runs__begin(struct line_runs *runs, uint64_t *line)
{
	struct run first = {0};
	bool some = line_runs__count(runs) <= 1; /* a single run includes lines of no run */

	runs->has = some;
	for (size_t i = 0; i < runs->host_count; i++) {
		const struct host *host = &runs->hosts[i];

		if (host->chosen && (!some || host->runs[host->chosen - 1].offset < first.offset)) {
			first = host->runs[host->chosen - 1];
			some = true;
		}
	}
	/* counts the runs that other hosts have begun before */
	for (size_t i = 0; i < runs->host_count; i++) {
		struct host *host = &runs->hosts[i];

		for (host->at = 0; host->at < host->run_count && host->runs[host->at].offset < first.offset;)
			host->at++;
	}
	*line = first.line;
	return first.offset;
}

bool line_runs__has(struct line_runs *runs, const cJSON *line)
{
	struct host *host = line ? find_host(runs, line) : NULL;

	if (!host)
		return runs->has;
	/* a run without hello begins with the first line */
	if (is_hello(line) || !host->at)
		host->at++;
	runs->has = host->at == host->chosen;
	return runs->has;
}

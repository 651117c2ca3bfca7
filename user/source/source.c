// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/job_names.h"
#include "base/text.h"

#define LISTED_MOST 16 /* jobs in a sentence */

bool source__is_wanted(const struct source_options *options, const struct wire_job *job)
{
	struct wire_job named = {.user = job->user};
	char token[WIRE_TOKEN_MAX + 1], own[WIRE_TOKEN_MAX + 1];

	if (!options->job)
		return true;
	wire_job__token(own, sizeof(own), job);
	if (!strcmp(options->job, own) || job_names__match(options->job, job->job))
		return true;
	if (strlen(options->job) >= sizeof(named.job))
		return false;
	strcpy(named.job, options->job);
	return !wire_job__token(token, sizeof(token), &named) && !strcmp(token, own);
}

static int compare_jobs(const void *a, const void *b)
{
	const struct wire_subject *one = a, *other = b;
	int order = strcmp(one->job.cluster, other->job.cluster);

	if (!order)
		order = strcmp(one->job.job, other->job.job);
	return order ? order : (one->job.user > other->job.user) - (one->job.user < other->job.user);
}

/* Leaves each job of a sorted list once. Returns how many there are. */
static size_t unique(struct wire_subject *list, size_t count)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		if (!left || !wire_job__equal(&list[left - 1].job, &list[i].job))
			list[left++] = list[i];
	}
	return left;
}

static void list_jobs(const struct wire_subject *list, size_t count, char *err, size_t err_size)
{
	for (size_t i = 0; i < count && i < LISTED_MOST; i++) {
		text__append(err, err_size, "\n  --cluster %s --job %s", list[i].job.cluster, list[i].job.job);
		if (list[i].job.user)
			text__append(err, err_size, "  (uid %u)", list[i].job.user - 1);
	}
	if (count > LISTED_MOST)
		text__append(err, err_size, "\n  and %zu more", count - LISTED_MOST);
}

/* Chooses among the jobs of a stream. Returns 0, or -EINVAL with a sentence. */
static int choose(const struct source_options *options, struct wire_subject *list, size_t count, struct wire_job *job,
		  char *err, size_t err_size)
{
	size_t wanted = 0;

	if (count)
		qsort(list, count, sizeof(*list), compare_jobs);
	count = unique(list, count);
	for (size_t i = 0; i < count; i++) {
		if (!source__is_wanted(options, &list[i].job))
			continue;
		*job = list[i].job;
		list[wanted++] = list[i];
	}
	if (wanted == 1)
		return 0;
	*err = 0;
	if (!count)
		text__append(err, err_size, "there is no job yet%s%s", options->cluster ? " of cluster " : "",
			     options->cluster ? options->cluster : "");
	else if (!wanted)
		text__append(err, err_size, "there is no job '%.300s'; there are:", options->job);
	else
		text__append(err, err_size, "there are %zu jobs%s: choose one", wanted,
			     options->job ? " of that name" : "");
	/* where none is wanted the list still holds all */
	list_jobs(list, wanted ? wanted : count, err, err_size);
	return -EINVAL;
}

int source__open(struct broker_reader **reader, const struct source_options *options, enum wire_role role,
		 struct wire_job *job, char *err, size_t err_size)
{
	struct wire_subject *list = NULL;
	char filter[WIRE_SUBJECT_MAX];
	size_t count;
	int ret = broker_reader__open(reader, &options->broker, role, err, err_size);

	if (ret)
		return ret;
	wire__filter(filter, sizeof(filter), role, options->cluster, NULL, NULL);
	ret = broker_reader__subjects(*reader, filter, &list, &count, err, err_size);
	if (!ret)
		ret = choose(options, list, count, job, err, err_size);
	free(list);
	if (ret) {
		broker_reader__close(*reader);
		*reader = NULL;
	}
	return ret;
}

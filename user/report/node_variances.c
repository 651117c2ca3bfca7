// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/node_variances.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/json.h"
#include "report/record.h"

#define NODE_VARIANCES_MAX 4096
#define NODE_RANKS_MAX (1 << 20) /* of all variances */
#define INSIDE 0.5		 /* least share of a node's variance */

struct node_variance {
	char *host, *job;
	uint32_t user;
	uint64_t id, begin_ns, end_ns;
	enum vapro_class class;
	int32_t *ranks; /* ascending */
	uint32_t rank_count;
};

static void free_item(struct node_variance *item)
{
	free(item->host);
	free(item->job);
	free(item->ranks);
}

static void drop(struct node_variances *nodes, size_t at)
{
	nodes->rank_count -= nodes->items[at].rank_count;
	free_item(&nodes->items[at]);
	memmove(&nodes->items[at], &nodes->items[at + 1], (--nodes->count - at) * sizeof(*nodes->items));
}

static bool same(const struct node_variance *item, const struct node_variance *other)
{
	return item->id == other->id && item->user == other->user && !strcmp(item->host, other->host) &&
	       !strcmp(item->job, other->job);
}

/* Reads what the match needs. Returns 0, -EINVAL or -ENOMEM. */
static int read_record(const cJSON *record, struct node_variance *item)
{
	const char *type = record__text(record, KEY(head, type)), *scope = record__text(record, KEY(variance, scope));
	const char *host = record__text(record, KEY(head, host)), *job = record__text(record, KEY(of_job, job));
	double uid = record__number(record, KEY(of_job, uid), -1);
	int class = record__word(record__text(record, KEY(variance, class)), vapro_class_name, VAPRO_CLASSES);

	*item =
	    (struct node_variance){.id = record__uint(record, KEY(variance, id)), .class = (enum vapro_class) class};
	if (!type || strcmp(type, "variance") || !scope || strcmp(scope, "node") || !host || !job || !item->id ||
	    class == VAPRO_CLASSES || !record__time(record, KEY(variance, begin), &item->begin_ns) ||
	    !record__time(record, KEY(variance, end), &item->end_ns) || item->end_ns <= item->begin_ns)
		return -EINVAL;
	item->user = uid >= 0 && uid < UINT32_MAX ? (uint32_t)uid + 1 : 0;
	if (record__ranks(record__text(record, KEY(variance, ranks)), &item->ranks, &item->rank_count))
		return -ENOMEM;
	/* processes of unknown rank (-1, first) cannot be compared between hosts */
	if (!item->rank_count || item->ranks[0] < 0 || item->rank_count > NODE_RANKS_MAX)
		return -EINVAL;
	item->host = strdup(host);
	item->job = strdup(job);
	return item->host && item->job ? 0 : -ENOMEM;
}

int node_variances__note(struct node_variances *nodes, const cJSON *record)
{
	struct node_variance item;
	int error = read_record(record, &item);

	for (size_t i = nodes->count; !error && i-- > 0;) {
		if (same(&nodes->items[i], &item))
			drop(nodes, i);
	}
	while (!error && nodes->count &&
	       (nodes->count >= NODE_VARIANCES_MAX || nodes->rank_count + item.rank_count > NODE_RANKS_MAX))
		drop(nodes, 0);
	if (!error)
		error = grow(&nodes->items, &nodes->capacity, nodes->count + 1, sizeof(item)) ? -ENOMEM : 0;
	if (error) {
		free_item(&item);
		return error;
	}
	nodes->items[nodes->count++] = item;
	nodes->rank_count += item.rank_count;
	return 0;
}

static bool contains(const struct job_result *result, const struct result_variance *variance,
		     const struct node_variance *item)
{
	uint64_t begin = variance->begin_ns > item->begin_ns ? variance->begin_ns : item->begin_ns;
	uint64_t end = variance->end_ns < item->end_ns ? variance->end_ns : item->end_ns;
	uint32_t both = 0;

	if (item->class != variance->class || item->user != result->user || strcmp(item->job, result->job) ||
	    end <= begin || (double)(end - begin) < INSIDE * (double)(item->end_ns - item->begin_ns))
		return false;
	for (uint32_t i = 0, k = 0; i < item->rank_count && k < variance->rank_count;) {
		both += item->ranks[i] == variance->ranks[k];
		if (item->ranks[i] < variance->ranks[k])
			i++;
		else
			k++;
	}
	return both >= INSIDE * item->rank_count;
}

bool node_variances__add(const struct node_variances *nodes, cJSON *record, const struct job_result *result,
			 const struct result_variance *variance)
{
	cJSON *list = NULL, *entry;

	for (size_t i = 0; !result->partial && result->job && i < nodes->count; i++) {
		const struct node_variance *item = &nodes->items[i];

		if (!contains(result, variance, item))
			continue;
		if (!list && !(list = record__put_list(record, KEY(variance, contains))))
			return false;
		entry = record__append(list);
		if (!entry || !record__put_text(entry, KEY(contained_variance, host), item->host) ||
		    !record__put_uint(entry, KEY(contained_variance, id), item->id))
			return false;
	}
	return true;
}

void node_variances__clear(struct node_variances *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		free_item(&nodes->items[i]);
	free(nodes->items);
	*nodes = (struct node_variances){0};
}

static const struct archive_column item_columns[] = {
    ARCHIVE_ONE(struct node_variance, host),	 ARCHIVE_ONE(struct node_variance, job),
    ARCHIVE_ONE(struct node_variance, user),	 ARCHIVE_ONE(struct node_variance, id),
    ARCHIVE_ONE(struct node_variance, begin_ns), ARCHIVE_ONE(struct node_variance, end_ns),
    ARCHIVE_ONE(struct node_variance, class),
};
static const struct archive_table item_table = ARCHIVE_TABLE("variances of nodes", struct node_variance, item_columns);

static const struct archive_column rank_columns[] = {{"rank", ARCHIVE_I32, 1, 0, false}};
static const struct archive_table rank_table = {"ranks of nodes", rank_columns, 1, sizeof(int32_t)};

static void archive_item(struct archive *archive, struct node_variances *nodes, struct node_variance *item)
{
	uint32_t room = item->rank_count;

	archive__rows32(archive, &rank_table, &item->ranks, &item->rank_count, &room);
	if (!archive__reads(archive))
		return;
	item->host = archive__copy(archive, item->host);
	item->job = archive__copy(archive, item->job);
	nodes->rank_count += item->rank_count;
	archive__check(archive,
		       item->host && item->job && item->rank_count && item->class < VAPRO_CLASSES &&
			   item->begin_ns < item->end_ns,
		       "a node's variance is damaged");
}

void node_variances__archive(struct archive *archive, struct node_variances *nodes)
{
	struct intern *texts = intern__new();

	if (!texts) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	for (size_t i = 0; i < nodes->count; i++) {
		intern__id(texts, nodes->items[i].host);
		intern__id(texts, nodes->items[i].job);
	}
	archive__texts(archive, texts);
	archive__rows(archive, &item_table, &nodes->items, &nodes->count, &nodes->capacity);
	for (size_t i = 0; i < nodes->count; i++)
		archive_item(archive, nodes, &nodes->items[i]);
	archive__check(archive, nodes->count <= NODE_VARIANCES_MAX && nodes->rank_count <= NODE_RANKS_MAX,
		       "there are too many variances of nodes");
	intern__free(texts);
}
